-- bench_field.lua FILE a.1.b: prints a field of a file of JSON; with a third argument, the file without that field.
local json = require "dt.json"

local file = assert(io.open(arg[1], "rb"))
local whole = assert(json.decode(file:read "a"))
file:close()
local value, holder, last = whole, nil, nil
for key in arg[2]:gmatch "[^.]+" do
  holder, last = value, math.tointeger(tonumber(key)) or key
  value = value[last]
end
if arg[3] then
  if math.type(last) then table.remove(holder, last) else holder[last] = nil end
  whole.policies, whole.passes = nil, {}
  print(json.encode(whole))
else
  print(value)
end
