-- Grows a bushy tree, then verifies a random part of it that is closed under parents, listed in random order.
local policy = require "dt.policy"

local P = policy.define {
  name   = "keep_random",
  doc    = "verifies random closed parts of a larger tree",
  params = { { "share", 0.7, min = 0, max = 1, doc = "probability of a node whose parent is kept" } },
}

function P:draft(tree)
  tree:limit(600)
  local level = { tree.root }
  for _ = 1, 4 do
    tree:draft_step(level)
    local below = {}
    for _, u in ipairs(level) do
      local first, last = tree:branch(u, 3)
      for v = first, last do below[#below + 1] = v end
    end
    level = below
  end
  local kept, list = { [0] = true }, { 0 }
  for v = 1, tree:size() do
    if kept[tree:parent(v)] and #list < 256 and math.random() < self.share then
      kept[v] = true
      table.insert(list, math.random(1, #list + 1), v)
    end
  end
  tree:keep(list)
end

return P
