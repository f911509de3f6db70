-- Every policy that is compared with plain decoding: those that come with us, with their presets, and hostile ones.
-- `seldom`: it may well accept nothing.
local HOSTILE = debug.getinfo(1, "S").source:match "^@(.*/)" .. "hostile/"

return {
  { label = "ar", policy = "ar" },
  { label = "linear", policy = "linear" },
  { label = "fixed_tree", policy = "fixed_tree" },
  { label = "fixed_tree as_published", policy = "fixed_tree", preset = "as_published" },
  { label = "dynatree", policy = "dynatree" },
  { label = "dynatree narrow", policy = "dynatree", preset = "narrow" },
  { label = "dynatree as_published", policy = "dynatree", preset = "as_published" },
  { label = "dynatree threshold, tree", policy = "dynatree", params = { control = "threshold", statistic = "tree" } },
  { label = "hf_assisted", policy = "hf_assisted" },
  { label = "eagle2", policy = "eagle2" },
  { label = "eagle2 eagle3", policy = "eagle2", preset = "eagle3" },
  { label = "opt_tree", policy = "opt_tree" },
  { label = "dyspec", policy = "dyspec" },
  { label = "specinfer", policy = "specinfer" },
  { label = "prompt_lookup", policy = "prompt_lookup", seldom = true }, -- a short text may hold no repetition
  { label = "cast", policy = "cast" },
  { label = "cast paper", policy = "cast", preset = "paper_batch8" },
  { label = "rate", policy = "rate" },
  { label = "token_recycling", policy = "token_recycling", seldom = true },
  { label = "sequoia", policy = "sequoia" },
  { label = "caddtree", policy = "caddtree" },
  { label = "talon", policy = "talon" },
  { label = "adaptive", policy = "adaptive" },
  { label = "lookahead", policy = "lookahead", seldom = true },
  { label = "suffix", policy = "suffix", seldom = true },
  { label = "echo", policy = "echo" },
  { label = "random trees", policy = HOSTILE .. "random_trees.lua" },
  { label = "one level of 256", policy = HOSTILE .. "one_level.lua" },
  { label = "a chain past the room", policy = HOSTILE .. "past_the_room.lua" },
  { label = "duplicates", policy = HOSTILE .. "duplicates.lua" },
  { label = "empty trees at random", policy = HOSTILE .. "empty_at_random.lua" },
  { label = "keep of random parts", policy = HOSTILE .. "keep_random.lua" },
  { label = "rollbacks", policy = HOSTILE .. "rollbacks.lua" },
}
