-- Seeds from 0 to 2^64 - 1: integers if experiments' files can hold them, otherwise strings of digits.
local seeds = {}

local MOST = "18446744073709551615"

-- The bits of a seed, as an integer.
function seeds.bits(seed)
  local n = 0
  for digit in tostring(seed):gmatch "%d" do n = n * 10 + digit end
  return n
end

local function seed_of(bits)
  if bits >= 0 and bits <= 10 ^ 15 then return bits end
  local tenth = (bits >> 1) // 5 -- unsigned division
  return ("%d%d"):format(tenth, bits - tenth * 10)
end

-- The seed that a text contains; nil: it is not a seed.
function seeds.parse(text)
  local digits = text:match "^0*(%d+)$"
  if not digits or #digits > #MOST or #digits == #MOST and digits > MOST then return nil end
  return seed_of(seeds.bits(digits))
end

-- The n-th seed after one; 0 follows the last.
function seeds.after(seed, n) return seed_of(seeds.bits(seed) + n) end

return seeds
