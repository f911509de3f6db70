-- Which draft fits a target: those that are here, those that others have published (models/drafts.txt), what each costs
-- and may bring on this machine, and what to try first.
--
--   local where = { machine = dt.machine, backend = pair.backend, cache = folder, hub = folder }
--   for _, line in ipairs(drafts.about("Qwen3-8B-Q4_K_M.gguf", where)) do print(table.unpack(line)) end -- {name, text}
--
-- `cache`: the folder of kept costs; `hub`: that of Hugging Face's cache; without a backend, costs are estimated for a
-- CPU. nil and a failure: the target is not here, or cannot be read.
local core = require "dt.core"
local estimate = require "dt.drafts.estimate"
local published = require "dt.drafts.published"
local shell = require "dt.shell"

local drafts = {}

local MOST = 5 -- published drafts that are listed

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  return text
end

-- The texts of the files of kept costs.
local function kept_texts(folder)
  local texts = {}
  local status, output = shell("cd %s && ls -1", folder or "/nowhere")
  for name in (status == 0 and output or ""):gmatch "[^\n]+" do
    if name:find "^learned%-" or name:find "^costs%-" then texts[#texts + 1] = read(folder .. "/" .. name) end
  end
  return texts
end

-- The table of published drafts: its rows, its path and its mistakes.
local function listed()
  for _, home in ipairs(core.homes()) do
    local path = home .. "/models/drafts.txt"
    local text = read(path)
    if text then
      local rows, mistakes = published.read(text)
      return rows, path, mistakes
    end
  end
  return {}, "models/drafts.txt", {}
end

-- The id OWNER/NAME of a path in Hugging Face's cache, and the last part of any path.
local function names_of(path)
  local owner, name = path:match "models%-%-([^/]-)%-%-([^/]+)/snapshots/"
  return path:match "([^/]+)/*$", owner and owner .. "/" .. name, name
end

local function size(bytes)
  return bytes < 1e9 and ("%.1f MB"):format(bytes / 1e6) or ("%.1f GB"):format(bytes / 1e9)
end

-- ---- what is said about one draft -----------------------------------------------------------------------------------

local function figure(x) return (x < 9.95 and "%.2g" or "%.0f"):format(x) end

local function cost_text(costs)
  if not costs.next then return "the cost of its pass is not known" end
  local how = costs.measured and "measured" or "estimated"
  return ("a pass costs %s of the target's (%s)"):format(figure(costs.next), how)
end

-- What is known about its guesses, and the speedup (nil: not known) to expect from it.
local function gain_text(row, costs)
  if not row or not row.tokens then
    if not costs.next then return "no published acceptance" end
    local k = 3
    return ("no published acceptance; chains of %d pay above %s tokens per pass"):format(k,
      figure(estimate.cost(costs, k)))
  end
  local chain = math.type(row.guesses) == "integer"
  local text = ("%.2f tokens per pass%s (%s)"):format(row.tokens,
    chain and (" in chains of %d"):format(row.guesses) or "", row.source)
  if not chain or not costs.next then return text end
  local speedup, length = estimate.speedup(costs, estimate.acceptance(row.guesses, row.tokens))
  return ("%s: about %sx with chains of %d"):format(text, figure(speedup), length), speedup
end

-- The row of models/drafts.txt about a draft that is here; nil: there is none.
local function row_of(rows, path)
  local last, id = names_of(path)
  for _, row in ipairs(rows) do
    local name = row.draft:match "^[^:]+"
    if name == id or not name:find "/" and published.is_named(name, last)
      or row.kind == "model" and published.is_named(name:match "[^/]+$":gsub("%-GGUF$", ""), last) then
      return row
    end
  end
end

local function quoted(name) return name:find "[^%w@%%+=:,./_-]" and "'" .. name:gsub("'", "'\\''") .. "'" or name end

-- Whether dtrun pull, or another tool, has brought it. dtrun does not find heads of others by itself, since their files
-- do not name the target.
local function is_pulled(row, hub)
  local owner, name = row.draft:match "^([^/]+)/([^/:]+)"
  return hub and owner and read(("%s/models--%s--%s/refs/main"):format(hub, owner, name)) ~= nil
end

-- ---- the lists ------------------------------------------------------------------------------------------------------

-- Adds what is here to `lines`. Returns a list of {md = name for -md, speedup=}, and a set of the rows that are here.
local function add_here(lines, target, rows, kept, where)
  local here, seen, digests = {}, {}, {}
  for _, draft in ipairs(target.drafts) do
    if digests[draft.digest] then goto copy end -- the same files in another folder
    digests[draft.digest] = true
    local row = row_of(rows, draft.path)
    if row then seen[row] = true end
    local costs = estimate.costs(target, { kind = row and row.kind or draft.kind, digest = draft.digest,
      bytes = draft.bytes, pass = draft.pass, all_experts = draft.all_experts, experts = draft.experts,
      chosen_experts = draft.chosen_experts }, kept, where)
    local text, speedup = gain_text(row, costs)
    here[#here + 1] = { md = draft.path, speedup = speedup }
    lines[#lines + 1] = { "draft here", ("%s: %s, %s; %s; %s"):format(draft.path, row and row.kind or draft.kind,
      size(draft.bytes), cost_text(costs), text) }
    ::copy::
  end
  for _, row in ipairs(rows) do
    if not seen[row] and is_pulled(row, where.hub) then
      seen[row] = true
      local costs = estimate.costs(target, { kind = row.kind, weights = row.weights }, kept, where)
      local text, speedup = gain_text(row, costs)
      here[#here + 1] = { md = row.draft, speedup = speedup }
      lines[#lines + 1] = { "draft here", ("%s: %s, pulled; %s; %s"):format(row.draft, row.kind, cost_text(costs),
        text) }
    end
  end
  if target.mtp then
    here[#here + 1] = { md = "mtp" }
    lines[#lines + 1] = { "draft here", "mtp: a layer of the model's own files" }
  end
  if #here == 0 then lines[#lines + 1] = { "draft here", "none of the models here drafts for " .. target.path } end
  return here, seen
end

-- Whether a published draft is too large: a model may have half of the target's bytes (models/README.md).
local function is_too_large(row, costs) return row.kind == "model" and costs.next and costs.next > 0.5 end

-- The published drafts, the most promising ones first: {row=, costs=, text=, speedup=}.
local function ranked(target, rows, seen, kept, where)
  local list = {}
  for i, row in ipairs(rows) do
    local costs = estimate.costs(target, { kind = row.kind, weights = row.weights }, kept, where)
    local text, speedup = gain_text(row, costs)
    if not seen[row] and row.draft:find "/" and not is_too_large(row, costs) then
      list[#list + 1] = { row = row, costs = costs, text = text, speedup = speedup, order = i }
    end
  end
  local function worth(one) -- those with an estimate first, those with a figure next, those that need work last
    return (one.speedup or 0) + (one.row.tokens or 0) / 1e3 - (one.row.file == "bin" and 1 or 0)
  end
  table.sort(list, function(a, b)
    if worth(a) ~= worth(b) then return worth(a) > worth(b) end
    return a.order < b.order
  end)
  return list
end

local function add_published(lines, list)
  for i = 1, math.min(#list, MOST) do
    local one = list[i]
    local row = one.row
    local about = { row.kind, row.licence or "see its page for the licence" }
    if row.file == "bin" then
      about[#about + 1] = "published as .bin, which scripts/training/convert_head.py converts"
    end
    lines[#lines + 1] = { "published", ("%s: %s; %s; %s"):format(row.draft, table.concat(about, ", "),
      cost_text(one.costs), one.text) }
  end
  if #list > MOST then
    lines[#lines + 1] = { "published", ("and %d more in models/drafts.txt"):format(#list - MOST) }
  end
end

-- ---- what to try ----------------------------------------------------------------------------------------------------

local function best_of(list)
  local best
  for _, one in ipairs(list) do
    if one.speedup and (not best or one.speedup > best.speedup) then best = one end
  end
  return best
end

-- The command to try first.
local function advice(name, here, list)
  local model, best, other = quoted(name), best_of(here), list[1]
  local pull = other and other.row.file ~= "bin" and (other.speedup or not best and #here == 0)
    and ("dtrun pull %s && dtrun chat -m %s -md %s"):format(other.row.draft, model, other.row.draft)
  if best and best.speedup > 1 and not (pull and (other.speedup or 0) > best.speedup * 1.1) then
    return ("dtrun chat -m %s -md %s"):format(model, quoted(best.md))
  end
  if pull and (other.speedup or 2) > 1 then return pull end
  if here[1] and not here[1].speedup then
    return ("dtrun -m %s -md %s --chat -p 'Why is the sky blue?' --compare ar # shows whether the draft pays")
      :format(model, quoted(here[1].md))
  end
  return ("dtrun chat suffix -m %s -md none # no draft: copies pay where answers repeat their prompt"):format(model)
end

-- Lines about the drafts of a target: a list of {name, text}.
function drafts.about(name, where)
  local target, kind, message = core.drafts(name)
  if not target then return nil, { kind = kind, message = message } end
  local rows, path, mistakes = listed()
  local lines = {}
  for _, mistake in ipairs(mistakes) do lines[#lines + 1] = { "mistake", ("%s, %s"):format(path, mistake) } end
  local kept = estimate.kept(kept_texts(where.cache), where)
  local last, id, short = names_of(target.path)
  local names = {}
  for _, one in ipairs { last, short or last, target.name, name:match "([^/:]+)[^/]*$" } do
    if one ~= "" then names[#names + 1] = one end
  end
  rows = published.of(rows, names)
  local here, seen = add_here(lines, target, rows, kept, where)
  local list = ranked(target, rows, seen, kept, where)
  if #list == 0 then
    lines[#lines + 1] = { "published", #rows > 0 and "no others in models/drafts.txt"
      or ("models/drafts.txt has no draft for %s"):format(id or last) }
  end
  add_published(lines, list)
  lines[#lines + 1] = { "try first", advice(name, here, list) }
  return lines
end

return drafts
