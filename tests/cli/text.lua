-- Prints the text of a result file.
local dt = require "dt"
local file = assert(io.open(arg[1], "rb"))
io.write(dt.json.decode(file:read("a")).text)
file:close()
