-- Prompt lookup decoding (Saxena 2023): no draft model. Where the last n tokens stand earlier in the text, what
-- followed them is proposed again. Longer matches come first, and of equally long ones the latest.
local policy = require "dt.policy"

local Lookup = policy.define {
  name   = "prompt_lookup",
  doc    = "repeats what followed the last tokens where they stood before; needs no draft model",
  uses   = { draft = false },
  params = {
    { "n", 3, min = 1, max = 3, doc = "tokens matched, if there is such a match; else fewer" },
    { "K", 10, min = 1, max = 256, doc = "tokens proposed" },
  },
}

local PARTS = 64 -- of an index, by the last token: a table of the box has no more than 16,384 keys, a text more tokens

-- self.ends[n] says for each run of n tokens where it last ended, the end of the text itself left out.
function Lookup:init()
  self.ends, self.indexed = {}, 0
  for n = 1, self.n do
    self.ends[n] = {}
    for part = 0, PARTS - 1 do self.ends[n][part] = {} end
  end
end

-- A number for the n tokens that end at i; ids are below 2^21.
local function key(seq, i, n)
  local number = 0
  for j = i - n + 1, i do number = number << 21 | seq:token(j) end
  return number
end

-- Where the longest run that ends the text last ended before, or nil.
function Lookup:match(seq, length)
  local ends = self.ends
  for i = self.indexed + 1, length - 1 do
    local part = seq:token(i) % PARTS
    for n = 1, math.min(self.n, i) do ends[n][part][key(seq, i, n)] = i end
  end
  self.indexed = length - 1
  local part = seq:token(length) % PARTS
  for n = math.min(self.n, length), 1, -1 do
    local found = ends[n][part][key(seq, length, n)]
    if found then return found end
  end
end

function Lookup:draft(tree)
  local seq, length = tree.seq, tree.seq:length()
  local found, node = self:match(seq, length), tree.root
  if not found then return end
  for i = found + 1, math.min(found + self.K, length) do
    node = tree:add(node, seq:token(i))
    if not node then break end
  end
end

return Lookup
