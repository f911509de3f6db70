-- A loaded pair that another program asks for runs, so that no time holds loading.  dtrun run tests/bench/serve.lua
-- Each line of standard input is a JSON object, the options of pair:generate; each answer is a line too: the result.
local dt = require "dt"

local opts = dt.args { doc = "answers each line of JSON, options of pair:generate, with the result as a line" }
local pair = assert(dt.load(opts.load))
for line in io.lines() do
  local result, err = pair:generate(dt.json.decode(line))
  io.write(dt.json.encode(result or { error = err.message }), "\n"):flush()
end
