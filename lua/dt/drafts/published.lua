-- Drafts that others have published, from models/drafts.txt, whose first lines describe its columns.
--
--   local rows, mistakes = published.read(text)
--   local list = published.of(rows, { "Qwen3-8B-Q4_K_M.gguf" })   -- those of a target, which may have several names
--
-- A row is {target=, draft=, kind=, file=, weights=, licence=, guesses=, tokens=, source=}; nil is what "-" stands for.
-- weights and tokens are numbers; guesses is a number or "tree".
local published = {}

local KINDS = { model = true, eagle2 = true, eagle3 = true, medusa = true, dflash = true, jetspec = true, dspark = true,
                assistant = true }
local FILES = { safetensors = true, gguf = true, bin = true, ["-"] = true }

-- Reads a column with a number above 0 (or the word `other`); nil and true if it is neither that nor "-".
local function number(text, other)
  if text == "-" or text == other then return text ~= "-" and text or nil end
  local value = tonumber(text)
  if value and value > 0 and value < math.huge then return value end
  return nil, true
end

local function optional(text) return text ~= "-" and text or nil end

-- The row of a line; or nil and what is wrong.
local function row_of(line)
  local target, draft, kind, file, weights, licence, guesses, tokens, source =
    line:match("^" .. ("(%S+)%s+"):rep(8) .. "(.-)%s*$")
  if not target or source == "" then return nil, "expected nine columns" end
  if not KINDS[kind] then return nil, ("'%s' is not a kind of draft"):format(kind) end
  if not FILES[file] then return nil, ("'%s' is not a kind of file"):format(file) end
  local row = { target = target, draft = draft, kind = kind, file = optional(file), licence = optional(licence),
                source = source }
  local no_weights, no_guesses, no_tokens
  row.weights, no_weights = number(weights)
  row.guesses, no_guesses = number(guesses, "tree")
  row.tokens, no_tokens = number(tokens)
  if no_weights then return nil, ("weights '%s': expected a number above 0, or -"):format(weights) end
  if no_guesses or math.type(row.guesses or 1) == "float" then
    return nil, ("guesses '%s': expected a whole number, tree or -"):format(guesses)
  end
  local chain = math.type(row.guesses) == "integer"
  if no_tokens or row.tokens and (row.tokens < 1 or chain and row.tokens > row.guesses + 1) then
    return nil, ("tokens '%s': expected a number from 1 to one more than the guesses, or -"):format(tokens)
  end
  return row
end

-- Reads the file's text: the rows, and a list of mistakes such as "line 3: expected nine columns".
function published.read(text)
  local rows, mistakes, number_of = {}, {}, 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    number_of = number_of + 1
    if line:find "^%s*[^%s#]" then
      local row, wrong = row_of(line:gsub("^%s+", ""))
      if row then rows[#rows + 1] = row else mistakes[#mistakes + 1] = ("line %d: %s"):format(number_of, wrong) end
    end
  end
  return rows, mistakes
end

-- ---- names ----------------------------------------------------------------------------------------------------------

-- What names of files and folders add to a model's name, in the spelling of plain(): formats, types of weights, parts.
local ADDED = { "^gguf", "^safetensors", "^hf", "^ud", "^i1", "^imatrix", "^i?q%d%d?k?[smlxn]*", "^tq%d%d", "^bf16",
                "^fp?16", "^f32", "^fp8", "^mxfp4m?o?e?", "^%d%d%d%d%dof%d%d%d%d%d" }

-- Small letters and digits only, without "Meta-", which is part of the names of some of Meta's models.
local function plain(name)
  return (name:lower():gsub("%.gguf$", ""):gsub("[^%w*]", ""):gsub("^meta", ""))
end

-- Whether only such additions follow.
local function is_added(rest)
  while rest ~= "" do
    local longest = 0
    for _, pattern in ipairs(ADDED) do longest = math.max(longest, select(2, rest:find(pattern)) or 0) end
    if longest == 0 then return false end
    rest = rest:sub(longest + 1)
  end
  return true
end

local function begins_as(pattern, name)
  for length = #name, 1, -1 do
    if name:sub(1, length):find(pattern) and is_added(name:sub(length + 1)) then return true end
  end
  return false
end

-- Whether a name, as a file or a folder has it, is that of the target; "*" stands for any text. Names of files may
-- begin with the author's name and "_".
function published.is_named(target, name)
  local pattern = "^" .. plain(target):gsub("%*", ".*") .. "$"
  return begins_as(pattern, plain(name)) or begins_as(pattern, plain(name:gsub("^[^_]*_", "", 1)))
end

-- The rows of a target with these names, each draft once.
function published.of(rows, names)
  local list, seen = {}, {}
  for _, row in ipairs(rows) do
    for _, name in ipairs(names) do
      if not seen[row.draft] and published.is_named(row.target, name) then
        seen[row.draft] = true
        list[#list + 1] = row
      end
    end
  end
  return list
end

return published
