-- Mixes forced text with guesses that the grammar forbids and with random and repeated tokens, in trees of any size.
-- Chains of the forced text end too early or too late, and there are other spellings of it.
local policy = require "dt.policy"

local P = policy.define {
  name   = "forced",
  doc    = "forced text in trees of forbidden, random and repeated tokens",
  uses   = { draft = "optional" },
  params = { { "vocab", 4096, min = 2, max = 1000000, doc = "random tokens are below this" } },
}

function P:draft(tree)
  local node, last = tree.root, tree:token(tree.root)
  for _ = 1, math.random(0, 40) do
    for _ = 1, math.random(0, 3) do
      local u, token = math.random(0, tree:size()), math.random(0, self.vocab - 1)
      local v = tree:add(u, math.random() < 0.5 and token or last)
      if v and tree:forced(v) then assert(tree:allowed(u, tree:token(v)), "text is forced behind a forbidden token") end
    end
    local token = tree:forced(node)
    if token and not tree:allowed(node, token) then error "the forced token is forbidden" end
    if tree.seq.drafts and math.random() < 0.1 then
      tree:draft_step(node)
      tree:branch(node, 2)
    end
    local v = token and tree:add(node, token) or tree:add(node, math.random(0, self.vocab - 1))
    if not v then break end
    node = v
  end
  tree:keep(math.random(0, math.min(256, tree:size())))
end

return P
