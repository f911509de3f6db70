-- Does p mean what it says? For guesses after every accepted token, compares the predicted probabilities with how many
-- of the guesses came true, in ten bins of p; with the draft model's probabilities, and calibrated with what was
-- learned on the way. Texts that loop repeat the same guesses, right or wrong, over and over. Therefore there is a
-- third count, of each calibrated guess once; a guess is the same if the token and the eight tokens before it are. The
-- error is twice the standard error of the difference between the numbers that came true and that were predicted, if
-- texts, and not guesses, are the random samples. With --policy, that policy's own nodes are counted instead,
-- separately for each source that it names (tree:tag).
-- dtrun run tests/bench/reliability.lua [--prompts 16] [--tokens 200] [--temp 1] [--figure FOLDER]
--   [--share] [--policy rate] [--files FILE...] [--sets scripts/prompts/tasks/*.jsonl] [--template chatml]
--   [-m TARGET -md DRAFT]
local dt = require "dt"
local experiment = require "dt.experiment"
local figure = require "dt.draw.figure"

local opts = dt.args {
  doc = "compares predicted with actual acceptance, in bins of the probability of a guess",
  options = {
    { "prompts", 16, min = 1, max = 20, doc = "novels to continue, or texts of each set, each with its own seed" },
    { "files", many = "FILE", doc = "files with texts to use instead of the novels" },
    { "sets", many = "FILE.jsonl", doc = "sets of texts to use instead of the novels" },
    { "template", "", doc = "chatml: puts texts in ChatML" },
    { "tokens", 200, short = "n", min = 2, max = 1000, doc = "tokens of each" },
    { "temp", 0.0, min = 0, max = 100, doc = "temperature" },
    { "share", false, doc = "calibrates as rate does, which also learns a share" },
    { "policy", nil, type = "string", doc = "a policy whose nodes are counted, by their tags" },
    { "figure", nil, type = "string", doc = "a folder for a figure" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"
local CHATML = "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"
local CHILDREN, DEPTH = 8, 3
local LEAST = 50 -- minimum number of guesses of a bin in the figure
local SAME = 8 -- tokens that must also be equal for guesses to count as the same

-- Adds the likeliest child level by level, with some siblings, which are verified as well. The trace reports its
-- probabilities.
local SOURCE = [[
local policy = require "dt.policy"
local Wide = policy.define { name = "wide", params = { { "calibrate", false, doc = "learn a scale" } } }
function Wide:init() self.scale = policy.calibration(SHARE) end
function Wide:draft(tree)
  local u = tree.root
  if self.calibrate then self.scale:apply(tree) end
  for _ = 1, math.min(DEPTH, tree:depth_room()) do
    tree:draft_step(u)
    local first, last = tree:branch(u, CHILDREN)
    if last < first then break end
    u = first
  end
end
function Wide:observe(tree) self.scale:observe(tree) end
return Wide
]]

local function new_bins()
  local bins = {}
  for b = 1, 10 do bins[b] = { n = 0, said = 0, true_ = 0, texts = {} } end
  return bins
end

local function add(bins, text, p, accepted)
  local bin = bins[math.min(10, 1 + math.floor(10 * p))]
  local of = bin.texts[text] or { n = 0, more = 0 }
  bin.texts[text] = of
  bin.n, bin.said, bin.true_ = bin.n + 1, bin.said + p, bin.true_ + (accepted and 1 or 0)
  of.n, of.more = of.n + 1, of.more + (accepted and 1 or 0) - p
end

-- Counts a text's guesses in bins_of(node). `once` counts only guesses with a context that has not occurred before.
local function count(bins_of, once, text, result, file)
  local tokens, seen = table.move(result.prompt_ids, 1, #result.prompt_ids, 1, {}), {}
  table.move(result.tokens, 1, #result.tokens, #tokens + 1, tokens)
  for line in io.lines(file) do
    local iteration = dt.json.decode(line)
    local depth = { [0] = 0 }
    for _, node in ipairs(iteration.nodes or {}) do
      if node.parent then depth[node.id] = depth[node.parent] + 1 end
      if node.accepted ~= nil then
        local p = node.logp == dt.json.null and 0 or math.exp(node.logp)
        local last = iteration.length + depth[node.id] - 1
        local key = table.concat(tokens, " ", math.max(1, last - SAME + 1), last) .. " > " .. node.token
        add(bins_of(node), text, p, node.accepted)
        if not seen[key] then add(once, text, p, node.accepted) end
        seen[key] = true
      end
    end
  end
end

-- Twice the standard error of the share that came true minus the predicted share.
local function error_of(bin)
  local mean, sum = (bin.true_ - bin.said) / bin.n, 0
  for _, of in pairs(bin.texts) do sum = sum + (of.more - mean * of.n) ^ 2 end
  return 2 * math.sqrt(sum) / bin.n
end

local function texts()
  local files, list, of_set = opts.files, {}, {}
  for p = 1, #opts.sets + #files > 0 and 0 or opts.prompts do
    files[p] = ("%s../../scripts/prompts/novels/%02d.txt"):format(HERE, p)
  end
  for _, prompt in ipairs(dt.check(experiment.prompts { files = files, sets = opts.sets })) do
    of_set[prompt.set] = (of_set[prompt.set] or 0) + 1
    if of_set[prompt.set] <= opts.prompts then
      list[#list + 1] = opts.template == "chatml" and CHATML:format(prompt.text) or prompt.text
    end
  end
  return list
end

local pair, list = dt.check(dt.load(opts.load)), texts()
local trace = os.tmpname()
local source = SOURCE:gsub("DEPTH", DEPTH):gsub("CHILDREN", CHILDREN):gsub("SHARE", tostring(opts.share))

local function lines(sets)
  for b = 1, 10 do
    local cells = {}
    for i, bins in ipairs(sets) do
      local bin, n = bins[b], math.max(bins[b].n, 1)
      cells[i] = ("%7d  %.3f  %.3f  %.3f"):format(bin.n, bin.said / n, bin.true_ / n, bin.n > 0 and error_of(bin) or 0)
    end
    print(("%.1f..%.1f   %s"):format((b - 1) / 10, b / 10, table.concat(cells, "    ")))
  end
end

if opts.policy then
  local of, names = {}, {}
  local function bins_of(node)
    local name = node.tag or (node.copied and "copied" or "drafted")
    if not of[name] then
      of[name] = new_bins()
      names[#names + 1] = name
    end
    return of[name]
  end
  for p, text in ipairs(list) do
    local options = { policy = opts.policy, prompt = text, tokens = opts.tokens, ignore_eos = true, temp = opts.temp,
                      seed = p, trace = trace }
    count(bins_of, new_bins(), p, dt.check(pair:generate(options)), trace)
  end
  os.remove(trace)
  table.sort(names)
  if #names == 0 then
    print(("%s, %d texts, %d tokens each, temperature %g: the policy guessed nothing"):format(opts.policy, #list,
      opts.tokens, opts.temp))
  end
  for _, name in ipairs(names) do
    print(("%s, %d texts, %d tokens each, temperature %g: %s"):format(opts.policy, #list, opts.tokens, opts.temp, name))
    print "bin        guesses   pred   true  error"
    lines { of[name] }
  end
  return
end

local results, once = {}, nil
for _, calibrate in ipairs { false, true } do
  local bins = new_bins()
  once = new_bins()
  for p, text in ipairs(list) do
    local options = { policy = "wide.lua", source = source, params = { calibrate = calibrate }, prompt = text,
                      tokens = opts.tokens, ignore_eos = true, temp = opts.temp, seed = p, trace = trace }
    count(function() return bins end, once, p, dt.check(pair:generate(options)), trace)
  end
  results[#results + 1] = bins
end
os.remove(trace)

results[#results + 1] = once

print(("%d texts, %d tokens each, temperature %g"):format(#list, opts.tokens, opts.temp))
print "              as the draft predicts              calibrated                          calibrated, each once"
print "bin        guesses   pred   true  error    guesses   pred   true  error    guesses   pred   true  error"
lines(results)

if opts.figure then
  local series = { { label = "perfect", points = { { x = 0, y = 0 }, { x = 1, y = 1 } } } }
  for i, bins in ipairs(results) do
    local points = {}
    for _, bin in ipairs(bins) do
      if bin.n >= LEAST then points[#points + 1] = { x = bin.said / bin.n, y = bin.true_ / bin.n } end
    end
    series[i + 1] = { label = ({ "the draft", "calibrated", "each once" })[i], points = points }
  end
  local name = ("reliability-%g"):format(opts.temp)
  dt.check(figure.draw({ { kind = "lines", name = name, title = ("Guesses at temperature %g"):format(opts.temp),
                           xlabel = "predicted probability", ylabel = "share that was right", series = series,
                           caption = "" } }, opts.figure))
end
