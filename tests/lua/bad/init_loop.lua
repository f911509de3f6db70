-- Never returns from init.
-- expect: policy ran longer than 2 s (or 20 million instructions) in init
local policy = require "dt.policy"

local Bad = policy.define { name = "init_loop" }

function Bad.init() while true do end end

return Bad
