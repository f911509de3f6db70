-- DynaTree (Chen, Liu, Li 2026): a tree that is narrow where the draft model is confident (breadth), deep along likely
-- paths (depth), and tuned after every iteration by the part of it that was accepted (history). Each of the three has a
-- switch; without all three this is fixed_tree with B = B_mid and D = D0.
--
-- Depths count as in the paper, from the first drafted token: d(u) is tree:depth(u) - 1, the root has d = -1. p(u) is
-- the probability of the path to u under the draft model, c(u) the confidence after u.
local policy = require "dt.policy"
local clip, round = policy.clip, policy.round

local DynaTree = policy.define {
  name   = "dynatree",
  doc    = "breadth by confidence, depth by path probability, both adapted to recent acceptance",
  uses   = { calibrate = true },
  params = {
    { "breadth", true, doc = "B(u) from c(u); off: B_mid everywhere" },
    { "depth", true, doc = "expand by p(u), beyond D0 up to D_max; off: expand while d(u) < D0" },
    { "history", true, doc = "adapt D0 and tau_h (threshold control: rho_deep too) to recent acceptance" },
    { "B_min", 1, min = 1, max = 32, tune = { 1, 3 }, doc = "children of u where c(u) >= tau_h" },
    { "B_mid", 2, min = 1, max = 32, tune = { 1, 4 }, doc = "children of u in between" },
    { "B_max", 3, min = 1, max = 32, tune = { 1, 6 }, doc = "children of u where c(u) < tau_l" },
    { "tau_h", 0.9, min = 0, max = 1, doc = "high confidence" },
    { "tau_l", 0.4, min = 0, max = 1, doc = "low confidence" },
    { "D0", 5, min = 1, max = 64, tune = { 1, 10 },
      doc = "base depth: beyond it only nodes with p(u) > rho_deep are expanded" },
    { "D_max", 8, min = 2, max = 64, tune = { 2, 14 }, doc = "only nodes with d(u) < D_max are expanded" },
    { "rho_stop", 0.1, min = 0, max = 1, doc = "only nodes with p(u) >= rho_stop are expanded" },
    { "rho_deep", 0.5, min = 0, max = 1, doc = "path probability that allows depths from D0 on" },
    { "tau", 0.05, min = 0, max = 1, tune = false, doc = "pruning: a node with p(u) < tau is never expanded" },
    { "N_max", 256, min = 1, max = 256, tune = false, doc = "maximum number of drafted nodes per iteration" },
    { "W", 10, min = 1, max = 1000, tune = false, doc = "number of iterations over which acceptance is averaged" },
    { "a_star", 0.7, min = 0, max = 1, doc = "target value of the acceptance" },
    { "control", "proportional", one_of = { "proportional", "threshold" }, tune = false,
      doc = "how history adapts" },
    { "eta_D", 1.0, min = 0, max = 64, tune = { 0, 4 }, doc = "proportional control: step of D0" },
    { "eta_h", 0.05, min = 0, max = 1, tune = false, doc = "proportional control: step of tau_h" },
    { "statistic", "path", one_of = { "path", "tree" }, tune = false,
      doc = "acceptance: accepted nodes over the depth of the tree, or over all drafted nodes" },
    { "root_branch", nil, type = "integer", min = 1, max = 32, tune = false,
      doc = "children of the root (not set: B(root))" },
    { "rebuild", false, tune = false, doc = "commit by running the accepted tokens through the target again" },
  },
  presets = {
    as_published = { root_branch = 1, rebuild = true },
    -- chosen with the bundled pair, whose weights fit into caches, so that additional rows are expensive
    narrow = { B_mid = 1, B_max = 2, rho_stop = 0.3 },
  },
  check   = function(p)
    if p.B_min > p.B_mid or p.B_mid > p.B_max then return "B_min <= B_mid <= B_max is required" end
    if p.tau_l > p.tau_h then return "tau_l <= tau_h is required" end
    if p.depth and p.D0 >= p.D_max then return "D0 < D_max is required while depth is on" end
    if p.depth and p.rho_stop > p.rho_deep then return "rho_stop <= rho_deep is required while depth is on" end
    if p.history and p.control == "threshold" and p.D_max < 3 then return "threshold control needs D_max >= 3" end
  end,
}

function DynaTree:init()
  self.level, self.below = {}, {} -- nodes of a level to expand, and those of the next level
  self.recent = policy.window(self.W)
end

function DynaTree:draft(tree)
  local breadth, depth, tau = self.breadth, self.depth, self.tau
  local B_min, B_mid, B_max, tau_h, tau_l = self.B_min, self.B_mid, self.B_max, self.tau_h, self.tau_l
  local D0, rho_deep = round(self.D0), self.rho_deep
  local deepest = depth and self.D_max or D0
  local floor = depth and math.max(self.rho_stop, tau) or tau -- nodes below it are not expanded
  local fewest = breadth and B_min or B_mid                   -- minimum number of children of an expanded node
  local level, below = self.level, self.below
  tree:limit(self.N_max)
  level[1] = tree.root
  local n, d, branch = 1, -1, self.root_branch
  while n > 0 and tree:room() > 0 and tree:depth_room() > 0 do
    n = math.min(n, (tree:room() + fewest - 1) // fewest) -- beyond the budget, nodes of this level stay leaves
    tree:draft_step(level, n)
    d = d + 1
    local m, deep = 0, depth and d >= D0
    for i = 1, n do
      local u = level[i]
      local b = branch or B_mid
      if breadth and not branch then
        local c = tree:confidence(u)
        b = c >= tau_h and B_min or c < tau_l and B_max or B_mid
      end
      local first, last = tree:branch(u, b)
      if d < deepest then
        for v = first, last do
          local p = tree:p(v)
          if p >= floor and (not deep or p > rho_deep) then
            m = m + 1
            below[m] = v
          end
        end
      end
    end
    level, below, n, branch = below, level, m, nil
  end
end

function DynaTree:observe(_, out)
  if not self.history or out.drafted == 0 then return end
  local recent = self.recent
  recent:push(out.accepted / (self.statistic == "path" and out.depth or out.drafted))
  local excess = recent:mean() - self.a_star
  if self.control == "proportional" then
    self.D0 = clip(self.D0 + self.eta_D * excess, 1, self.D_max - 1)
    self.tau_h = clip(self.tau_h - self.eta_h * excess, 0, 1)
  elseif recent:n() >= 5 and math.abs(excess) > 0.1 then
    local step = excess > 0 and 1 or -1
    self.D0 = clip(self.D0 + step, 2, self.D_max - 1)
    self.tau_h = clip(self.tau_h - 0.05 * step, 0.5, 0.95)
    self.rho_deep = clip(self.rho_deep - 0.05 * step, 0.3, 0.8)
  end
end

return DynaTree
