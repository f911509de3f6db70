-- A chain that goes on after there is no room for it: in the tree, in the text wanted and in the context.
local policy = require "dt.policy"

local P = policy.define {
  name   = "past_the_room",
  doc    = "a chain longer than the room",
  params = { { "length", 300, min = 1, max = 1000, doc = "nodes tried" },
             { "drafted", 8, min = 0, max = 256, doc = "of them by the draft model, the rest repeat a token" } },
}

function P:draft(tree)
  local node = tree.root
  for i = 1, self.length do
    local child
    if i <= self.drafted then
      tree:draft_step(node)
      local first, last = tree:branch(node, 1)
      if first == last then child = first end
    else
      child = tree:add(node, tree:token(node), -1.0)
    end
    node = child or node
  end
end

return P
