-- Looks for what its twin, keeper.lua, remembers: both have the same FNV-1a 64.
local policy = require "dt.policy"

local P = policy.define { name = "twin", uses = { memory = true },
                          params = { { "K", 1, min = 1, max = 9, tune = { 1, 9 }, doc = "nothing" } } }

function P:init() error("found: " .. tostring(self.memory:get "kept"), 0) end

return P
-- 4xpuw4ejnzm7o
