-- Measures how well a model predicts a text: its perplexity, over windows or strides as in llama.cpp
local dt = require "dt"

local opts = dt.args {
  doc = [[
Prints the perplexity of FILE (-: standard input): exp(mean of -log p), where p is the target's probability of a token
after the tokens before it in its window.
Without --stride the text is cut into windows of -c tokens (default 512), and the second half of each counts, as in
llama-perplexity of llama.cpp. With --stride N windows of c + N/2 tokens begin N tokens apart, and the last N tokens of
each count, as with --ppl-stride N (llama.cpp also rounds its windows up to a multiple of 256). If the model needs a
token before every text, each window without --stride begins with it.]],
  rest = "FILE",
  options = {
    { "stride", nil, type = "integer", min = 1, max = 1000000, doc = "tokens between windows" },
    { "chunks", nil, type = "integer", min = 1, max = 1000000, doc = "maximum number of windows (default: all)" },
  },
}
if #opts.rest ~= 1 then dt.check(nil, "give one FILE, or - for standard input") end

local function read(path)
  local file, message = io.stdin, nil
  if path ~= "-" then file, message = io.open(path, "rb") end
  return dt.check(file and file:read "a", message or path .. ": cannot be read")
end

local stride = opts.stride
local window = (opts.load.ctx or 512) + (stride or 0) // 2
if window < 4 then dt.check(nil, ("--ctx %d is too small: windows need at least 4 tokens"):format(window)) end
if stride and stride >= window then
  dt.check(nil, ("--stride %d is too large: expected less than the %d tokens of a window"):format(stride, window))
end
opts.load.ctx = window + 1
opts.load.draft = false
local text = read(opts.rest[1])
local pair = dt.check(dt.load(opts.load))
local tokens, begin = dt.check(pair:encode(text)), dt.check(pair:encode "")[1]
local windows = stride and (#tokens - window + stride - 1) // stride or #tokens // window
if windows < 1 then
  dt.check(nil, ("%s has only %d tokens, but needs %d: give a longer text or a smaller -c"):format(
    opts.rest[1], #tokens, stride and window + 1 or window))
end
windows = math.min(windows, opts.chunks or windows)

-- Adds -log p of the tokens of a window that count.
local function add(sums, first)
  local ids = table.move(tokens, first + 1, first + window, 1, {})
  if begin and not stride then ids[1] = begin end
  local result = dt.check(pair:generate { policy = "ar", prompt = ids, tokens = 1, logprobs = 0, echo = true })
  for i = stride and window - stride + 1 or window // 2 + 2, window do
    local loss = -result.prompt_logprobs[i].logprob
    sums.n, sums.loss, sums.squares = sums.n + 1, sums.loss + loss, sums.squares + loss * loss
  end
end

local sums, progress = { n = 0, loss = 0.0, squares = 0.0 }, dt.progress(windows)
for i = 0, windows - 1 do
  add(sums, i * (stride or window))
  progress:step()
end
progress:finish()
local mean = sums.loss / sums.n
local spread = sums.squares / sums.n - mean * mean
local error = spread > 0 and sums.n > 1 and math.sqrt(spread / (sums.n - 1)) or 0
print(("perplexity %.4f +/- %.4f, of %d tokens in %d windows of %d"):format(math.exp(mean), math.exp(mean) * error,
  sums.n, windows, window))
pair:close()
