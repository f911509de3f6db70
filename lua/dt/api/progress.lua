-- A progress line on standard error: the steps done, and the time that the rest will take. It is shown on terminals
-- only. local p = dt.progress(total); p:step().
--
-- If steps differ in length, dt.progress(total, work) and p:step(1, work) give the work of all steps and of one.
-- p:skip(n, work) counts n steps as done that took no time.
local brief = require "dt.api.brief"
local core = require "dt.core"

local Progress = {}
Progress.__index = Progress

local function duration(ms)
  local s = math.floor(ms / 1000 + 0.5)
  if s < 60 then return s .. " s" end
  if s < 3600 then return ("%d min %02d s"):format(s // 60, s % 60) end
  return ("%d h %02d min"):format(s // 3600, s % 3600 // 60)
end

function Progress:skip(n, work)
  self.done = self.done + n
  self.left = self.left - (work or n)
end

-- Ends the line even if fewer steps were needed than expected.
function Progress:finish()
  if self.shown and self.done < self.total then brief.hide() end
end

-- Counts n more steps.
function Progress:step(n, work)
  n = n or 1
  self:skip(n, work)
  self.worked = self.worked + (work or n)
  if not self.shown then return end
  local passed = core.clock() - self.start
  local left = passed / self.worked * self.left
  local ends = self.done >= self.total
  local line = ("%d/%d  %s"):format(self.done, self.total, ends and duration(passed) or duration(left) .. " left")
  if ends then brief.stay(line) else brief.show(line) end
end

return function(total, work)
  return setmetatable({ total = total, done = 0, left = work or total, worked = 0, start = core.clock(),
                        shown = core.is_terminal() }, Progress)
end
