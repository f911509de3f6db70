-- Prompt lookup decoding (Saxena 2023) needs no draft model. If the last n tokens occur earlier in the text, the tokens
-- after that occurrence are proposed. Longer matches are preferred, and among equally long ones the latest.
local policy = require "dt.policy"

local Lookup = policy.define {
  name   = "prompt_lookup",
  doc    = "repeats what followed an earlier occurrence of the last tokens; needs no draft model",
  uses   = { draft = false },
  params = {
    { "n", 3, min = 1, max = 3, doc = "number of tokens to match; without such a match, fewer" },
    { "K", 10, min = 1, max = 256, doc = "tokens proposed" },
  },
}

function Lookup:draft(tree)
  local seq, node = tree.seq, tree.root
  local found, length = seq:match(self.n), seq:length()
  if not found then return end
  for i = found + 1, math.min(found + self.K, length) do
    node = tree:add(node, seq:token(i))
    if not node then break end
  end
end

return Lookup
