-- Writes one line to standard error, even if the texts contain line breaks: complain("no policy '", name, "'").
local brief = require "dt.api.brief"

return function(...)
  local line = table.concat { ... }:gsub("%c", "?"):gsub("\xC2[\x80-\x9F]", "?")
  brief.hide()
  io.stderr:write("dtrun: ", line, "\n")
end
