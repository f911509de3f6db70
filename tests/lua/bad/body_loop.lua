-- Never finishes loading.
-- expect: policy ran longer than 2 s (or 20 million instructions) in its file
while true do end
