-- Makes a list of token ids for --draft-vocab: the most frequent tokens of some texts
local complain = require "dt.complain"
local dt = require "dt"

local opts = dt.args {
  doc = [[
Counts the target's tokens in texts (files; by default the guides, novels and articles that come with dtrun) and writes
the most frequent ids, one per line, the most frequent first. If two are equally frequent, the lower id comes first; ids
that occur in no text come last.
With --draft-vocab FILE a draft model guesses only these tokens, so its passes read less of its output matrix.]],
  rest = "TEXT",
  options = {
    { "ids", 16384, min = 1, max = 16777216, doc = "number of ids" },
    { "out", "vocab.txt", doc = "the file to write" },
  },
}
local HERE = arg[0]:match "^(.*/)" or "./"

local function our_texts()
  local paths = {} -- the guides come first, as in lua/models/draft_vocab.c
  for _, page in ipairs { "README", "REFERENCE", "SOURCES", "SAMPLING", "COSTS", "TRACES" } do
    paths[#paths + 1] = ("%s../policies/%s.md"):format(HERE, page)
  end
  for _, folder in ipairs { "novels", "wikitext2" } do
    for i = 1, 20 do paths[#paths + 1] = ("%sprompts/%s/%02d.txt"):format(HERE, folder, i) end
  end
  return paths
end

local function read(path)
  local file, message = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  return dt.check(text, message or path .. ": cannot be read")
end

opts.load.draft = false
local pair = dt.check(dt.load(opts.load))
local counts, tokens, seen = {}, 0, 0
for _, path in ipairs(opts.rest[1] and opts.rest or our_texts()) do
  for _, id in ipairs(dt.check(pair:encode(read(path)))) do
    if not counts[id] then seen = seen + 1 end
    counts[id], tokens = (counts[id] or 0) + 1, tokens + 1
  end
end

local ids = {}
for id = 0, pair.target.vocab - 1 do ids[#ids + 1] = id end
dt.check(opts.ids <= #ids or nil, ("vocab: --ids %d: the model has only %d"):format(opts.ids, #ids))
table.sort(ids, function(a, b)
  local n, m = counts[a] or 0, counts[b] or 0
  if n ~= m then return n > m end
  return a < b
end)
local covered = 0
for i = 1, opts.ids do covered = covered + (counts[ids[i]] or 0) end

local file, message = io.open(opts.out, "w")
local written = file and file:write(table.concat(ids, "\n", 1, opts.ids), "\n")
if not (file and file:close() and written) then
  complain(message or opts.out .. ": cannot be written")
  os.exit(1, true)
end
print(("%s: %d of %d ids; the texts have %d tokens with %d different ids; %.1f %% of the tokens are listed"):format(
  opts.out, opts.ids, #ids, tokens, seen, 100 * covered / tokens))
