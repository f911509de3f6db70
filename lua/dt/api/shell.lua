-- Runs a shell command: local status, output = shell("cd %s && gnuplot %s", folder, script). Each %s is a file name,
-- which is quoted. status is 127 if there is no such command. output has standard output and standard error.
return function(form, ...)
  local names = { ... }
  for i, name in ipairs(names) do names[i] = "'" .. name:gsub("'", "'\\''") .. "'" end
  local pipe = assert(io.popen("{ " .. form:format(table.unpack(names)) .. "; } 2>&1"))
  local output = pipe:read "a"
  local _, how, code = pipe:close()
  return how == "exit" and code or 128 + code, output
end
