-- Remembers what it was told. Its twin, thief.lua, has the same FNV-1a 64.
local policy = require "dt.policy"

local P = policy.define { name = "twin", uses = { memory = true },
                          params = { { "K", 1, min = 1, max = 9, tune = { 1, 9 }, doc = "nothing" } } }

function P:init() self.memory:set("kept", 42) end

return P
-- ycywmi3cco7xa
