-- Never returns from its check.
-- expect: policy ran longer than 2 s (or 20 million instructions) in check
local policy = require "dt.policy"

return policy.define { name = "check_loop", check = function() while true do end end }
