-- Programs for gnuplot: quotes texts in them, and runs them.
local shell = require "dt.shell"

local gnuplot = {}

-- A text as gnuplot reads it, whatever its bytes: bytes with a meaning for gnuplot are written as numbers.
function gnuplot.text(text)
  return '"' .. text:gsub("[^%w ,.:;()=+/-]", function(c) return ("\\%03o"):format(c:byte()) end) .. '"'
end

-- A file to write to, as gnuplot reads it: a name that begins with | would be a command.
function gnuplot.file(path) return gnuplot.text(path:find "^/" and path or "./" .. path) end

local NOT_FOUND = 127 -- the shell's exit status without such a command

-- Runs a program, a file in folder: true, or false and one line.
function gnuplot.run(folder, name)
  local status, said = shell("cd -- %s && gnuplot %s", folder, name)
  if status == 0 then return true end
  if status == NOT_FOUND then return false, "there is no gnuplot (Debian: apt-get install gnuplot-nox)" end
  local why = said:match "line %d+: [^\n]+" or said:match "[^\n]*%S[^\n]*"
  return false, "gnuplot: " .. (why or "exit status " .. status)
end

return gnuplot
