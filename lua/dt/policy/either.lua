-- Chooses between two draft models (policy.guesses), and is used like the guesses of one. An iteration uses the model
-- whose first passes have added more beyond their cost; from time to time it tries the other one, to see whether that
-- has changed.
local max, min, setmetatable = math.max, math.min, setmetatable

-- Iterations with draft passes before the other model is tried: PAUSE at first; doubled, up to LONGEST_PAUSE, each time
-- that it adds less; AGAIN if it adds more.
local PAUSE, LONGEST_PAUSE, AGAIN = 8, 128, 1

local Either = {}
Either.__index = Either

function Either:begin(budget, paused)
  self.passes, self.ms, self.budget = 0, 0, budget
  for m = 1, 2 do self[m]:begin(budget, paused) end
end

-- Returns the model that is expected to add more beyond its cost, and the other one.
function Either:order(R, open)
  local one, two = self[1], self[2]
  if two:gain(R, open) > one:gain(R, open) then return two, one end
  return one, two
end

function Either:worth(R, open, n, depth)
  if self.passes == 0 then
    local better, other = self:order(R, open)
    self.tries = self.unseen >= self.pause and other:worth(R, open, n, depth)
    self.chosen = self.tries and other or better
  end
  return self.chosen:worth(R, open, n, depth)
end

function Either:draft(tree, level, n, open)
  local chosen = self.chosen
  chosen:draft(tree, level, n, open)
  self.passes, self.ms = chosen.passes, chosen.ms
end

function Either:least(R) return self.chosen:least(R) end

function Either:settle(R, alpha, best, k)
  for m = 1, 2 do self[m]:settle(R, alpha, best, k) end
  if self.passes == 0 then return end
  if not self.tries then
    self.unseen = self.unseen + 1
    return
  end
  local better, tried = self:order(R, 1), self.chosen
  local more = better == tried or tried:gain(R, 1, tried.brought) >= better:gain(R, 1)
  self.unseen = 0
  self.pause = more and AGAIN or min(max(2 * self.pause, PAUSE), LONGEST_PAUSE)
end

function Either:quiet(R) return min(self[1]:quiet(R), self[2]:quiet(R)) end

function Either:log()
  for m = 1, 2 do self[m]:log() end
end

function Either:observe(tree, out)
  for m = 1, 2 do self[m]:observe(tree, out) end
end

return function(one, two)
  two.pass = one.pass -- shared, since only one of them guesses in an iteration
  return setmetatable({ one, two, pass = one.pass, passes = 0, ms = 0, unseen = 0, pause = PAUSE }, Either)
end
