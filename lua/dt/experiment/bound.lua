-- Upper bounds on speed: the least time of a text, by the costs of passes, for a policy that knew the next tokens.
--
--   local of = assert(bound.of(pair, request, plain, costs, times))   -- costs, times: from dt.measure_costs
--   print(of.plain.ms / of.chain.ms, of.chain.iterations)             -- of.tree: the same with trees
--
-- At each position of the text, the draft model drafts along the tokens that actually follow. This shows up to which
-- depth its likeliest guess (a chain) or one of its candidates (a tree) is right. The same is recorded for a copy of
-- what followed an earlier occurrence of the last tokens, which costs no pass. The bound is the cheapest way through
-- the text with right guesses only, found by dynamic programming. No policy with these guesses is faster, except for
-- costs that the table does not contain.
local experiment = require "dt.experiment"
local json = require "dt.json"
local progress = require "dt.api.progress"
local record = require "dt.record"
local shard = require "dt.shard"

local bound = { CHAIN = "bound of chains", TREE = "bound of trees" } -- labels of the arms of bound.run

local DEEPEST, CANDIDATES = 12, 32 -- guesses in an iteration at most; candidates that the bound of trees considers

-- Logs at each position r1, r2, ..: the ranks of the tokens that follow among the draft's candidates (0: not among
-- them); and `copy`: how many tokens of a copy would be right.
local LEAD = [[
local policy = require "dt.policy"
local Lead = policy.define { name = "lead", uses = { draft = "optional" } }
local TEXT <const> = { %s }
function Lead:draft(tree)
  local seq, u = tree.seq, 0
  self.first = self.first or seq:length()
  local at, right = seq:match(), 0
  local done = seq:length() - self.first
  local function comes(i) return TEXT[done + i] end
  while at and right < %d and comes(right + 1) do
    local i = at + right + 1
    local copied = i <= seq:length() and seq:token(i) or comes(i - seq:length())
    if copied ~= comes(right + 1) then break end
    right = right + 1
  end
  seq:log("copy", right)
  for depth = 1, seq.drafts and math.min(%d, tree:depth_room()) or 0 do
    if not comes(depth) then break end
    tree:draft_step(u)
    local rank = tree:rank(u, comes(depth)) or 0
    seq:log("r" .. depth, rank)
    if rank == 0 then break end
    u = tree:add(u, comes(depth))
  end
  if tree:size() > 0 then tree:keep(0) end
end
return Lead]]

-- Returns the least time in ms of n tokens after `before` tokens, and its number of iterations; at[i]: what was logged
-- before token i.
local function least(at, n, before, most_rank, costs, sampling)
  local ms_from, next_of = { [n + 1] = 0 }, {}
  for i = n, 1, -1 do
    local context, log, ms, drafted = before + i - 1, at[i] or {}, 0, 0
    ms_from[i] = math.huge
    for depth = 0, math.min(DEEPEST, n - i) do
      if depth > (log.copy or 0) then
        local rank = log["r" .. depth] or 0
        if rank == 0 or rank > most_rank then break end
        local again = costs:block() == 0 and costs:draft(1, context) or 0 -- a block head guesses all in one pass
        ms = ms + (drafted == 0 and costs:first(context) or again) + sampling.draft
        drafted = drafted + 1
      end
      local rows = depth + 1
      local whole = ms + costs:target(rows, context) + rows * sampling.target + ms_from[i + rows]
      if whole < ms_from[i] then ms_from[i], next_of[i] = whole, i + rows end
    end
  end
  local iterations, i = 0, 1
  while i <= n do iterations, i = iterations + 1, next_of[i] end
  return { ms = ms_from[1], iterations = iterations }
end

