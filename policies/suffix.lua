-- SuffixDecoding (Oliaro et al. 2024; as in Snowflake's ArcticInference): no draft model. For every length m of the
-- text's end, the places where the last m tokens stood before tell what follows: a node is as likely as its share of
-- these places. They are looked for in the text itself, and apart from that in the outputs of earlier runs and the
-- files of --corpus. Of the trees of all m that of the largest sum of probabilities is taken, the longer m of two
-- equals. A tree has at most factor * m + offset nodes, likeliest first, none below min_p. Here the places are looked
-- up anew at each iteration, where theirs keeps two suffix trees: it is the same tree of guesses, but for the order of
-- equals (in the text the latest place first) and where there are more than 400 places.
local policy = require "dt.policy"

local Suffix = policy.define {
  name   = "suffix",
  doc    = "what followed the end of the text before, here and elsewhere, by how often; no draft model",
  uses   = { draft = false, corpus = true },
  params = {
    { "depth", 24, min = 1, max = 64, doc = "longest end of the text looked for, and most nodes" },
    { "factor", 1.0, min = 0, max = 16, doc = "nodes for each token that matched" },
    { "offset", 0.0, min = -16, max = 64, doc = "and so many more" },
    { "min_p", 0.1, min = 0, max = 1, doc = "no guess below that probability" },
    { "chain", false, doc = "a chain of the likeliest instead of a tree" },
  },
}

local PLACES = 400 -- looked at, of those of one m

-- The tokens behind `places`, each with its places: the most places first, of equals the one that came first.
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

-- A list of {token =, parent = its place in the list or 0, share = of its parent's places, p =}, and the sum of p.
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
