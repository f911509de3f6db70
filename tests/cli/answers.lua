-- Reads a file of /save and prints the text of message N, or the number of messages, without the system text:
-- dtrun run answers.lua FILE [N]
local dt = require "dt"
local file = assert(io.open(arg[1]))
local messages = dt.json.decode(file:read "a").messages
if messages[1] and messages[1].role == "system" then table.remove(messages, 1) end
for i, message in ipairs(messages) do assert(message.role == (i % 2 == 1 and "user" or "assistant")) end
if arg[2] then io.write(messages[tonumber(arg[2])].content) else print(#messages) end
