-- One line on standard error that says how far a long run is and how long it will still take; nothing where that is no
-- terminal: local p = dt.progress(total); p:step().
local core = require "dt.core"

local Progress = {}
Progress.__index = Progress

local function duration(ms)
  local s = math.floor(ms / 1000 + 0.5)
  if s < 60 then return s .. " s" end
  if s < 3600 then return ("%d min %02d s"):format(s // 60, s % 60) end
  return ("%d h %02d min"):format(s // 3600, s % 3600 // 60)
end

-- n more are done.
function Progress:step(n)
  self.done = self.done + (n or 1)
  if not self.shown then return end
  local passed = core.clock() - self.start
  local left = passed / self.done * (self.total - self.done)
  local rest = self.done < self.total and duration(left) .. " left" or duration(passed) .. "\n"
  io.stderr:write(("\r%d/%d  %s\27[K"):format(self.done, self.total, rest))
end

return function(total)
  return setmetatable({ total = total, done = 0, start = core.clock(), shown = core.is_terminal() }, Progress)
end
