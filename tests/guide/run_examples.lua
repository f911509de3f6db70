-- Runs the examples of a guide:  dtrun run tests/guide/run_examples.lua DTRUN SOURCE GUIDE.md..
--
-- In a temporary folder that looks like the source tree, with DTRUN as build/dtrun: a lua block is saved under the name
-- in its first line ("-- NAME.lua: ..."), a sh block is run where it stands. "sh no-run" is not run (it downloads or
-- builds), "sh status=3" must end so. A lua block that no command uses is a mistake, as is a link that leads nowhere.
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

local function check_links(guide, text)
  local folder, number = guide:match "^(.*/)" or "", 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    for link in line:gmatch "%]%(([^)#]+)#?[^)]*%)" do
      if not link:find "^https?:" and shell("test -e " .. quote(source .. "/" .. folder .. link)) ~= 0 then
        mistake(guide, number, "there is no %s", link)
      end
    end
  end
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
    elseif block.kind == "sh" then
      for name in block.text:gmatch "([%w_]+%.lua)" do unused[name] = nil end
      if block.info:find "no%-run" then
        skipped = skipped + 1
      else
        ran = ran + 1
        run_shell(guide, block, folder)
      end
    end
  end
  for name, line in pairs(unused) do mistake(guide, line, "%s is not run by any command after it", name) end
  check_links(guide, text)
  shell("rm -rf " .. quote(folder))
  print(("%s: %d blocks of commands run, %d not to be run"):format(guide, ran, skipped))
end

for i = 3, #arg do run_guide(arg[i]) end
os.exit(mistakes == 0 and 0 or 1)
