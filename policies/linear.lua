-- Linear speculation (Leviathan et al. 2023): a chain of K drafted tokens, each the likeliest after the previous one.
local policy = require "dt.policy"

local Linear = policy.define {
  name   = "linear",
  doc    = "one chain of K drafted tokens",
  uses   = { calibrate = true },
  params = { { "K", 8, min = 1, max = 256, tune = { 1, 16 }, doc = "tokens drafted per iteration" } },
}

function Linear:draft(tree) policy.chain(tree, self.K) end

return Linear
