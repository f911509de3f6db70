-- The papers' experiments as data, for `dtrun run paper NAME`. Plain decoding is added to each as an arm.
--
--   doc        one line
--   sets       folders and JSON-lines files of the prompts (scripts/prompts)
--   arms       policies and their settings: see dt.experiment
--   tokens     lengths to generate
--   chars      prompt lengths in characters; each prompt is cut to each length; the report shows them as a scale
--   contexts   lengths of prompts in tokens: the prompts of the first set, each after texts of all sets (dt.contexts);
--              those that do not fit in the context (-c) are left out
--   window     the draft sees this many tokens only, unless --draft-window says otherwise
--   prompts    of each set (default 10)
--   stops      end-of-text ends a run (default: it counts like any token)
--   reference  an arm with which the report compares all others
--   alone      every run has a process of its own, and so its own peak memory
--   batches    numbers of sequences generated at once, one run each (dt.batches); the report shows them as a scale
--   mixed      prompts of the sets in turn, in batches that have some of each
--   sampling   temperatures and ways of drafting: { label =, generate = options of pair:generate }; prompt i has seed i
--   reasoning  each prompt is asked with reasoning on and off: { label =, chat = options of its chat }; fails if the
--              target's template cannot turn it on and off
--   also       another experiment that runs after it, with its own file, and is in its report
--   chat       texts are questions to targets that have a layout of chats
--   fitting    arms that the pair cannot run (it has no draft model, or was not tuned) are left out
--   bounds     two further arms: upper bounds for chains and for trees (dt.bound)
--   questions  instead of sets: a benchmark whose questions the user has (dt.questions); by_question = true: its mean
--              number of tokens per pass is that of the questions' means. Each run is a conversation; `prompts` is the
--              number of each category (default: all), and repeats is 1; arms may be any policies
--   traced     an arm whose trees are examined: accepted length by summed probability
--
-- Sources: "DynaTree" (tables 1 to 5, figures 4 to 9, and the sweep of its first text) and "CAST" (tables 1 to 3,
-- figures 3 to 5). Our novels replace PG-19, and any draft model replaces EAGLE's: only the tree's shape is EAGLE's.
-- Spec-Bench: github.com/hemingkx/Spec-Bench, evaluation/eval.py and speed.py. SPEED-Bench:
-- huggingface.co/datasets/nvidia/SPEED-Bench, and specdec_bench of github.com/NVIDIA/Model-Optimizer.
local grid = require "dt.api.grid"

