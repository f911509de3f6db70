-- What allocations.sh runs as a driver: pairs, policies, prefixes, several sequences, JSON.
local dt = require "dt"

local function tokens(result) return table.concat(result.tokens, " ") end

local pair = dt.check(dt.fake { vocab = 30, target = { ["1"] = { [2] = 0.75 } } })
local prefix = dt.check(pair:prefix " 1 2 3")
print(tokens(dt.check(pair:generate { policy = "dynatree", prompt = prefix, tokens = 6, temp = 1.0, top_p = 0.5 })))
print(tokens(dt.check(pair:generate { policy = "linear", params = { K = 2 }, prompt = " 1", tokens = 6, stop = "9" })))
local batch = { policy = "opt_tree", prompts = { " 1", " 2", prefix }, tokens = 5, slots = 2 }
local results, failures = pair:generate_batch(batch)
dt.check(results, failures)
for i, result in ipairs(results) do
  dt.check(not failures[i] or nil, failures[i])
  print(tokens(result))
end
print(dt.json.encode(dt.json.decode '{"a": [1, 2, {"b": "c"}]}'), #dt.check(pair:policy { policy = "rate" }).params)
print(pair:decode(dt.check(pair:encode " 1 2")))
pair:close()
