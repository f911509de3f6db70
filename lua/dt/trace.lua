-- Traces of runs (schema dtrun.trace/1, policies/README.md): reading them, and drawing their trees with Graphviz.
local json = require "dt.json"
local shell = require "dt.shell"
local tables = require "dt.tables"

local trace = {}

-- ---- reading --------------------------------------------------------------------------------------------------------

local function is_text(value) return type(value) == "string" end

local function is_optional(value, kind) return value == nil or (math.type(value) or type(value)) == kind end

local function is_number(value) return value == nil or type(value) == "number" end

local function is_head(entry)
  if entry.schema ~= "dtrun.trace/1" or not is_text(entry.prompt) or not is_text(entry.policy) then return false end
  for _, value in pairs(type(entry.params) == "table" and entry.params or {}) do
    if type(value) == "table" then return false end
  end
  return is_optional(entry.params, "table") and is_optional(entry.target, "string")
    and is_optional(entry.draft, "string") and is_optional(entry.backend, "string")
    and is_optional(entry.threads, "integer")
end

local function is_ending(entry)
  return is_text(entry.finish_reason) and math.type(entry.tokens) == "integer" and type(entry.total_ms) == "number"
end

local function is_token(t) return type(t) == "table" and is_text(t.text) and math.type(t.token) == "integer" end

-- What is wrong with a line about an iteration, or nil.
local function flaw(entry)
  if type(entry.nodes) ~= "table" or #entry.nodes == 0 then return "no nodes" end
  for i, node in ipairs(entry.nodes) do
    local parent = type(node) == "table" and node.parent
    if not is_token(node) or node.id ~= i - 1 then return ("node %d is no node"):format(i - 1) end
    if i > 1 and (math.type(parent) ~= "integer" or parent < 0 or parent >= node.id or type(node.p) ~= "number") then
      return ("node %d has no parent before it, or no p"):format(node.id)
    end
    if not (is_number(node.logp) and is_number(node.confidence) and is_number(node.entropy)) then
      return ("node %d: logp, confidence or entropy is no number"):format(node.id)
    end
    if not (is_optional(node.kept, "boolean") and is_optional(node.accepted, "boolean")) then
      return ("node %d: kept or accepted is not true or false"):format(node.id)
    end
  end
  if not is_token(entry.bonus) then return "no bonus token" end
  if type(entry.committed) ~= "table" then return "no committed tokens" end
  for _, token in ipairs(entry.committed) do
    if not is_token(token) or not is_text(token.origin) then return "a committed token without text or origin" end
  end
  for _, part in ipairs { "draft", "verify", "commit", "policy" } do
    if type(entry.ms) ~= "table" or type(entry.ms[part]) ~= "number" then return "no ms." .. part end
  end
  if not (is_number(entry.iteration) and is_number(entry.rollbacks)) then
    return "iteration or rollbacks is no number"
  end
end

-- {head =, iterations = {..}, ending = or nil}, and a message if lines had to be left out; or nil and a message.
function trace.read(path)
  local file, message = io.open(path, "rb")
  if not file then return nil, message end
  local found, number, left_out, first = { iterations = {} }, 0, 0, nil
  for line in file:lines() do
    number = number + 1
    local entry, wrong = json.decode(line)
    if type(entry) ~= "table" then
      wrong = wrong or "not an object"
    elseif number == 1 then
      if is_head(entry) then found.head = entry end
      if not found.head then break end
    elseif entry.finish_reason then
      if is_ending(entry) then found.ending = entry else wrong = "an end without tokens, total_ms or finish_reason" end
    else
      wrong = flaw(entry)
      if not wrong then table.insert(found.iterations, entry) end
    end
    if wrong then
      left_out, first = left_out + 1, first or ("line %d: %s"):format(number, wrong:gsub("^JSON: line 1: ", ""))
    end
  end
  file:close()
  if not found.head then return nil, path .. ": not a trace: its first line is not one of schema dtrun.trace/1" end
  if #found.iterations == 0 then return nil, path .. ": no whole iteration" .. (first and ", " .. first or "") end
  if first then return found, ("%s: %d of %d lines left out, %s"):format(path, left_out, number, first) end
  return found
