-- Traces, schema dtrun.trace/1, as pair:generate writes them.
local dt = require "dt"
local lu = require "luaunit"
local reader = require "dt.trace"
local probe = dofile(arg[0]:match "^(.*/)" .. "probe.lua")

-- The lines of a run under trace, and its result.
local function traced(pair, request)
  request.trace = os.tmpname()
  local result, err = pair:generate(request)
  local lines = {}
  for line in io.lines(request.trace) do lines[#lines + 1] = assert(dt.json.decode(line)) end
  os.remove(request.trace)
  return lines, result, err
end

TestTrace = {}

function TestTrace.test_the_first_line_says_what_ran_and_the_last_how_it_ended()
  local pair = probe.fake()
  local lines = traced(pair, { policy = "linear", params = { K = 2 }, prompt = " 1 7", tokens = 9, seed = 5 })
  local head = lines[1]
  lu.assertEquals({ head.schema, head.policy, head.params, head.seed, head.prompt, head.prompt_tokens },
    { "dtrun.trace/1", "linear", { K = 2 }, "5", " 1 7", 2 })
  lu.assertEquals(head.backend, pair.backend)
  local last = lines[#lines]
  lu.assertEquals({ last.finish_reason, last.tokens }, { "length", 9 })
  lu.assertTrue(last.total_ms > 0)
end

-- After 1 come 2 and 3; the target takes 2, then 6, where the draft model expects 4 and 5.
local DRAFT = { [1] = { [2] = 0.5, [3] = 0.25 }, [2] = { [4] = 0.5, [5] = 0.25 }, [3] = { [7] = 0.5, [8] = 0.125 } }
local TARGET = { [1] = 2, [2] = 6 }

function TestTrace.test_an_iteration_tells_nodes_verdicts_and_what_was_committed()
  local pair = probe.fake(DRAFT, TARGET)
  local iteration = traced(pair, {
    policy = "eagle2", params = { depth = 2, top_k = 2, total = 4 }, prompt = " 1", tokens = 20,
  })[2]
  lu.assertEquals({ iteration.iteration, iteration.length, iteration.rollbacks }, { 1, 1, 0 })
  for _, node in ipairs(iteration.nodes) do node.confidence, node.entropy = node.confidence and true, nil end
  for i = 2, #iteration.nodes do
    lu.assertAlmostEquals(iteration.nodes[i].logp, math.log(({ 0.5, 0.25, 0.5, 0.25, 0.5, 0.125 })[i - 1]), 1e-6)
    iteration.nodes[i].logp = nil
  end
  lu.assertEquals(iteration.nodes, {
    { id = 0, token = 1, text = " 1", confidence = true },
    { id = 1, parent = 0, token = 2, text = " 2", p = 0.5, q = 0.5, confidence = true, kept = true, accepted = true },
    { id = 2, parent = 0, token = 3, text = " 3", p = 0.25, q = 0.25, confidence = true, kept = true,
      accepted = false },
    { id = 3, parent = 1, token = 4, text = " 4", p = 0.25, q = 0.5, kept = true, accepted = false },
    { id = 4, parent = 1, token = 5, text = " 5", p = 0.125, q = 0.25, kept = true, accepted = false },
    { id = 5, parent = 2, token = 7, text = " 7", p = 0.125, q = 0.5, kept = false },
    { id = 6, parent = 2, token = 8, text = " 8", p = 0.03125, q = 0.125, kept = false },
  })
  lu.assertEquals(iteration.bonus, { token = 6, text = " 6" })
  lu.assertEquals(iteration.committed, {
    { token = 2, text = " 2", origin = "drafted" }, { token = 6, text = " 6", origin = "corrected" },
  })
  for _, part in ipairs { "draft", "verify", "commit", "policy" } do lu.assertTrue(iteration.ms[part] >= 0) end
end

function TestTrace.test_a_bonus_token_behind_the_last_guess_is_no_correction()
  local draft, target = probe.circle()
  local lines = traced(probe.fake(draft, target), { policy = "linear", params = { K = 1 }, prompt = " 1", tokens = 9 })
  lu.assertEquals(lines[2].committed[2], { token = 3, text = " 3", origin = "bonus" })
end

function TestTrace.test_the_block_is_cut_where_the_text_ends()
  local draft, target = probe.circle()
  local request = { policy = "linear", params = { K = 6 }, prompt = " 1", tokens = 20, stop = " 4" }
  local lines = traced(probe.fake(draft, target), request)
  lu.assertEquals(#lines, 3)
  local committed = lines[2].committed
  lu.assertEquals({ committed[1].text, committed[2].text, committed[3].text, #committed }, { " 2", " 3", "", 3 })
end

local COPIED = [[{"nodes": [{"id": 0, "token": 1, "text": "a"},
  {"id": 1, "parent": 0, "token": 2, "text": "b", "p": 0.5, "kept": true},
  {"id": 2, "parent": 0, "token": 3, "text": "c", "p": 0.5, "kept": true, "copied": true}],
  "bonus": {"token": 3, "text": "c"}, "committed": []}]]

function TestTrace.test_rollbacks_are_counted_and_only_the_last_tree_is_told()
  local source = [[
    local P = require "dt.policy".define { name = "twice" }
    function P.step(_, seq)
      for b = 1, 3 do
        if b > 1 then seq:rollback() end
        seq.tree:draft_step(0)
        seq.tree:branch(0, b)
      end
      seq:verify_tree()
      seq:commit()
    end
    return P]]
  local iteration = traced(probe.fake(), { source = source, prompt = " 1", tokens = 5 })[2]
  lu.assertEquals({ iteration.rollbacks, #iteration.nodes }, { 2, 4 })
end

function TestTrace.test_tokens_that_the_draft_did_not_name_are_copied()
  local source = [[
    local P = require "dt.policy".define { name = "mixed" }
    function P:draft(tree)
      tree:draft_step(0)
      tree:branch(0, 1)
      tree:add(0, 49, -1)
      tree:add(0, 3, -1)
      tree:add(1, 4, -1)
    end
    return P]]
  local found = {}
  for _, node in ipairs(traced(probe.fake(DRAFT, TARGET), { source = source, prompt = " 1", tokens = 9 })[2].nodes) do
    found[#found + 1] = { node.token, node.copied }
  end
  lu.assertEquals(found, { { 1 }, { 2 }, { 49, true }, { 3 }, { 4, true } }) -- node 1 was not drafted from
  local drawing = require "dt.trace_trees".draw({ require "dt.json".decode(COPIED) }, false)[1]
  lu.assertStrMatches(drawing, ".*<g class='kept copied'><title>.-copied.-</title><rect [^>]- rx='0'/>.*")
  lu.assertEquals(select(2, drawing:gsub("rx='0'", "")), 1)
end

function TestTrace.test_no_frame_of_a_tree_is_cut()
  for _, by_dot in ipairs { true, false } do
    local drawing = require "dt.trace_trees".draw({ require "dt.json".decode(COPIED) }, by_dot)[1]
    local width, height = drawing:match "viewBox='0 0 (%S+) (%S+)'"
    local frames = 0
    for x, y, w, h in drawing:gmatch "<rect x='(%S+)' y='(%S+)' width='(%S+)' height='(%S+)'" do
      frames = frames + 1
      lu.assertTrue(x - 2 >= 0 and y - 2 >= 0 and x + w + 2 <= width - 0 and y + h + 2 <= height - 0)
    end
    lu.assertTrue(frames > 1)
  end
end

function TestTrace.test_what_a_failing_policy_had_committed_is_there()
  local source = [[
    local P = require "dt.policy".define { name = "fails" }
    function P:draft() self.n = (self.n or 0) + 1; assert(self.n < 4) end
    return P]]
  local lines, result, err = traced(probe.fake(), { source = source, prompt = " 1", tokens = 9 })
  lu.assertNil(result)
  lu.assertEquals(err.kind, "policy")
  lu.assertEquals(#lines, 1 + 3 + 1)
  lu.assertEquals(lines[5].finish_reason, "policy")
end

function TestTrace.test_the_pieces_are_the_text_and_the_tokens_are_the_same_with_and_without_a_trace()
  local pair = assert(dt.load {})
  for _, prompt in ipairs { "The café – it’s said – was naïve; été, “Ärger”, ", "It was a dark night, and" } do
    local request = { policy = "eagle2", prompt = prompt, tokens = 60, ignore_eos = true }
    local plain = assert(pair:generate(request))
    local lines, result = traced(pair, request)
    lu.assertEquals(result.tokens, plain.tokens)
    local tokens, pieces = {}, {}
    for i = 2, #lines - 1 do
      for _, token in ipairs(lines[i].committed) do
        tokens[#tokens + 1] = token.token
        pieces[#pieces + 1] = token.text
      end
    end
    lu.assertEquals(tokens, plain.tokens)
    lu.assertEquals(table.concat(pieces), plain.text)
    lu.assertEquals(lines[1].prompt, prompt)
  end
  pair:close()
end

function TestTrace.test_a_file_that_cannot_be_written_is_refused_before_anything_runs()
  local shown, file = false, os.tmpname()
  local path = file .. "/t.jsonl" -- in a file, where no other can be
  local result, err = probe.fake():generate {
    policy = "ar", prompt = " 1", tokens = 3, trace = path, on_text = function() shown = true end,
  }
  os.remove(file)
  lu.assertNil(result)
  lu.assertEquals({ err.kind, err.message, shown }, { "input", ("trace %s: Not a directory"):format(path), false })
end

function TestTrace.test_a_full_disk_loses_the_trace_and_nothing_else()
  local pair = probe.fake()
  local request = { policy = "linear", prompt = " 1", tokens = 200, ignore_eos = true }
  local plain = assert(pair:generate(request))
  request.trace = "/dev/full"
  local result, err = pair:generate(request)
  lu.assertNil(result)
  lu.assertEquals(err.kind, "device")
  lu.assertStrMatches(err.message, "trace /dev/full: No space left on device: it ends after about %d+ iterations")
  lu.assertEquals(err.partial.tokens, plain.tokens)
  lu.assertEquals(err.partial.finish_reason, "length")
end

TestReading = {}

local HEAD = '{"schema": "dtrun.trace/1", "prompt": "p", "policy": "linear"}'
local LINE = [[{"iteration": 1, "nodes": [{"id": 0, "token": 1, "text": "a"}, {"id": 1, "parent": 0, "token": 2,
  "text": "b", "p": 0.5, "kept": true}], "bonus": {"token": 3, "text": "c"}, "committed":
  [{"token": 3, "text": "c", "origin": "bonus"}], "ms": {"draft": 1, "verify": 1, "commit": 1, "policy": 1}}]]
LINE = LINE:gsub("\n", " ")

local function read(...)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(table.concat({ ... }, "\n"), "\n")
  file:close()
  local found, message = reader.read(path)
  os.remove(path)
  return found, message
end

function TestReading.test_a_line_of_wrong_types_is_left_out_and_said()
  lu.assertNil(select(2, read(HEAD, LINE)))
  for from, case in pairs {
    ['"p": 0.5'] = { '"p": 0.5, "logp": "x"', "node 1: logp, confidence or entropy is not a number" },
    ['"kept": true'] = { '"kept": "no"', "node 1: kept, accepted or copied is not true or false" },
    ['"parent": 0'] = { '"parent": 0, "copied": 1', "node 1: kept, accepted or copied is not true or false" },
    ['"iteration": 1'] = { '"iteration": [1]', "iteration or rollbacks is not a number" },
    ['"origin": "bonus"'] = { '"origin": 1', "a committed token without text or origin" },
    ['"draft": 1'] = { '"draft": "fast"', "no ms.draft" },
  } do
    local found, message = read(HEAD, LINE, (LINE:gsub(from, case[1])))
    lu.assertEquals(#found.iterations, 1, from)
    lu.assertStrContains(message, "1 of 3 lines left out, line 3: " .. case[2])
  end
  local found, message = read(HEAD, LINE, '{"finish_reason": "length", "tokens": "x", "total_ms": 1}')
  lu.assertNil(found.ending)
  lu.assertStrContains(message, "line 3: an end without tokens, total_ms or finish_reason")
end

function TestReading.test_a_head_of_wrong_types_is_no_trace()
  for _, more in ipairs { '"params": 5', '"params": {"K": []}', '"target": 1', '"draft": []', '"threads": "x"' } do
    local found, message = read(HEAD:sub(1, -2) .. ", " .. more .. "}", LINE)
    lu.assertNil(found, more)
    lu.assertStrContains(message, "not a trace")
  end
end

os.exit(lu.LuaUnit.run())
