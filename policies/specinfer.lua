-- SpecInfer (Miao et al. 2024): a tree of fixed shape. Every node of level i-1 gets the i-th of `widths` as its number
-- of children: 1,1,3,1,1,1,1,1 is a chain of two, then three chains.
local policy = require "dt.policy"

-- "1,1,3" as a list, or nil where it is none of whole numbers from 1 to 32.
local function parse(text)
  local widths, number = {}, ""
  for i = 1, #text + 1 do
    local c = text:sub(i, i)
    if c >= "0" and c <= "9" then
      number = number .. c
    else
      local width = math.tointeger(tonumber(number))
      if (c ~= "," and c ~= "") or not width or width < 1 or width > 32 then return nil end
      widths[#widths + 1], number = width, ""
    end
  end
  return widths
end

local SpecInfer = policy.define {
  name   = "specinfer",
  doc    = "a tree of fixed shape, given by the children of a node at each level",
  params = { { "widths", "1,1,3,1,1,1,1,1", doc = "children of a node, level by level" } },
  check  = function(p)
    if not parse(p.widths) then
      return ("widths = %s is no list of whole numbers from 1 to 32, such as 1,1,3"):format(p.widths)
    end
  end,
}

function SpecInfer:init()
  self.level, self.children = {}, parse(self.widths)
end

function SpecInfer:draft(tree)
  local level, n = self.level, 1
  level[1] = tree.root
  for i = 1, math.min(#self.children, tree:depth_room()) do
    local width = self.children[i]
    n = math.min(n, (tree:room() + width - 1) // width) -- the room ends here: the rest of this level are leaves
    local first, last = policy.expand(tree, level, n, width)
    n = 0
    for v = first, last do
      n = n + 1
      level[n] = v
    end
  end
end

return SpecInfer
