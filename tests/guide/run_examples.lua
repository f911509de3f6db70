-- Runs the examples of a guide:  dtrun run tests/guide/run_examples.lua DTRUN SOURCE GUIDE.md
--
-- In a temporary folder that looks like the source tree, with DTRUN as build/dtrun:
-- a lua block is saved under the name in its first line ("-- NAME.lua: ...") and must be used by a command after it;
-- a sh block is run where it stands ("sh status=3" must end so; "sh no-run: REASON" is not run);
-- a console block shows commands ("$ ...") and what they print: each line shown must be printed, in that order.
-- There every number stands for any number, and a line that ends in "..." goes on.
local exe, source = arg[1], arg[2]
local mistakes = 0

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function shell(command)
  local _, how, code = os.execute(command)
  return how == "exit" and code or 128 + code
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  assert(file:close())
end

local function mistake(guide, line, ...)
  mistakes = mistakes + 1
  io.stderr:write(("%s:%d: %s\n"):format(guide, line, (...):format(select(2, ...))))
end

-- The fenced blocks of a guide: { kind, info, line, text }.
local function blocks_of(text)
  local blocks, open, number = {}, nil, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    local kind, info = line:match "^```(%w*)%s*(.*)$"
    if open and kind then
      open = nil
    elseif open then
      open.text = open.text .. line .. "\n"
    elseif kind then
      open = { kind = kind, info = info, line = number, text = "" }
      blocks[#blocks + 1] = open
    end
  end
  return blocks
end

local function run_shell(guide, block, folder)
  write(folder .. "/command.sh", block.text)
  local code = shell(("cd %s && sh -e command.sh >output 2>&1 </dev/null"):format(quote(folder)))
  local wanted = tonumber(block.info:match "status=(%d+)" or 0)
  if code ~= wanted then
    local output = read(folder .. "/output")
    mistake(guide, block.line, "exit status %d instead of %d:\n%s%s", code, wanted, block.text, output)
  end
end

local function plain(text) return (text:gsub("%d[%d.]*", "#"):gsub("%s+", " ")) end

local function run_console(guide, block, folder)
  local shown, output, at = 0, "", 1
  for line in block.text:gmatch "([^\n]+)\n" do
    local command = line:match "^%$ (.*)"
    if command then
      run_shell(guide, { text = command .. "\n", line = block.line, info = "" }, folder)
      output, at = plain(read(folder .. "/output")), 1
    else
      local wanted = plain((line:gsub("%s*%.%.%.$", "")))
      local _, last = output:find(wanted, at, true)
      if not last then mistake(guide, block.line, "not printed: %s\n%s", line, read(folder .. "/output")) end
      shown, at = shown + 1, last or at
    end
  end
  if shown == 0 then mistake(guide, block.line, "a console block shows what is printed") end
end

local function run_guide(guide)
  local text = read(source .. "/" .. guide)
  local pipe = assert(io.popen "mktemp -d")
  local folder = pipe:read "l"
  pipe:close()
  shell(("cd %s && mkdir build && ln -s %s build/dtrun && ln -s %s ."):format(
    quote(folder), quote(exe), table.concat({ quote(source .. "/policies"), quote(source .. "/models"),
      quote(source .. "/scripts"), quote(source .. "/tests") }, " ")))
  local unused, ran, skipped = {}, 0, 0
  for _, block in ipairs(blocks_of(text)) do
    if block.kind == "lua" then
      local name = block.text:match "^%-%- ([%w_]+%.lua):"
      if name then
        write(folder .. "/" .. name, block.text)
        unused[name] = block.line
        for module in block.text:gmatch 'require "([%w_]+)"' do unused[module .. ".lua"] = nil end
      else
        mistake(guide, block.line, "the first line of a lua block must name its file: -- NAME.lua: what it is")
      end
    elseif block.kind == "sh" or block.kind == "console" then
      for name in block.text:gmatch "([%w_]+%.lua)" do unused[name] = nil end
      if block.info:find "no%-run" then
        skipped = skipped + 1
      elseif block.kind == "console" then
        ran = ran + 1
        run_console(guide, block, folder)
      else
        ran = ran + 1
        run_shell(guide, block, folder)
      end
    end
  end
  for name, line in pairs(unused) do mistake(guide, line, "%s is not run by any command after it", name) end
  shell("rm -rf " .. quote(folder))
  print(("%s: %d blocks of commands run, %d not to be run"):format(guide, ran, skipped))
end

run_guide(arg[3])
os.exit(mistakes == 0 and 0 or 1)
