-- A line on standard error that changes while something runs: brief.show(text). What is said next calls brief.hide()
-- first, and so does the end of the program: neither a message nor the shell's prompt lands on it.
local CLEAR = "\r\27[K"
local brief = { shown = false }

function brief.hide()
  if brief.shown then io.stderr:write(CLEAR) end
  brief.shown = false
end

function brief.show(text)
  io.stderr:write(CLEAR, text)
  brief.shown = true
end

-- Leaves the line where it is: the last one, of something that has ended.
function brief.stay(text)
  io.stderr:write(CLEAR, text, "\n")
  brief.shown = false
end

return setmetatable(brief, { __gc = brief.hide })
