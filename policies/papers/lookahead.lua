-- Lookahead decoding (Fu et al. 2024) needs no draft model. A window of guesses for the next W tokens is part of every
-- verify pass, as a chain. After the pass, each guess is replaced by the target's token after the guesses before it
-- (Jacobi iteration); even wrong guesses can form good n-grams. The n-grams that the target produced, in the window or
-- elsewhere in the tree, are put into a pool, and those that begin with the last token are the actual guesses. Here the
-- window is one level deep; the paper keeps N - 1 levels.
local policy = require "dt.policy"

local Lookahead = policy.define {
  name   = "lookahead",
  doc    = "guesses n-grams that the target produced in a window of parallel guesses; needs no draft model",
  uses   = { draft = false, target = 1 },
  params = {
    { "W", 8, min = 1, max = 64, doc = "number of tokens in the window" },
    { "N", 4, min = 2, max = 16, doc = "number of tokens in an n-gram" },
    { "G", 6, min = 1, max = 32, doc = "n-grams tried at once, and kept for each first token" },
  },
}

local MOST = 20000 -- when this many n-grams are kept, the pool is emptied

function Lookahead:init()
  self.pool, self.kept = {}, 0 -- first token -> other tokens of its n-grams, the newest last
  self.window, self.chain = {}, {}
end

function Lookahead:draft(tree)
  local seq, window, chain = tree.seq, self.window, self.chain
  local length = seq:length()
  for i = #window + 1, self.W do window[i] = seq:token(i * 17 % length + 1) end -- begins with any tokens of the text
  for _, ngram in ipairs(self.pool[tree:token(0)] or {}) do
    local node = 0
    for i = 1, #ngram do
      node = tree:add(node, ngram[i])
      if not node then break end
    end
  end
  local node = 0
  for i = 1, self.W do
    node = node and tree:add(node, window[i])
    chain[i] = node
  end
end

-- Adds the n-gram to the pool as the newest; if it is there already, it is moved.
local function remember(self, first, rest)
  local list = self.pool[first] or {}
  self.pool[first] = list
  for i, other in ipairs(list) do
    local same = true
    for k = 1, #rest do same = same and other[k] == rest[k] end
    if same then
      table.insert(list, table.remove(list, i))
      return
    end
  end
  list[#list + 1] = rest
  self.kept = self.kept + 1
  if #list > self.G then
    table.remove(list, 1)
    self.kept = self.kept - 1
  end
end

function Lookahead:observe(tree, out)
  if self.kept > MOST then self.pool, self.kept = {}, 0 end
  for u = 0, tree:size() do -- the N - 1 tokens up to u, and the target's token after them
    local rest, first = { (out:candidates(u, 1)) }, u
    while #rest < self.N - 1 and first > 0 do
      table.insert(rest, 1, tree:token(first))
      first = tree:parent(first)
    end
    if #rest == self.N - 1 and rest[#rest] then remember(self, tree:token(first), rest) end
  end
  local window, chain, n = self.window, self.chain, 0
  for i = out.committed, self.W do -- the token after the chain's i-th node is i + 1 tokens after the old root
    local node = i == 0 and 0 or chain[i]
    if not node then break end
    n = n + 1
    window[n] = (out:candidates(node, 1))
  end
  for i = n + 1, #window do window[i] = nil end
end

return Lookahead
