-- Seeds from 0 to 2^64 - 1: integers as long as experiments' files hold these, else their digits.
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
  local tenth = (bits >> 1) // 5 -- as of a number without sign
  return ("%d%d"):format(tenth, bits - tenth * 10)
end

-- The seed that a text says; nil: it says none.
function seeds.parse(text)
  local digits = text:match "^0*(%d+)$"
  if not digits or #digits > #MOST or #digits == #MOST and digits > MOST then return nil end
  return seed_of(seeds.bits(digits))
end

-- The n-th seed after one; after the last comes 0.
function seeds.after(seed, n) return seed_of(seeds.bits(seed) + n) end

return seeds