end

-- ---- drawing --------------------------------------------------------------------------------------------------------

local MOST_SHOWN = 24 -- characters of a token
local PICTURES = { [" "] = "·", ["\n"] = "⏎", ["\t"] = "⇥", ["\127"] = "␡" }

-- A token as one visible word.
local function visible(text)
  if text == "" then return "∅" end
  text = text:gsub("[%c ]", function(c) return PICTURES[c] or utf8.char(0x2400 + c:byte()) end)
  if utf8.len(text) <= MOST_SHOWN then return text end
  return text:sub(1, utf8.offset(text, MOST_SHOWN) - 1) .. "…"
end

local function short(p) return p >= 0.9995 and "1" or p < 0.0005 and "0" or (("%.3f"):format(p):gsub("^0", "")) end

local function quote(text) return '"' .. text:gsub('[\\"]', "\\%0") .. '"' end

local function details(node)
  local parts = { ("node %d: '%s', token %d"):format(node.id, visible(node.text), node.token) }
  if node.parent then
    parts[2] = ("p(path) %.4g, p(token) %.4g"):format(node.p, math.exp(node.logp or -math.huge))
  end
  if node.confidence then
    parts[#parts + 1] = ("expanded: confidence %.4g, entropy %.3g"):format(node.confidence, node.entropy or 0)
  end
  parts[#parts + 1] = node.accepted and "accepted" or node.accepted == false and "rejected" or nil
  return table.concat(parts, "\n")
end

local function classes(node)
  local list = { node.parent and "kept" or "root" }
  if node.accepted then list[#list + 1] = "accepted" end
  if node.accepted == false then list[#list + 1] = "rejected" end
  if node.confidence then list[#list + 1] = "expanded" end
  return table.concat(list, " ")
end

-- What was drafted and not verified is one box at the last verified node above it: {[id] = {count =, best = nodes}}.
local function unverified(nodes)
  local above, rest = {}, {}
  for i = 2, #nodes do
    local node = nodes[i]
    if not node.kept then
      local parent = nodes[node.parent + 1]
      above[node.id] = (parent.kept or not parent.parent) and parent.id or above[parent.id]
      local box = rest[above[node.id]] or { count = 0, best = {} }
      rest[above[node.id]] = box
      box.count = box.count + 1
      table.insert(box.best, node)
    end
  end
  for _, box in pairs(rest) do
    table.sort(box.best, function(a, b) return a.p > b.p or (a.p == b.p and a.id < b.id) end)
  end
  return rest
end

local GRAPH = [[
graph { rankdir=LR ordering=out nodesep=0.09 ranksep=0.32 splines=line
node [shape=box fontname="DejaVu Sans Mono" fontsize=11 height=0.26 width=0.3 margin="0.07,0.02"]
edge [tailport=e headport=w]
]]

-- One iteration's tree in the language of dot; names[dot's name of a node] is what its tooltip says.
function trace.graph(iteration)
  local out, names, last = { GRAPH }, {}, 0
  local function node(name, label, class, tip)
    out[#out + 1] = ("%s [label=%s class=%s]\n"):format(name, quote(label), quote(class))
    names[name] = tip
  end
  local function edge(from, to, class) out[#out + 1] = ("%s -- %s [class=%s]\n"):format(from, to, quote(class)) end
  for _, v in ipairs(iteration.nodes) do
    if v.kept or not v.parent then
      node("n" .. v.id, visible(v.text) .. (v.parent and "\1" .. short(v.p) or ""), classes(v), details(v))
      if v.parent then edge("n" .. v.parent, "n" .. v.id, v.accepted and "accepted" or "kept") end
      if v.accepted then last = v.id end
    end
  end
  for u, box in pairs(unverified(iteration.nodes)) do
    local tip = { box.count .. " drafted, not verified:" }
    for i = 1, math.min(#box.best, 8) do
      tip[i + 1] = ("'%s' %s"):format(visible(box.best[i].text), short(box.best[i].p))
    end
    node("u" .. u, "+" .. box.count, "unverified", table.concat(tip, "\n"))
    edge("n" .. u, "u" .. u, "unverified")
  end
  local origin = iteration.committed[#iteration.committed]
  local class = origin and origin.origin == "corrected" and "corrected" or "bonus"
  node("b", visible(iteration.bonus.text), class, ("the target's own: '%s', token %d"):format(
    visible(iteration.bonus.text), iteration.bonus.token))
  edge("n" .. last, "b", class)
  out[#out + 1] = "}\n"
  return table.concat(out), names
end

local NODE = "<g class='%s'><title>%s</title><rect x='%s' y='%s' width='%.6g' height='%.6g' rx='5'/>"
  .. "<text x='%s' y='%s'>%s</text></g>"

-- A box of dot (a polygon's corners) as a rounded one, and the probability behind the token in a style of its own.
local function compact_node(class, name, body, names)
  local x2, y1, x1, y2 = body:match 'points="([%d.-]+),([%d.-]+) ([%d.-]+),[%d.-]+ [%d.-]+,([%d.-]+)'
  local x, y, label = body:match '<text [^>]-x="([%d.-]+)" y="([%d.-]+)"[^>]*>(.-)</text>'
  label = label:gsub("&#1;(.*)", "<tspan> %1</tspan>"):gsub("\1(.*)", "<tspan> %1</tspan>")
  return NODE:format(class, tables.escape(names[name]), x1, y1, x2 - x1, y2 - y1, x, y, label)
end

-- A straight edge of dot, "Mx,yL.. x,y", as a curve that leaves and arrives level.
local function compact_edge(class, d)
  local x1, y1, x2, y2 = d:match "^M([%d.-]+),([%d.-]+).-([%d.-]+),([%d.-]+)$"
  local middle = (x1 + x2) / 2
  return ("<path class='%s' d='M%s,%sC%.6g,%s %.6g,%s %s,%s'/>"):format(class, x1, y1, middle, y1, middle, y2, x2, y2)
end

-- dot's drawing with what the page's style says anyway taken out.
local function compact(svg, names)
  local box = svg:match 'viewBox="([^"]*)"'
  local move = svg:match 'transform="([^"]*)"'
  local out = { ("<svg viewBox='%s'><g transform='%s'>"):format(box, move) }
  for class, d in svg:gmatch '<g id="edge%d+" class="edge ([^"]*)">.-<path [^>]-d="([^"]*)"' do
    out[#out + 1] = compact_edge(class, d)
  end
  for class, name, body in svg:gmatch '<g id="node%d+" class="node ([^"]*)">%s*<title>(.-)</title>(.-)</g>' do
    out[#out + 1] = compact_node(class, name, body, names)
  end
  out[#out + 1] = "</g></svg>"
  return table.concat(out)
end

-- The drawings of all iterations, by one run of dot; or nil and a message.
function trace.draw(iterations)
  local graphs, names = {}, {}
  for i, iteration in ipairs(iterations) do graphs[i], names[i] = trace.graph(iteration) end
  local source, target = os.tmpname(), os.tmpname()
  local file = assert(io.open(source, "wb"))
  file:write(table.concat(graphs))
  file:close() -- on a full disk dot finds a part, and its drawings are too few
  local status, output = shell("dot -Tsvg %s >%s", source, target)
  file = assert(io.open(target, "rb"))
  local drawn = file:read "a"
  file:close()
  os.remove(source)
  os.remove(target)
  if status == 127 then return nil, "dot is not installed, which draws the trees: apt-get install graphviz" end
  local drawings = {}
  for svg in drawn:gmatch "<svg.-</svg>" do drawings[#drawings + 1] = compact(svg, names[#drawings + 1]) end
  if #drawings == #iterations then return drawings end
  return nil, ("dot drew %d of %d trees: %s"):format(#drawings, #iterations, (output:gsub("\n.*", "")))
end

return trace
