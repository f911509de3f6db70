-- Keeps a pair loaded and runs requests of another program, so that no measured time contains loading.
-- dtrun run tests/bench/serve.lua
-- Each line of standard input is a JSON object, and each answer is a line, too. An object is either the options of
-- pair:generate, which is answered with the result (policies remember nothing of earlier requests); {"cut": TEXT, "to":
-- N}, which is answered with the text's first N tokens as text; or {"identity": true}, which is answered with
-- pair:identity().
local dt = require "dt"

local opts = dt.args { doc = "reads options of pair:generate, a JSON object per line, and answers each with a line" }
local pair = assert(dt.load(opts.load))

local function answer(asked)
  if asked.cut then return { text = pair:decode(table.move(assert(pair:encode(asked.cut)), 1, asked.to, 1, {})) } end
  if asked.identity then return pair:identity() end
  pair:forget()
  return pair:generate(asked)
end

for line in io.lines() do
  local result, err = answer(dt.json.decode(line))
  io.write(dt.json.encode(result or { error = err.message }), "\n"):flush()
end
