-- A line on standard error that changes while something runs: brief.show(text). Whatever writes there next calls
-- brief.hide() first, as does the end of the program, so that neither a message nor the shell's prompt is appended to
-- the line.
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

-- Shows a last text that stays, when something has ended.
function brief.stay(text)
  io.stderr:write(CLEAR, text, "\n")
  brief.shown = false
end

return setmetatable(brief, { __gc = brief.hide })
