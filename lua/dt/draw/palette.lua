-- The colours of pages and figures. A thing has the same colour everywhere. Colour-blind people can distinguish the
-- colours (after Okabe and Ito 2008), which have contrast on white and on near black.
local palette = {}

-- The parts of a run's time (time_ms), in this order.
palette.PHASES = { prompt = "#56b4e9", draft = "#0072b2", verify = "#d55e00", commit = "#e69f00", policy = "#009e73",
                   other = "#b0b0b0" }
palette.PLAIN = "#7f7f7f" -- plain decoding
palette.SERIES = { "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#b5a900", "#7a5cc4",
                   "#b04a4a", "#3f8a63" }

return palette
