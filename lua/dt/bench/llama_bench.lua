-- Runs llama.cpp's own benchmark on the same file, so that its numbers and ours come from the same minutes.
local json = require "dt.json"
local shell = require "dt.shell"

local llama_bench = {}

local COMMAND = "%s -m %s -t %s -p %s -n %s -r 1 -o json 2>/dev/null"

-- The path in --against "llama-bench=PATH"; or nil and a message.
function llama_bench.path(given)
  local path = given:match "^llama%-bench=(.+)$"
  if not path then return nil, ("--against %s: expected llama-bench=PATH, the program of llama.cpp"):format(given) end
  local file, message = io.open(path, "rb")
  if not file then return nil, "--against: " .. message end
  file:close()
  return path
end

-- One round of its tests of a prompt and of generating, of these numbers of tokens: { pp512 =, tg128 =, commit = },
-- tokens/s; or nil and a message.
function llama_bench.round(path, model, threads, prompt, tokens)
  local status, output = shell(COMMAND, path, model, ("%d"):format(threads), ("%d"):format(prompt),
                               ("%d"):format(tokens))
  local tests = status == 0 and json.decode(output)
  if type(tests) ~= "table" then
    return nil, ("%s failed with status %d; try: %s -m %s"):format(path, status, path, model)
  end
  local round = {}
  for _, test in ipairs(tests) do
    local speed = type(test) == "table" and test.avg_ts
    if type(speed) ~= "number" then return nil, path .. ": a test without avg_ts, expected llama-bench's JSON" end
    local name = test.n_gen == 0 and "pp" .. test.n_prompt or "tg" .. test.n_gen
    round[name], round.commit = speed, test.build_commit
  end
  for _, name in ipairs { "pp" .. prompt, "tg" .. tokens } do
    if not round[name] then return nil, ("%s: no test %s in its output"):format(path, name) end
  end
  return round
end

return llama_bench
