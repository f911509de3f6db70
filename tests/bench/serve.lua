-- A loaded pair that another program asks for runs, so that no time holds loading.  dtrun run tests/bench/serve.lua
-- Each line of standard input is a JSON object; each answer is a line too. An object is the options of pair:generate,
-- answered with the result, in which policies remember nothing of earlier ones; {"cut": TEXT, "to": N}, answered with
-- the text's first N tokens as text; or {"identity": true}, answered with pair:identity().
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
