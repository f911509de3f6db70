-- Commands of the machine: local status, output = shell("cd %s && gnuplot %s", folder, script).
-- Each %s is a file name, quoted whatever it holds. status is 127 where there is no such command. output: both streams.
return function(form, ...)
  local names = { ... }
  for i, name in ipairs(names) do names[i] = "'" .. name:gsub("'", "'\\''") .. "'" end
  local pipe = assert(io.popen("{ " .. form:format(table.unpack(names)) .. "; } 2>&1"))
  local output = pipe:read "a"
  local _, how, code = pipe:close()
  return how == "exit" and code or 128 + code, output
end
