-- Plain decoding: an empty tree, so each target pass commits one token. Every other policy must give its tokens.
local policy = require "dt.policy"

local Ar = policy.define {
  name = "ar",
  doc  = "plain decoding: nothing is drafted",
  uses = { draft = false },
}

function Ar.draft() end

return Ar