-- Returns the bounds of a text: { plain = {ms =, iterations =}, chain =, tree = }; or nil and a failure. plain: the
-- result of plain decoding for the text; request: the options of pair:generate that made it.
function bound.of(pair, request, plain, costs, times)
  local path, options = os.tmpname(), {}
  for key, value in pairs(request) do options[key] = value end
  options.policy, options.source = "lead.lua", LEAD:format(table.concat(plain.tokens, ","), DEEPEST, DEEPEST)
  options.preset, options.params, options.trace, options.brief = nil, nil, path, nil
  local result, failure = pair:generate(options)
  local at = {}
  for line in result and io.lines(path) or function() end do
    local iteration = json.decode(line)
    if iteration.nodes then at[#at + 1] = iteration.log end
  end
  os.remove(path)
  if not result then return nil, failure end
  assert(result.stats.output_hash == plain.stats.output_hash, "bound.of: the policy changed the text")
  local sampled, n, before, ms = (request.temp or 0) > 0, #at, plain.prompt_tokens, 0
  local sampling = { target = sampled and times.target_sample or 0, draft = sampled and times.draft_sample or 0 }
  for i = 1, n do ms = ms + costs:target(1, before + i - 1) + sampling.target end
  return { plain = { ms = ms, iterations = n }, chain = least(at, n, before, 1, costs, sampling),
           tree = least(at, n, before, CANDIDATES, costs, sampling) }
end

-- The speed of a bound: that of plain decoding, with its time after the prompt divided by the speedup according to the
-- costs.
local function speed_of(stats, speedup)
  local tokens, prompt = stats.tokens_per_iteration * stats.iterations, stats.time_ms.prompt
  return 1000 * tokens / (prompt + (1000 * tokens / stats.tokens_per_second - prompt) / speedup)
end

-- The record of a bound; plain: the runs of plain decoding of the same text.
local function run_of(label, plain, of, way)
  local run, speed = {}, 0
  for key, value in pairs(plain[1]) do run[key] = value end
  for _, each in ipairs(plain) do speed = speed + speed_of(each.stats, of.plain.ms / way.ms) / #plain end
  run.arm, run.bound, run.policy, run["repeat"] = label, true, "lead", 1
  run.source, run.costs, run.tries, run.disturbed = nil, nil, nil, nil
  run.stats = { tokens_per_second = speed, output_hash = plain[1].stats.output_hash,
                iterations = way.iterations, tokens_per_iteration = of.plain.iterations / way.iterations }
  return run
end

-- The number of runs of each of the two arms, for the argument `settings` of experiment.run.
function bound.settings(t)
  local n = #t.prompts * #t.tokens
  return { [bound.CHAIN] = n, [bound.TREE] = n }
end

-- Adds the bounds of its texts, as two arms, to an experiment that was run, unless other shards have them. t: the
-- argument of experiment.run; head: the head it returned. Returns as experiment.run does; if called again, it
-- continues.
function bound.run(t, head, costs, times)
  local file, message, kind = record.open(t.out, head)
  if not file then return nil, message, kind end
  local own, done, plain, bar = shard.own(head), {}, {}, progress(#t.prompts * #t.tokens)
  for _, run in ipairs(file.runs) do
    local case = record.case(run)
    done[case .. run.arm] = true
    if run.arm == record.BASELINE then
      plain[case] = plain[case] or {}
      table.insert(plain[case], run)
    end
  end
  for _, prompt in ipairs(t.prompts) do
    for _, tokens in ipairs(t.tokens) do
      local case, runs = record.case { set = prompt.set, prompt = prompt.name, tokens = tokens }, {}
      local function wanted(label) return own[label] and not done[case .. label] end
      if wanted(bound.CHAIN) or wanted(bound.TREE) then
        local request, of = experiment.request(t, prompt, tokens), nil
        local result, failure = t.pair:generate(request)
        if result then of, failure = bound.of(t.pair, request, result, costs, times) end
        if not of then return nil, failure.message, failure.kind end
        for label, way in pairs { [bound.CHAIN] = of.chain, [bound.TREE] = of.tree } do
          if wanted(label) then runs[#runs + 1] = run_of(label, plain[case], of, way) end
        end
      end
      local ok
      ok, message = file:append_all(runs)
      if not ok then return nil, message, "device" end
      bar:step()
    end
  end
  return { head = file.head, runs = file.runs }
end

return bound
