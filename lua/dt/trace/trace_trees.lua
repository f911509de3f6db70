-- Draws the trees of a trace as SVG. Each iteration becomes a graph; Graphviz computes the places of its boxes or, if
-- it is not installed, a simple layout does; and then the boxes are painted.
local shell = require "dt.shell"
local tables = require "dt.draw.tables"
local visible = require "dt.draw.visible"

local trees = {}

-- ---- graphs
-- ----------------------------------------------------------------------------------------------------------

local MOST_SHOWN = 24 -- maximum number of characters shown of a token
local PICTURES = { ["\n"] = "⏎", ["\t"] = "⇥" }

-- A token as one visible word.
local function word(text)
  if text == "" then return "∅" end
  text = visible.pictures(text, PICTURES):gsub(" ", "·")
  if utf8.len(text) <= MOST_SHOWN then return text end
  return text:sub(1, utf8.offset(text, MOST_SHOWN) - 1) .. "…"
end

local function short(p) return p >= 0.9995 and "1" or p < 0.0005 and "0" or (("%.3f"):format(p):gsub("^0", "")) end

local function details(node)
  local parts = { ("node %d: '%s', token %d"):format(node.id, word(node.text), node.token) }
  if node.parent then
    parts[2] = ("p(path) %.4g, p(token) %.4g"):format(node.p, math.exp(node.logp or -math.huge))
  end
  if node.tag then parts[#parts + 1] = "tag: " .. word(node.tag) end
  if node.copied then parts[#parts + 1] = "copied: not one of the draft's candidates here" end
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
  if node.copied then list[#list + 1] = "copied" end
  return table.concat(list, " ")
end

-- Nodes that were drafted but not verified are shown as one box at the nearest verified node above them: {[id] = {count
-- =, best = nodes}}.
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

-- The graph of an iteration's tree, with parents before children: {nodes = {{name=, text=, p=, class=, tip=}, ..},
-- edges = {{from=, to=, class=}, ..}}; from and to are indices of nodes.
local function graph_of(iteration)
  local nodes, edges, place, last = {}, {}, {}, 1
  local function add(name, node, parent, class)
    node.name = name
    nodes[#nodes + 1] = node
    if parent then edges[#edges + 1] = { from = parent, to = #nodes, class = class } end
    return #nodes
  end
  for _, v in ipairs(iteration.nodes) do
    if v.kept or v.id == 0 then
      local node = { text = word(v.text), p = v.parent and short(v.p), class = classes(v), tip = details(v),
        copied = v.copied }
      local parent = v.parent and (place[v.parent] or 1) -- a file may have any number there
      place[v.id] = add("n" .. v.id, node, parent, v.accepted and "accepted" or "kept")
      if v.accepted then last = place[v.id] end
    end
  end
  for u, box in pairs(unverified(iteration.nodes)) do
    local tip = { box.count .. " drafted, not verified:" }
    for i = 1, math.min(#box.best, 8) do
      tip[i + 1] = ("'%s' %s"):format(word(box.best[i].text), short(box.best[i].p))
    end
    local node = { text = "+" .. box.count, class = "unverified", tip = table.concat(tip, "\n") }
    add("u" .. u, node, place[u], "unverified")
  end
  local origin = iteration.committed[#iteration.committed]
  local class = origin and origin.origin == "corrected" and "corrected" or "bonus"
  local text = word(iteration.bonus.text)
  local tip = ("the target's own: '%s', token %d"):format(text, iteration.bonus.token)
  add("b", { text = text, class = class, tip = tip }, last, class)
  return { nodes = nodes, edges = edges }
end

-- ---- places
-- ----------------------------------------------------------------------------------------------------------
-- places, in points of 1/72 inch: width and height of the drawing, and for each node left, right, top, bottom and
-- `out`, the x from which on its edges may turn.

local EDGE = 4 -- margin around all nodes, so that no frame is cut

local GRAPH = [[
graph { rankdir=LR ordering=out nodesep=0.09 ranksep=0.32 splines=line
node [shape=box fontname="DejaVu Sans Mono" fontsize=11 height=0.26 width=0.3 margin="0.07,0.02"]
edge [tailport=e headport=w]
]]

local function quote(text) return '"' .. text:gsub('[\\"]', "\\%0") .. '"' end

local function label(node) return node.p and node.text .. " " .. node.p or node.text end

local function dot_source(graph)
  local out = { GRAPH }
  for _, node in ipairs(graph.nodes) do out[#out + 1] = ("%s [label=%s]\n"):format(node.name, quote(label(node))) end
  for _, edge in ipairs(graph.edges) do
    out[#out + 1] = ("%s -- %s\n"):format(graph.nodes[edge.from].name, graph.nodes[edge.to].name)
  end
  out[#out + 1] = "}\n"
  return table.concat(out)
end

-- Reads the places from the output of dot -Tplain for one graph: it has the centres of nodes, in inches from the
-- bottom.
local function dot_places(plain, graph)
  local width, height = plain:match "^graph %S+ (%S+) (%S+)"
  local at, places = {}, { width = 72 * width + 2 * EDGE, height = 72 * height + 2 * EDGE }
  for name, x, y, w, h in plain:gmatch "\nnode (%S+) (%S+) (%S+) (%S+) (%S+)" do
    local left, top = EDGE + 72 * (x - w / 2), EDGE + 72 * (height - y - h / 2)
    at[name] = { left = left, right = left + 72 * w, out = left + 72 * w, top = top, bottom = top + 72 * h }
  end
  for i, node in ipairs(graph.nodes) do places[i] = at[node.name] end
  return places
end

-- Returns the places of all graphs from one run of dot; nil: dot is not installed, or failed.
local function by_dot(graphs)
  local sources, all = {}, {}
  for i, graph in ipairs(graphs) do sources[i] = dot_source(graph) end
  local source, target = os.tmpname(), os.tmpname()
  local file = assert(io.open(source, "wb"))
  file:write(table.concat(sources))
  file:close() -- on a full disk dot reads a part, and returns too few graphs
  shell("dot -Tplain %s >%s", source, target)
  file = assert(io.open(target, "rb"))
  for plain in file:read "a":gmatch "graph .-\nstop" do all[#all + 1] = dot_places(plain, graphs[#all + 1]) end
  file:close()
  os.remove(source)
  os.remove(target)
  return #all == #graphs and all or nil
end

local LETTER, MARGIN, HEIGHT, ROW, GAP = 6.7, 5, 18.7, 25.2, 23

local function width_of(node) return utf8.len(label(node)) * LETTER + 2 * MARGIN end

-- A simple layout: a column for each depth, a row for each leaf, and each parent at the middle of its children.
local function plainly(graph)
  local depth, columns, children, places = { 0 }, {}, {}, {}
  for i in ipairs(graph.nodes) do children[i] = {} end
  for _, edge in ipairs(graph.edges) do
    depth[edge.to] = depth[edge.from] + 1
    table.insert(children[edge.from], edge.to)
  end
  for i, node in ipairs(graph.nodes) do
    columns[depth[i]] = math.max(columns[depth[i]] or 0, width_of(node))
  end
  local left, x = {}, EDGE
  for d = 0, #columns do left[d], x = x, x + columns[d] + GAP end
  local leaves, first, middle = {}, { 0 }, {}
  for i = #graph.nodes, 1, -1 do
    leaves[i] = #children[i] == 0 and 1 or 0
    for _, child in ipairs(children[i]) do leaves[i] = leaves[i] + leaves[child] end
  end
  for i = 1, #graph.nodes do
    local row = first[i]
    for _, child in ipairs(children[i]) do first[child], row = row, row + leaves[child] end
  end
  for i = #graph.nodes, 1, -1 do
    local list = children[i]
    middle[i] = #list == 0 and EDGE + HEIGHT / 2 + ROW * first[i] or (middle[list[1]] + middle[list[#list]]) / 2
  end
  for i, node in ipairs(graph.nodes) do
    local from = left[depth[i]]
    places[i] = { left = from, right = from + width_of(node), out = from + columns[depth[i]],
      top = middle[i] - HEIGHT / 2, bottom = middle[i] + HEIGHT / 2 }
  end
  places.width, places.height = x - GAP + EDGE, ROW * leaves[1] - (ROW - HEIGHT) + 2 * EDGE
  return places
end

-- ---- painting -------------------------------------------------------------------------------------------------------

local NODE = "<g class='%s'><title>%s</title><rect x='%.6g' y='%.6g' width='%.6g' height='%.6g' rx='%d'/>"
  .. "<text x='%.6g' y='%.6g'>%s</text></g>"

local ROUND = 6 -- round corners of drafted tokens; copied tokens have square ones

-- The SVG of a node. The probability after the token has a style of its own.
local function painted_node(node, at)
  local text = tables.escape(node.text) .. (node.p and ("<tspan> %s</tspan>"):format(node.p) or "")
  return NODE:format(node.class, tables.escape(node.tip), at.left, at.top, at.right - at.left, at.bottom - at.top,
    node.copied and 0 or ROUND, (at.left + at.right) / 2, (at.top + at.bottom) / 2 + 3.7, text)
end

-- The SVG of an edge: a curve whose ends are horizontal.
local function painted_edge(class, from, to)
  local y1, y2, middle = (from.top + from.bottom) / 2, (to.top + to.bottom) / 2, (from.out + to.left) / 2
  return ("<path class='%s' d='M%.6g,%.6gH%.6gC%.6g,%.6g %.6g,%.6g %.6g,%.6g'/>"):format(class, from.right, y1,
    from.out, middle, y1, middle, y2, to.left, y2)
end

local function painted(graph, places)
  local out = { ("<svg viewBox='0 0 %.6g %.6g'><g>"):format(places.width, places.height) }
  for _, edge in ipairs(graph.edges) do
    out[#out + 1] = painted_edge(edge.class, places[edge.from], places[edge.to])
  end
  for i, node in ipairs(graph.nodes) do out[#out + 1] = painted_node(node, places[i]) end
  out[#out + 1] = "</g></svg>"
  return table.concat(out)
end

-- Returns the drawings of all iterations. with_dot = false: do not use dot.
function trees.draw(iterations, with_dot)
  local graphs, drawings = {}, {}
  for i, iteration in ipairs(iterations) do graphs[i] = graph_of(iteration) end
  local places = with_dot ~= false and by_dot(graphs) or {}
  for i, graph in ipairs(graphs) do drawings[i] = painted(graph, places[i] or plainly(graph)) end
  return drawings
end

return trees
