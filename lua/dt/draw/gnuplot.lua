-- Quotes texts for gnuplot scripts, and runs the scripts.
local shell = require "dt.shell"

local gnuplot = {}

-- Quotes any text for gnuplot: bytes that have a meaning for gnuplot are written as numbers.
function gnuplot.text(text)
  return '"' .. text:gsub("[^%w ,.:;()=+/-]", function(c) return ("\\%03o"):format(c:byte()) end) .. '"'
end

-- Quotes the path of an output file for gnuplot; a name that begins with | would be a command.
function gnuplot.file(path) return gnuplot.text(path:find "^/" and path or "./" .. path) end

local NOT_FOUND = 127 -- the shell's exit status without such a command

-- Runs the script `name` in folder. Returns true, or false and a one-line message.
function gnuplot.run(folder, name)
  local status, said = shell("cd -- %s && gnuplot %s", folder, name)
  if status == 0 then return true end
  if status == NOT_FOUND then return false, "gnuplot is not installed (Debian: apt-get install gnuplot-nox)" end
  local why = said:match "line %d+: [^\n]+" or said:match "[^\n]*%S[^\n]*"
  return false, "gnuplot: " .. (why or "exit status " .. status)
end

return gnuplot
