-- SuffixDecoding (Oliaro et al. 2024; as in Snowflake's ArcticInference): no draft model. For every length m of the
-- text's end, the places where the last m tokens stood before tell what follows: a node is as likely as its share of
-- these places. Of the trees of all m that of the largest sum of probabilities is taken, the longer m of two equals. A
-- tree has at most factor * m + offset nodes, likeliest first, none below min_p. Here the places are looked up anew at
-- each iteration, where theirs keeps a suffix tree: it is the same tree of guesses, but for the order of equals (the
-- latest place first).
local policy = require "dt.policy"

local Suffix = policy.define {
  name   = "suffix",
  doc    = "what followed the end of the text where it stood before, by how often; no draft model",
  uses   = { draft = false },
  params = {
    { "depth", 24, min = 1, max = 64, doc = "longest end of the text looked for, and most nodes" },
    { "factor", 1.0, min = 0, max = 16, doc = "nodes for each token that matched" },
    { "offset", 0.0, min = -16, max = 64, doc = "and so many more" },
    { "min_p", 0.1, min = 0, max = 1, doc = "no guess below that probability" },
    { "chain", false, doc = "a chain of the likeliest instead of a tree" },
  },
}

local PLACES = 400 -- of the last token are looked at, the latest ones

function Suffix:init() self.places, self.seen = {}, 0 end -- token -> where it stands, rising

-- The tokens that follow at `places` (of the last token matched, latest first), each with its places: the most places
-- first, of equals the one with the latest.
local function followers(seq, places)
  local length, list, of = seq:length(), {}, {}
  for i = 1, #places do
    if places[i] < length then
      local token = seq:token(places[i] + 1)
      if not of[token] then
        of[token] = { token = token, places = {}, rank = #list }
        list[#list + 1] = of[token]
      end
      local there = of[token].places
      there[#there + 1] = places[i] + 1
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
    for _, next in ipairs(followers(seq, item.places)) do
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
  local seq = tree.seq
  local length = seq:length()
  for i = self.seen + 1, length do
    local token = seq:token(i)
    self.places[token] = self.places[token] or {}
    table.insert(self.places[token], i)
  end
  self.seen = length
  local places, all, best, score = {}, self.places[seq:token(length)], {}, 0
  for i = #all, math.max(1, #all - PLACES), -1 do places[#places + 1] = all[i] end
  for m = 1, math.min(self.depth, length) - 1 do
    if m > 1 then
      local fewer = {}
      for _, place in ipairs(places) do
        if place >= m and seq:token(place - m + 1) == seq:token(length - m + 1) then fewer[#fewer + 1] = place end
      end
      places = fewer
    end
    if #places == 1 then break end -- only the end itself
    local most = math.floor(m * self.factor + self.offset + 1e-6)
    local list, sum = self:speculate(seq, places, math.min(most, self.depth))
    if sum >= score then best, score = list, sum end
  end
  local node = { [0] = 0 }
  for i, item in ipairs(best) do
    node[i] = node[item.parent] and tree:add(node[item.parent], item.token, math.log(item.share))
  end
end

return Suffix
