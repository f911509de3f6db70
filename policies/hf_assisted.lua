-- Assisted generation as in Hugging Face transformers (its "heuristic" schedule): a chain whose length K adapts to the
-- number of accepted tokens, and which ends early if the draft model is uncertain. A baseline of the DynaTree paper.
local policy = require "dt.policy"
local clip = policy.clip

local Assisted = policy.define {
  name   = "hf_assisted",
  doc    = "a chain that grows by 2 when all of it was accepted and shrinks by 1 otherwise",
  uses   = { calibrate = true },
  params = {
    { "K", 5, min = 1, max = 256, doc = "tokens drafted at first; adapts later" },
    { "threshold", 0.4, min = 0, max = 1, doc = "the chain ends after a token less probable than this" },
  },
}

function Assisted:draft(tree) policy.chain(tree, self.K, self.threshold) end

function Assisted:observe(_, out) self.K = clip(self.K + (out.accepted == self.K and 2 or -1), 1, 256) end

return Assisted
