-- SuffixDecoding (Oliaro et al. 2024; as in Snowflake's ArcticInference) needs no draft model. For every m, the earlier
-- places of the last m tokens predict the next token: a node's probability is its share of these places. The text
-- itself is searched and, separately, the outputs of earlier runs together with the files of --corpus. This gives a
-- tree for each m, of which the one with the largest sum of probabilities is used, or the one with the larger m if two
-- are equal. A tree has at most factor * m + offset nodes, the likeliest first, and none with a probability below
-- min_p. Here the places are searched again in each iteration, while the paper maintains two suffix trees. The guesses
-- are the same, except for the order of equally likely ones (in the text the latest place first), and if there are more
-- than 400 places.
local policy = require "dt.policy"

local Suffix = policy.define {
  name   = "suffix",
  doc    = "what most often followed the last tokens earlier, in this text and others; needs no draft model",
  uses   = { draft = false, corpus = true },
  params = {
    { "depth", 24, min = 1, max = 64, doc = "maximum number of last tokens to match, and of nodes" },
    { "factor", 1.0, min = 0, max = 16, doc = "maximum number of nodes for each token that matched" },
    { "offset", 0.0, min = -16, max = 64, doc = "number of nodes in addition to that" },
    { "min_p", 0.1, min = 0, max = 1, doc = "minimum probability of a guess" },
    { "chain", false, doc = "a chain of the likeliest tokens instead of a tree" },
  },
}

local PLACES = 400 -- maximum number of places used for each m

-- The tokens after `places`, each with its places, sorted by falling number of places; equal ones in the order in which
-- they were found.
function Suffix:followers(seq, places)
  local list, of = {}, {}
  for i = 1, #places do
    local place = places[i] + 1
    local token = self.corpus:token(seq, place)
    if token then
      if not of[token] then
        of[token] = { token = token, places = {}, rank = #list }
        list[#list + 1] = of[token]
      end
      local there = of[token].places
      there[#there + 1] = place
    end
  end
  table.sort(list, function(a, b)
    if #a.places ~= #b.places then return #a.places > #b.places end
    return a.rank < b.rank
  end)
  return list
end

-- Returns a list of nodes {token =, parent = index of the parent or 0, share = share of the parent's places, p =}, and
-- the sum of p.
function Suffix:speculate(seq, places, most)
  local list, sum, open = {}, 0, { { p = 1.0, places = places, parent = 0 } }
  while #list < most and #open > 0 do
    local best = 1
    for i = 2, #open do
      if open[i].p > open[best].p then best = i end
    end
    local item = table.remove(open, best)
    if item.token then
      list[#list + 1] = item
      sum = sum + item.p
    end
    local at = item.token and #list or 0
    for _, next in ipairs(self:followers(seq, item.places)) do
      next.share, next.parent = #next.places / #item.places, at
      next.p = item.p * next.share
      if next.p < self.min_p then break end
      open[#open + 1] = next
      if self.chain then break end
    end
  end
  return list, sum
end

function Suffix:draft(tree)
  local seq, best, score = tree.seq, {}, 0
  for _, where in ipairs { "text", "rest" } do
    local longest = self.corpus:longest(seq, where, math.max(1, self.depth - 1))
    for m = 1, math.min(longest, self.depth - 1) do
      local most = math.floor(m * self.factor + self.offset + 1e-6)
      local list, sum = self:speculate(seq, self.corpus:places(seq, where, m, PLACES), math.min(most, self.depth))
      if sum >= score then best, score = list, sum end
    end
  end
  local node = { [0] = 0 }
  for i, item in ipairs(best) do
    node[i] = node[item.parent] and tree:add(node[item.parent], item.token, math.log(item.share))
  end
end

return Suffix
