-- Writes one line on standard error, whatever the texts contain: complain("no policy '", name, "'").
return function(...)
  local line = table.concat { ... }:gsub("%c", "?"):gsub("\xC2[\x80-\x9F]", "?")
  io.stderr:write("dtrun: ", line, "\n")
end
