-- SGLang's --speculative-adaptive (0.5.23): a chain that has one of a few lengths. After `warmup` iterations, at every
-- `every`-th iteration, a running mean of accepted tokens may change the length. It decreases while the mean is at most
-- (next shorter length - 0.5 + `down`); otherwise it increases while the mean is above (current length - 0.5 + `up`).
-- Length 0 is plain decoding; the next time, the length above it is tried again.
local policy = require "dt.policy"

local Adaptive = policy.define {
  name   = "adaptive",
  doc    = "a chain whose length follows a running mean of accepted tokens, as in SGLang",
  uses   = { calibrate = true },
  params = {
    { "steps", { 1, 3, 5, 7 }, min = 0, max = 64, doc = "possible lengths, in increasing order" },
    { "start", 3, min = 0, max = 64, doc = "first length; the middle one of steps if it is not in steps" },
    { "alpha", 0.2, min = 0, max = 1, doc = "weight of the newest iteration in the mean" },
    { "warmup", 10, min = 0, max = 1000, tune = false, doc = "iterations before the first change" },
    { "every", 5, min = 1, max = 1000, doc = "iterations between two possible changes" },
    { "down", -0.25, min = -10, max = 10, tune = false, doc = "added to the mean below which it becomes shorter" },
    { "up", 0.0, min = -10, max = 10, tune = false, doc = "added to the mean above which it becomes longer" },
  },
  check = function(p)
    for i = 2, #p.steps do
      if p.steps[i] <= p.steps[i - 1] then return "steps must increase" end
    end
  end,
}

function Adaptive:init()
  self.at = #self.steps // 2 + 1
  for i, length in ipairs(self.steps) do
    if length == self.start then self.at = i end
  end
  self.mean, self.n = self.steps[self.at] - 1.0, 0
end

function Adaptive:draft(tree) policy.chain(tree, self.steps[self.at]) end

function Adaptive:observe(_, out)
  local steps = self.steps
  if steps[self.at] > 0 then self.mean = (1 - self.alpha) * self.mean + self.alpha * out.accepted end
  self.n = self.n + 1
  if self.n <= self.warmup or (self.n - self.warmup) % self.every > 0 then return end
  if steps[self.at] == 0 then
    self.at = math.min(self.at + 1, #steps)
    if steps[self.at] > 0 and self.mean < 0 then self.mean = steps[self.at] - 1.0 end
    return
  end
  local before = self.at
  while self.at > 1 and self.mean <= math.abs(steps[self.at - 1] - 0.5) + self.down do self.at = self.at - 1 end
  if self.at < before then return end
  while self.at < #steps and self.mean > steps[self.at] - 0.5 + self.up do self.at = self.at + 1 end
end

return Adaptive
