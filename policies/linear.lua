-- Linear speculation (Leviathan et al. 2023): one chain of K drafted tokens, each the likeliest after the one before.
local policy = require "dt.policy"

local Linear = policy.define {
  name   = "linear",
  doc    = "one chain of K drafted tokens",
  uses   = { sharpen = true },
  params = { { "K", 8, min = 1, max = 256, tune = { 1, 16 }, doc = "tokens drafted per iteration" } },
}

function Linear:draft(tree)
  local node = tree.root
  for _ = 1, math.min(self.K, tree:depth_room()) do
    tree:draft_step(node)
    local first, last = tree:branch(node, 1)
    if last < first then break end -- the draft model's context has ended
    node = first
  end
end

return Linear
