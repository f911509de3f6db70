-- Plain decoding: the tree stays empty, so each target pass commits one token. Every other policy must generate the
-- same tokens.
local policy = require "dt.policy"

local Ar = policy.define {
  name = "ar",
  doc  = "plain decoding: nothing is drafted",
  uses = { draft = false },
}

function Ar.draft() end

return Ar
