-- cascade: two draft models, a slower and a faster one, after "Cascade Speculative Drafting" (Chen et al. 2023).
--
-- The second draft writes and the first reviews (the paper's vertical cascade). One pass of the first draft over a
-- chain of K tokens shows how many of them it would have chosen itself. It keeps those and adds its own next token,
-- from which the second draft continues. Tokens late in the chain are rarely reached, so good guesses are worth less
-- there: the last `tail` tokens are the second draft's alone (the horizontal cascade).
--
-- If there is only one draft model, it writes the whole chain.
local policy = require "dt.policy"

local Cascade = policy.define {
  name   = "cascade",
  doc    = "a chain that a second draft (--draft2) writes and the first reviews; its end is the second's alone",
  uses   = { calibrate = true },
  params = {
    { "K", 3, min = 1, max = 64, tune = { 1, 8 }, doc = "tokens that the second draft writes between two reviews" },
    { "reviewed", 4, min = 0, max = 64, tune = { 1, 12 }, doc = "maximum number of tokens from the first draft" },
    { "tail", 2, min = 0, max = 64, tune = { 0, 6 }, doc = "tokens of the second draft after them" },
  },
}

local SECOND = { model = 2 }

-- The first draft processes `node` and the chain first..last below it. Returns the last node of the chain that it would
-- have chosen, too, or `node`, and the draft's own choice after that; nil: there is no room.
local function review(tree, node, first, last)
  local nodes = { node }
  for v = first, last do nodes[#nodes + 1] = v end
  tree:draft_step(nodes)
  local v = first
  while v <= last and tree:candidate(node, 1) == tree:token(v) do
    node, v = v, v + 1
  end
  local own, none = tree:branch(node, 1)
  return node, own <= none and own or nil
end

function Cascade:init(seq) self.both = seq.models == 2 end

function Cascade:draft(tree)
  if not self.both then return policy.chain(tree, self.reviewed + self.tail) end
  local chain, node = {}, tree.root
  while #chain < self.reviewed do
    local first, last = tree:draft_chain(node, math.min(self.K, self.reviewed - #chain - 1), SECOND)
    local agreed, own = review(tree, node, first, last)
    for v = first, agreed do chain[#chain + 1] = v end -- empty if the first draft rejects the first token
    if not own then break end
    chain[#chain + 1], node = own, own
  end
  if #chain == self.reviewed then
    local first, last = tree:draft_chain(node, self.tail, SECOND)
    for v = first, last do chain[#chain + 1] = v end
  end
  if #chain < tree:size() then tree:keep(chain) end
end

return Cascade
