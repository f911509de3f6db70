-- The form of the guides:  dtrun run tests/guide/check_guides.lua SOURCE
--
-- README.md has at most 150 lines of at most 100 characters; a line of any guide has at most 160 (reports that a
-- program wrote may have more); a link leads to a file, and to a heading of it; an example that is not run says why.
local source = arg[1]
local mistakes = 0

local function mistake(guide, line, ...)
  mistakes = mistakes + 1
  io.stderr:write(("%s:%d: %s\n"):format(guide, line, (...):format(select(2, ...))))
end

local function read(path)
  local file = io.open(source .. "/" .. path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  return text
end

-- "./" and "x/.." taken out of a path.
local function simple(path)
  local parts = {}
  for part in path:gmatch "[^/]+" do
    if part == ".." then parts[#parts] = nil elseif part ~= "." then parts[#parts + 1] = part end
  end
  return table.concat(parts, "/")
end

-- Lines of a guide; inside a fenced block `code` is true.
local function lines_of(text)
  local number, code = 0, false
  local next_line = text:gmatch "([^\n]*)\n"
  return function()
    local line = next_line()
    if not line then return end
    number = number + 1
    local fence = line:find "^```" ~= nil
    if fence then code = not code end
    return number, line, code or fence
  end
end

-- The anchors of a guide's headings, as GitHub makes them.
local function anchors_of(path)
  local anchors = {}
  for _, line, code in lines_of(read(path)) do
    local heading = not code and line:match "^#+%s+(.*)"
    if heading then
      heading = heading:gsub("%[([^]]*)%]%([^)]*%)", "%1"):lower():gsub("[^%w%s_-]", ""):gsub("%s", "-")
      anchors[heading] = true
    end
  end
  return anchors
end

local function check_link(guide, number, link)
  if link:find "^https?:" then return end
  local path, anchor = link:match "^([^#]*)#?(.*)$"
  path = path == "" and guide or simple((guide:match "^(.*/)" or "") .. path)
  if not io.open(source .. "/" .. path) then return mistake(guide, number, "there is no %s", path) end
  if anchor ~= "" and not anchors_of(path)[anchor] then
    mistake(guide, number, "%s has no heading #%s", path, anchor)
  end
end

-- python and c blocks are run by tests/cli/python.sh and tests/cli/install.sh
local RUN = {
  sh = true, lua = true, console = true, [""] = true,
  python = "scripts/python/README.md", c = "runtime/LIBRARY.md",
}

local function check_guide(guide)
  local written = guide:find "results/.*/report%.md$" or guide:find "CALLS%.md$" -- by a program
  local most = guide == "README.md" and 100 or written and math.huge or 160
  local number, was_code = 0, false
  for n, line, code in lines_of(read(guide)) do
    number = n
    if utf8.len(line) > most then mistake(guide, n, "%d characters, %d at most", utf8.len(line), most) end
    local kind, info = line:match "^```(%w*)%s*(.*)$"
    if kind and code and not was_code then
      if RUN[kind] ~= true and RUN[kind] ~= guide then mistake(guide, n, "no test runs a block of %s here", kind) end
      if info:find "no%-run" and not info:find "no%-run: %w" then mistake(guide, n, "no-run: REASON") end
      was_code = true
    elseif kind then
      was_code = false
    end
    if not code then
      for link in line:gmatch "%]%(([^)%s]+)%)" do check_link(guide, n, link) end
    end
  end
  if guide == "README.md" and number > 150 then mistake(guide, number, "150 lines at most") end
end

local list = assert(io.popen(
  "cd '" .. source .. "' && find . -name '*.md' -not -path './build*' -not -path './.git/*'"))
for guide in list:lines() do check_guide((guide:gsub("^%./", ""))) end
list:close()
os.exit(mistakes == 0 and 0 or 1)