local LENGTH = 1500
local LENGTHS = { 100, 200, 300, 500, 750, 1000, LENGTH }
local BOTH = { "wikitext2", "novels" }
local CONTEXTS = { 1000, 4000, 8000, 16000, 32000 }
local TASKS = { "mt_bench", "humaneval", "gsm8k", "alpaca", "sum", "qa" }
local EVERYTHING = table.move(TASKS, 1, #TASKS, #BOTH + 1, { table.unpack(BOTH) })

-- The paper uses K = 8 on WikiText-2 and K = 5 on PG-19, D_max = 8 and 9; here every set has both.
local linear8 = { policy = "linear", params = { K = 8 } }
local linear5 = { policy = "linear", params = { K = 5 } }
local fixed = { policy = "fixed_tree", params = { D = 8, B = 3, tau = 0.1 } }
local dynatree = { policy = "dynatree", params = { D0 = 5, D_max = 8 } }
local dynatree9 = { policy = "dynatree", params = { D0 = 5, D_max = 9 } }
local rate = { policy = "rate" }
local eagle2 = { policy = "eagle2", preset = "eagle2" }
local eagle3 = { policy = "eagle2", preset = "eagle3" }
local cast = { policy = "cast" }
local cast_paper = { policy = "cast", preset = "paper" }

-- Their cache of 1024: the target's text differs under a window, so plain decoding with the same window is added.
local streaming = { label = "StreamingLLM linear", policy = "linear", params = { K = 6 }, window = 1020, sinks = 4 }
local streaming_ar = { label = "StreamingLLM ar", policy = "ar", window = 1020, sinks = 4 }

local cast_batch = { policy = "cast", preset = "paper_batch8" }

local GREEDY = { label = "T = 0", generate = { temp = 0 } }
local SAMPLED = { label = "T = 1", generate = { temp = 1 } }
local WARM = { label = "T = 0.8", generate = { temp = 0.8 } }
local UNCOUPLED = { label = "T = 1, uncoupled", generate = { temp = 1, coupled = false } }

local REASONING = { label = "answers with reasoning", chat = { think = "on" } }
local DIRECT = { label = "answers without reasoning", chat = { think = "off" } }

-- dynatree with some of its mechanisms, on the tree of D = 5, B = 2.
local function mechanisms(label, breadth, depth, history)
  return { label = label, policy = "dynatree",
           params = { breadth = breadth, depth = depth, history = history, D0 = 5, D_max = 8, B_mid = 2 } }
end

-- One study of dynatree's sensitivity: pairs of values for two of its parameters.
local function study(name, first, second, pairs_of)
  local arms = {}
  for i, pair in ipairs(pairs_of) do
    local params = { D0 = 5, D_max = 8, B_min = 1, B_max = 3, tau_h = 0.9, tau_l = 0.4 }
    params[first], params[second] = pair[1], pair[2]
    params.B_mid = math.max(2, params.B_min)
    arms[i] = { label = ("%s %g, %g"):format(name, pair[1], pair[2]), policy = "dynatree", params = params,
                axes = { study = name } }
  end
  return arms
end

local function sensitivity()
  local thresholds = {}
  for _, point in ipairs(grid { tau_h = { 0.8, 0.9, 0.95 }, tau_l = { 0.3, 0.4, 0.5 } }) do
    thresholds[#thresholds + 1] = { point.tau_h, point.tau_l }
  end
  local arms = { fixed }
  for _, list in ipairs {
    study("branches", "B_min", "B_max", { { 1, 2 }, { 1, 3 }, { 1, 4 }, { 2, 4 }, { 2, 5 }, { 3, 5 } }),
    study("depths", "D0", "D_max", { { 4, 6 }, { 5, 8 }, { 6, 10 }, { 8, 12 } }),
    study("thresholds", "tau_h", "tau_l", thresholds),
  } do
    table.move(list, 1, #list, #arms + 1, arms)
  end
  return arms
end

-- All policies with their defaults, some with settings for small trees, and all tuned.
local function all_policies()
  local arms = {
    rate, { policy = "linear", params = { K = 1 } }, { policy = "linear", params = { K = 2 } },
    { policy = "dynatree", preset = "narrow" }, { policy = "prompt_lookup", params = { n = 3, K = 3 } },
  }
  for _, name in ipairs { "adaptive", "caddtree", "cast", "dynatree", "dyspec", "eagle2", "echo", "fixed_tree",
                          "hf_assisted", "linear", "lookahead", "opt_tree", "prompt_lookup", "sequoia", "specinfer",
                          "suffix", "talon", "token_recycling" } do
    arms[#arms + 1] = { policy = name }
    arms[#arms + 1] = { policy = name, preset = "tuned" }
  end
  return arms
end

-- What drafts for texts of any kind and length.
local USUAL = { rate, { policy = "linear", params = { K = 3 } }, { policy = "dynatree", preset = "narrow" },
                { policy = "suffix" } }

-- Categories by name, each with the row of tables to which it belongs: its own, if the names have no key.
local function categories(rows)
  local of = {}
  for row, names in pairs(rows) do
    for name in names:gmatch "%S+" do of[name] = type(row) == "string" and row or name end
  end
  return of
end

local function every(policy, preset, points)
  local arms = {}
  for i, point in ipairs(grid(points)) do arms[i] = { policy = policy, preset = preset, params = point } end
  return arms
end

-- cast with some of its three rules, on eagle3's numbers.
local function cast_rules(label, rerank, depth, breadth)
  return { label = label, policy = "cast", preset = "paper",
           params = { rerank = rerank, depth = depth, breadth = breadth } }
end

return {
  main = {
    doc = "throughput, speedup, latency of linear, fixed tree, DynaTree, rate, StreamingLLM (DynaTree, tables 1, 2)",
    sets = BOTH, tokens = { LENGTH },
    arms = { linear8, linear5, fixed, dynatree, dynatree9, rate, streaming_ar, streaming },
  },
  efficiency = {
    doc = "acceptance, tokens per iteration, path length, iterations (DynaTree, table 3)",
    sets = BOTH, tokens = { LENGTH }, arms = { linear8, linear5, fixed, dynatree, dynatree9 },
  },
  ablation = {
    doc = "breadth, depth and history added to a fixed tree, and each alone (DynaTree, table 4)",
    sets = { "wikitext2" }, tokens = { LENGTH }, reference = "fixed D=5 B=2",
    arms = {
      mechanisms("fixed D=5 B=2", false, false, false), mechanisms("+ breadth and depth", true, true, false),
      mechanisms("+ history", true, true, true), mechanisms("breadth alone", true, false, false),
      mechanisms("depth alone", false, true, false), mechanisms("history alone", false, false, true),
    },
  },
  memory = {
    doc = "peak memory, every run in a process of its own (DynaTree, table 5)",
    sets = BOTH, tokens = { LENGTH }, prompts = 2, alone = true, arms = { linear8, fixed, dynatree },
  },
  lengths = {
    doc = "speed by the number of tokens generated (DynaTree, figure 6)",
    sets = BOTH, tokens = LENGTHS, arms = { linear8, fixed, dynatree },
  },
  prompt_lengths = {
    doc = "speed by the length of the prompt (DynaTree, figure 9)",
    sets = { "novels" }, tokens = { LENGTH }, chars = { 100, 200, 800, 1000 }, arms = { linear8, fixed, dynatree },
  },
  sensitivity = {
    doc = "DynaTree's branches, depths and thresholds (DynaTree, figure 8)",
    sets = { "wikitext2" }, tokens = { LENGTH }, arms = sensitivity(),
  },
  fixed_sweep = {
    doc = "450 settings of the fixed tree: depth, branching, threshold, length (DynaTree, figure 7 and its first text)",
    sets = { "wikitext2" }, tokens = { 100, 200, 300, 500, 1000 }, prompts = 5,
    arms = every("fixed_tree", nil,
                 { D = { from = 3, to = 8 }, B = { 2, 3, 4 }, tau = { 0.01, 0.02, 0.03, 0.05, 0.1 } }),
  },
  as_published = {
    doc = "speedup from a certain root and from commits without recomputing, over the published algorithm",
    sets = BOTH, tokens = { LENGTH }, reference = "dynatree as published",
    arms = {
      { label = "dynatree as published", policy = "dynatree", preset = "as_published" },
      { label = "dynatree, certain root", policy = "dynatree", params = { rebuild = true } },
      { label = "dynatree, no recomputing", policy = "dynatree", params = { root_branch = 1 } },
      { label = "dynatree, both", policy = "dynatree" },
      { label = "fixed tree as published", policy = "fixed_tree", preset = "as_published" },
      { label = "fixed tree, both", policy = "fixed_tree" },
    },
  },
  tasks = {
    doc = "speedup on six tasks: linear, eagle2, eagle3, cast, DynaTree and rate (CAST, table 1)",
    sets = TASKS, tokens = { 1024 }, stops = true, arms = { linear5, eagle2, eagle3, cast_paper, cast, dynatree, rate },
  },
  cast_ablation = {
    doc = "CAST's reranking, depth and breadth rules added to eagle3 (CAST, table 3, batch of one)",
    sets = { "mt_bench", "humaneval" }, tokens = { 1024 }, stops = true, reference = "eagle3",
    arms = {
      { label = "eagle3", policy = "eagle2", preset = "eagle3" }, cast_rules("+ reranking", true, false, false),
      cast_rules("+ reranking, depth", true, true, false), cast_rules("+ reranking, breadth", true, false, true),
      cast_rules("cast", true, true, true),
    },
  },
  cast_figures = {
    doc = "accepted length against summed probability; speedup by verified tokens (CAST, figures 3 and 4)",
    sets = { "humaneval" }, tokens = { 1024 }, stops = true, traced = eagle3,
    arms = every("eagle2", "eagle3", { total = { 5, 10, 20, 30, 40, 50, 60, 80, 100 } }),
  },
  batch = {
    doc = "speedup by the number of sequences at once, 1 to 32 (CAST, figure 5), and batch_tasks",
    sets = TASKS, tokens = { 1024 }, mixed = true, batches = { 1, 2, 4, 8, 16, 32 }, prompts = 32, also = "batch_tasks",
    arms = { eagle2, dynatree, cast },
  },
  batch_tasks = {
    doc = "speedup on six tasks, eight sequences at once (CAST, table 2)",
    sets = TASKS, tokens = { 1024 }, stops = true, batches = { 8 }, prompts = 8, sampling = { GREEDY, SAMPLED },
    arms = { eagle2, eagle3, dynatree, cast_batch, cast },
  },
  spec_bench = {
    doc = "Spec-Bench: its 480 questions, and files that its scripts read (--data: its folder data/spec_bench)",
    tokens = { 1024 }, stops = true, chat = true, arms = { rate },
    questions = { file = "question.jsonl", categories = categories {
      mt_bench = "writing roleplay reasoning math coding extraction stem humanities",
      "translation summarization qa math_reasoning rag",
    } },
  },
  speed_bench = {
    doc = "SPEED-Bench: its 880 questions, or those of a file by length (--data: a folder or a file)",
    tokens = { 4096 }, stops = true, chat = true, arms = { rate },
    questions = { file = "qualitative.jsonl", by_question = true, categories = categories {
      "coding humanities math multilingual qa rag reasoning roleplay stem summarization writing",
      "low_entropy mixed high_entropy",
    } },
  },
  spec = {
    doc = "all policies on six tasks, T = 0 and 0.8, tuned and not, and their share of a bound (after Spec-Bench)",
    sets = TASKS, tokens = { 128 }, prompts = 4, stops = true, chat = true, fitting = true, bounds = true,
    sampling = { GREEDY, WARM }, arms = all_policies(),
  },
  context = {
    doc = "tokens per pass and speedup by the length of the context, 1000 to 32000 tokens (-c), and context_window",
    sets = EVERYTHING, tokens = { 96 }, prompts = 2, contexts = CONTEXTS, fitting = true, also = "context_window",
    arms = USUAL,
  },
  context_window = {
    doc = "the same with a draft that sees only the last 1024 tokens, or those of --draft-window",
    sets = EVERYTHING, tokens = { 96 }, prompts = 2, contexts = CONTEXTS, fitting = true, window = 1024,
    arms = USUAL,
  },
  modes = {
    doc = "speedup and tokens per pass of answers with reasoning and without (--template)",
    sets = { "gsm8k", "mt_bench", "humaneval" }, tokens = { 256 }, prompts = 4, stops = true, fitting = true,
    reasoning = { REASONING, DIRECT }, arms = USUAL,
  },
  temperature = {
    doc = "speedup on six tasks at temperatures 0 and 1, drafts coupled to the noise and not (CAST, table 1)",
    sets = TASKS, tokens = { 1024 }, stops = true, sampling = { GREEDY, SAMPLED, UNCOUPLED },
    arms = { linear5, eagle2, dynatree, cast, rate },
  },
}
