-- A policy made at random from a seed. It calls all of policies/REFERENCE.md, with arguments good and bad:
--
--   local random_policy = dofile "random_policy.lua"
--   local source = random_policy(7, 50)   -- the policy of the seed 7, for a pair with 50 tokens
--
-- Most calls that may raise are made in a pcall. Some are not, and then the policy ends its run. So that a run is short
-- whatever its trees are like, each policy grows none, or raises, after some iterations.

-- What fills a tree to the engine's bounds; `t` is the tree, %d a size.
local SHAPES = {
  "for i = 1, %d do t:add(0, i %% vocab, -i / 9) end",            -- one level
  "local v = 0 for i = 1, %d do v = t:add(v, i %% vocab) or v end", -- a chain
  [[local v = 0 for i = 1, %d do
      local w = t:add(v, i %% vocab)
      if w and i %% 2 == 0 then v = w end
    end]],                                                        -- a comb
  "for i = 1, %d do t:add(math.random(0, t:size()), math.random(0, vocab - 1), -math.random()) end",
  "for i = 1, %d do t:add(t:size() // 3, i %% vocab, -1) end",
  [[local f = { 0 } for _ = 1, %d // 16 do
      local a, b = policy.expand(t, f, #f, 2)
      if b < a then break end
      f = t:best(8, a, b)
    end]],
  [[local f, n = { 0 }, 1 for _ = 1, %d // 8 do
      t:draft_step(f, n)
      local a, b = t:branch_best(f, 9, n)
      n = #t:best(4, a, b, f)
    end]],
  "for i = 1, %d // 8 do t:draft_step(t:size()) t:branch(t:size(), 3) end",
  "t:draft_step(0) t:branch(0, %d) t:draft_step(all(t)) for u = 1, t:size() do t:branch(u, 2) end",
}
local SIZES = { 1, 3, 9, 30, 100, 255, 256, 257, 511, 512, 513, 600, 1500, 4095, 4096, 5000 }

-- Arguments.
local BAD = { "-1", "t:size() + 1", "4097", "2^53", "math.mininteger", "math.maxinteger", "1.5", "0/0", "math.huge",
              "'x'", "'1'", "true", "nil", "{}", "t", "t.seq", "print", "setmetatable({}, { __index = error })" }
local NODES = { "0", "t.root", "t:size()", "math.random(0, t:size())", "1", "2" }
local INTEGERS = { "0", "1", "2", "3", "5", "8", "31", "32", "33", "200", "256", "512", "4096", "math.random(0, 300)" }
local LOGPS = { "0", "-1.5", "-math.huge", "1", "0/0", "'x'" }
local LISTS = { "{}", "{ 0 }", "{ 0, 0, 1, 1 }", "all(t)", "some(t)", "closed(t)", "{ t:size() }", "t:best(9)",
                "{ 0, -1 }", "{ 0, 'x' }", "{ 1.0, 2.5 }", "kept.list or {}",
                "setmetatable({ 0 }, { __len = function() return 9 end })" }
local KEEPS = { "1", "0", "9", "256", "257", "closed(t)", "all(t)", "some(t)", "t:best(40)" }
local KEYS = { "1", "math.random(0, 99)", "-7", "'key'", "('k'):rep(math.random(999))", "t:size()", "''" }
local VALUES = { "1", "2.5", "true", "nil", "'text'", "('v'):rep(60000)", "{ 1, 2.5 }", "all(t)", "{}", "math.huge" }
local NAMES = { "'a'", "'x.y-z_9'", "('n'):rep(math.random(40))", "'n' .. math.random(20)" }
local READS = { "p", "logp", "cumlogp", "depth", "parent", "token", "confidence", "entropy", "accepted",
                "drafted", "forced" }

-- Available to every policy; what is `kept` survives an iteration, so that stale objects are used.
local HEAD = [[
local policy = require "dt.policy"
local vocab, kept, turns = %d, {}, 0
local function all(t)
  local list = {}
  for u = 0, t:size() do list[u + 1] = u end
  return list
end
local function some(t)
  local list = {}
  for _ = 1, 20 do list[#list + 1] = math.random(0, t:size()) end
  return list
end
local function closed(t)
  local list = {}
  for u = 1, math.min(t:size(), 300) do
    if u < 4 or t:parent(u) < u / 2 then list[#list + 1] = u end
  end
  return list
end
local P = policy.define {
  name = "random", scope = "%s", uses = { draft = %s, costs = %s%s%s%s }, presets = { two = { K = 2 } },
  params = { { "K", 3, min = 1, max = 9, doc = "a number" }, { "rebuild", %s }, { "L", { %s } } },
}]]

local function pick(list) return list[math.random(#list)] end
local function chance(p) return math.random() < p end
local function argument(good, badness) return chance(badness) and pick(BAD) or pick(good) end
local function node(b) return argument(NODES, b) end
local function integer(b) return argument(INTEGERS, b) end
local function list(b) return argument(chance(0.2) and NODES or LISTS, b) end
local function model(b) return chance(0.4) and ", { model = " .. argument({ "1", "2" }, b) .. " }" or "" end
local function optional(...) return chance(0.5) and ", " .. table.concat({ ... }, ", ") or "" end

-- Each makes one statement, of whose arguments each is bad with probability b.
local CALLS = {
  function(b) return ("t:limit(%s)"):format(argument({ "1", "9", "256", "257", "512", "4096" }, b)) end,
  function(b) return ("t:draft_step(%s%s%s)"):format(list(b), optional(integer(b)), model(b)) end,
  function(b) return ("t:draft_step(%s)"):format(chance(0.5) and "all(t)" or node(b)) end,
  function(b) return ("t.seq:draft_step(%s%s%s)"):format(list(b), optional(integer(b)), model(b)) end,
  function(b)
    return ("t:draft_chain(%s, %s%s%s)"):format(node(b), integer(b), optional(pick { "0.3", "1" }), model(b))
  end,
  function(b) return ("t:branch(%s, %s)"):format(node(b), integer(b)) end,
  function(b) return ("t:branch_best(%s, %s%s)"):format(list(b), integer(b), optional(integer(b))) end,
  function(b) return ("t:add(%s, %s%s)"):format(node(b), integer(b), optional(pick(LOGPS))) end,
  function(b)
    local range = optional(node(b), node(b), chance(0.5) and "kept.list" or "nil")
    return ("kept.list = t:best(%s%s)"):format(integer(b), range)
  end,
  function(b) return ("t:%s(%s)"):format(pick(READS), node(b)) end,
  function(b) return ("t:tag(%s, %s)"):format(node(b), argument(NAMES, b)) end,
  function(b) return ("t.seq:log(%s, %s)"):format(argument(NAMES, b), argument({ "t:size()", "0.5" }, b)) end,
  function(b) return ("t.seq:pause(%s)"):format(argument({ "0", "1", "3" }, b)) end,
  function(b) return ("t:candidate(%s, %s)"):format(node(b), integer(b)) end,
  function(b) return ("t:allowed(%s, %s)"):format(node(b), integer(b)) end,
  function(b) return ("policy.expand(t, %s, %s, %s)"):format(list(b), integer(b), integer(b)) end,
  function(b) return ("if kept.out then kept.out:candidates(%s, %s) end"):format(node(b), integer(b)) end,
  function(b) return ("t.seq:token(%s)"):format(argument({ "1", "t.seq:length()" }, b)) end,
  function() return "local _ = t:size() + t:room() + t:depth_room() + t.seq:length() + t.seq:left() + t.seq.id" end,
  function(b) return ("t.seq:unread(%s)"):format(argument({ "1", "2", "nil" }, b)) end,
  function(b) return ("t.%s(%s, %s)"):format(pick(READS), pick { "t.seq", "kept.tree", "nil", "t" }, node(b)) end,
  function() return "kept.tree, kept.seq = t, t.seq" end,
  function(b) return ("if kept.tree then kept.tree:add(%s, 1) end"):format(node(b)) end,
  function(b) return ("if kept.tree then kept.tree:draft_step(%s) end"):format(list(b)) end,
  function()
    return ("if kept.seq then kept.seq:%s() end"):format(pick { "length", "rollback", "verify_tree", "commit", "left" })
  end,
  function() return ("return t.%s, t.seq.%s"):format(pick { "x", "braanch" }, pick { "temp", "nothing" }) end,
  function() return ("t.%s = 1"):format(pick { "root", "seq", "size", "x" }) end,
  function(b) return ("local w = policy.window(%s) w:push(%s) w:mean() w:n()"):format(integer(b), integer(b)) end,
  function(b) return ("policy.clip(%s, 1, %s)"):format(integer(b), integer(b)) end,
  function(b)
    local who = pick { "target", "draft" }
    local more = chance(0.3) and optional(integer(b), argument({ "1", "2" }, b)) or optional(integer(b))
    return ("self.costs:%s(%s, %s%s)"):format(who, integer(b), integer(b), more)
  end,
  function(b) return ("self.costs:target(1, 1, nil, %s)"):format(integer(b)) end,
  function(b) -- what a policy finds is what earlier policies, or none, left: the policies run in one process
    return ("self.memory:set(%s, %s) self.memory:room()"):format(argument(KEYS, b), argument(VALUES, b))
  end,
  function(b) return ("t:add(%s, self.memory:get(%s) or 1)"):format(node(b), argument(KEYS, b)) end,
  function(b)
    local where = argument({ "'text'", "'rest'" }, b)
    return ([[local m = self.corpus:longest(t.seq, %s%s)
      for _, place in ipairs(self.corpus:places(t.seq, %s, %s%s)) do
        t:add(%s, self.corpus:token(t.seq, place + 1) or 0)
      end]]):format(where, optional(integer(b)), where, chance(0.7) and "m" or integer(b), optional(integer(b)),
      node(b))
  end,
  function(b) return ("self.corpus:token(t.seq, %s)"):format(integer(b)) end,
  function(b) return ("for i, n in ipairs(self.L) do t:branch(%s, n) t:add(i - 1, n) end"):format(node(b)) end,
  function() return "self.L[1] = t:best(self.L[#self.L])[1]" end,
}

local function guarded(statement) return ("pcall(function() %s end)"):format(statement) end

local function add(lines, format, ...) lines[#lines + 1] = format:format(...) end

-- A function `name` that grows the tree t.
local function add_growth(lines, name)
  add(lines, "local function %s(self, t)", name)
  local limit = chance(0.5)
  if limit then add(lines, "t:limit(%s)", pick { "4096", "600", "256", "30", "3" }) end
  for _ = 1, math.random(0, 6) do
    local draw, bad, statement = math.random(), pick { 0, 0.1, 0.4 }, "t:draft_step(all(t))"
    if draw < 0.35 then
      statement = pick(SHAPES):format(pick(SIZES))
    elseif draw < 0.85 then
      statement = pick(CALLS)(bad)
    end
    lines[#lines + 1] = bad == 0 and chance(0.3) and "do " .. statement .. " end" or guarded(statement)
  end
  if limit or chance(0.5) then
    lines[#lines + 1] = guarded(("t:keep(%s)"):format(chance(0.8) and pick(KEEPS) or list(0.3)))
  end
  if chance(0.1) then lines[#lines + 1] = guarded(pick(CALLS)(0.2)) end
  add(lines, "end")
end

-- A step of the policy's own: detours around draft, verify and commit.
local function add_step(lines, batch)
  add(lines, "function P:step(s)")
  if not batch and chance(0.5) then
    add(lines, "for _ = 1, math.random(0, %s) do self:draft(s.tree) %s s:rollback() end", pick { "1", "3", "8", "9" },
      chance(0.5) and "s:verify_tree()" or "")
  end
  if chance(0.2) then lines[#lines + 1] = guarded "s:commit()" end
  add(lines, batch and "self:draft(s)" or "self:draft(s.tree)")
  add(lines, "local out = s:verify_tree()")
  if chance(0.2) then
    local late = pick { ":verify_tree()", ".tree:add(0, 1)", ".tree:draft_step(0)", ".tree:keep(1)" }
    lines[#lines + 1] = guarded("s" .. late)
  end
  add(lines, "s:commit(%s)", pick { "", "{ rebuild = true }", "{ rebuild = math.random(2) == 1 }" })
  if chance(0.2) then lines[#lines + 1] = guarded(pick { "s:commit()", "s:rollback()", "s:verify_tree()" }) end
  add(lines, batch and "self:observe(s, out) end" or "self:observe(s.tree, out) end")
end

local function add_observe(lines, batch)
  add(lines, batch and "function P:observe(b, outs) local t, out = b[1], outs[1]" or "function P:observe(t, out)")
  add(lines, "kept.out = out")
  if chance(0.5) then
    lines[#lines + 1] = guarded("for u = 0, t:size() do out:candidates(u, 1) end t:add(0, (out:candidates(0, 1)))")
  end
  for _ = 1, math.random(4) do lines[#lines + 1] = guarded(pick(CALLS)(0.1)) end
  add(lines, "kept.sum = out.bonus + out.drafted + out.depth + out.accepted + #out.path + out.committed end")
end

local function add_draft(lines, batch)
  add(lines, "function P:draft(x)")
  add(lines, "turns = turns + 1 if turns > %d then %s end", math.random(2, 20), pick { 'error "enough"', "return" })
  if chance(0.2) then -- the draft model is first asked after some of the text, which it then reads with the prompt
    add(lines, "if turns < %d then local t = %s return t:add(0, (t.seq:token(t.seq:length()) + 1) %% vocab) end",
      math.random(2, 6), batch and "x[1]" or "x")
  end
  if not batch then
    add(lines, "(turns %% 2 == 1 and grow or other)(self, x) end")
    return
  end
  if chance(0.5) then
    local nodes = {}
    for i = 1, 4 do nodes[i] = chance(0.7) and list(0.05) or "nil" end
    add(lines, "local t = x[1]")
    lines[#lines + 1] = guarded(("x:draft_step({ %s }%s%s)"):format(table.concat(nodes, ", "), optional(integer(0.2)),
      model(0.2)))
  end
  add(lines, "for i = 1, #x do (i %% 2 == 1 and grow or other)(self, x[i]) end end")
end

return function(seed, vocab)
  math.randomseed(seed)
  local batch, lines = chance(0.2), {}
  add(lines, HEAD, vocab, batch and "batch" or "sequence", chance(0.85), chance(0.1),
    chance(0.5) and ", target = " .. math.random(8) or "", chance(0.3) and ", memory = true" or "",
    chance(0.3) and ", corpus = true" or "", chance(0.2), pick { "2, 3", "0, 1, 9", "5" })
  add_growth(lines, "grow")
  add_growth(lines, "other")
  add_draft(lines, batch)
  if chance(0.3) then add_observe(lines, batch) end
  if chance(0.3) then add_step(lines, batch) end
  if chance(0.1) then
    add(lines, "function P:init(x) local t = x%s", batch and "[1]" or ".tree")
    lines[#lines + 1] = guarded(pick(CALLS)(0.1)) .. " end"
  end
  add(lines, "return P")
  return table.concat(lines, "\n")
end
