-- Makes the page of a trace: one HTML file that contains its style, its program and all drawings.
--
-- The program (a few functions at the end) shows one iteration at a time: shown(i) sets everything that depends on i.
local json = require "dt.json"
local palette = require "dt.draw.palette"
local params = require "dt.policy.params"
local tables = require "dt.draw.tables"
local tree_css = require "dt.trace.tree_css"
local tree_js = require "dt.trace.tree_js"
local visible = require "dt.draw.visible"

local STYLE = [[
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 90rem; padding: 1.2rem 1.2rem 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .2rem; }
#run { color: var(--faint); margin: 0 0 .9rem; overflow-wrap: anywhere; font-size: .87rem; }
nav { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap;
  gap: .4rem; align-items: center; padding: .5rem 0;
  background: var(--paper); border-bottom: 1px solid var(--line); }
nav button { font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; min-width: 2.5rem; padding: .2rem .55rem; cursor: pointer; }
nav button:hover:enabled { border-color: var(--accent); color: var(--accent); }
nav button:disabled { opacity: .4; cursor: default; }
nav button:focus-visible, .tree:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
nav input { flex: 1 1 12rem; min-width: 5rem; accent-color: var(--accent); }
#place { white-space: nowrap; margin: 0 .4rem; min-width: 11ch; text-align: center; }
#bars { display: block; width: 100%; height: 40px; margin: .5rem 0 .9rem; cursor: pointer; }
#bars rect { fill: var(--edge); }
#bars rect.now { fill: var(--accent); }
main { display: grid; grid-template-columns: minmax(0, 1fr) 17rem; gap: 1.2rem; }
@media (max-width: 50rem) { main { grid-template-columns: minmax(0, 1fr); } }
#text { white-space: pre-wrap; overflow-wrap: anywhere; height: 15rem; overflow: auto; margin: 0; padding: .7rem .9rem;
  background: var(--panel); border-radius: 8px; font: 15px/1.6 Georgia, "DejaVu Serif", serif; }
#text .prompt { color: var(--faint); }
#text .block[hidden] { display: none; }
#text .now { background: var(--mark); box-shadow: 0 0 0 2px var(--mark); border-radius: 2px; }
#text .drafted { color: var(--good); }
#text .bonus { color: var(--bonus); }
#text .corrected { color: var(--wrong); }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
td { padding: .16rem 0; border-bottom: 1px solid var(--line); vertical-align: baseline; }
td:last-child { text-align: right; white-space: nowrap; }
td small { color: var(--faint); }
#split { display: flex; height: .6rem; border-radius: 4px; overflow: hidden; margin: .6rem 0 .2rem;
  background: var(--panel); }
#split span { height: 100%; }
td i { display: inline-block; width: .65rem; height: .65rem; border-radius: 2px; margin-right: .4rem; }
@media print {
  body { padding: 0; }
  nav, #bars { display: none; }
  main { display: block; }
  #tree, #text { height: auto !important; min-height: 0; overflow: visible; }
  #tree svg { max-width: 100%; height: auto; }
}
]]

local BODY = [[
<nav>
<button id="first" title="first (Home)">|◀</button>
<button id="back" title="back (left arrow)">◀</button>
<span id="place"></span>
<button id="next" title="forward (right arrow)">▶</button>
<button id="last" title="last (End)">▶|</button>
<button id="play" title="play all iterations (p)">play</button>
<button id="out" title="zoom out (-, or Ctrl and the mouse wheel)" aria-label="smaller">−</button>
<button id="fit" title="show the whole tree (0)">fit</button>
<button id="in" title="zoom in (+, or Ctrl and the mouse wheel)" aria-label="larger">+</button>
<input id="slider" type="range" min="1" value="1" aria-label="iteration">
</nav>
<svg id="bars" preserveAspectRatio="none"><title>tokens committed by each iteration: click to go there</title></svg>
<main>
<div id="tree" class="tree" tabindex="0" aria-label="the tree of this iteration"></div>
<div><div id="split"></div><table id="numbers"></table></div>
</main>
<div id="legend" class="legend"></div>
<pre id="text"></pre>
]]

local PROGRAM = [==[
const data = JSON.parse(document.getElementById("data").textContent);
const all = data.iterations, byId = id => document.getElementById(id);
const make = (parent, tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
};

make(byId("text"), "span", data.prompt, "prompt");
const blocks = all.map(iteration => {
  const block = make(byId("text"), "span", undefined, "block");
  for (const [origin, text] of iteration.committed) make(block, "span", text, origin);
  return block;
});

const most = Math.max(...all.map(iteration => iteration.committed.length));
byId("bars").setAttribute("viewBox", `0 0 ${all.length} ${most}`);
const bars = all.map((iteration, i) => {
  const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), height = iteration.committed.length;
  const place = { x: i + 0.1, y: most - height, width: 0.8, height };
  for (const key in place) bar.setAttribute(key, place[key]);
  byId("bars").append(bar);
  return bar;
});

const before = []; // tokens committed before each iteration
all.reduce((sum, iteration, i) => (before[i] = sum, sum + iteration.committed.length), 0);

function numbers(i) {
  const it = all[i], ms = it.ms, total = ms.draft + ms.verify + ms.commit + ms.policy;
  const table = byId("numbers"), split = byId("split");
  table.replaceChildren();
  split.replaceChildren();
  const row = (name, value, note, part) => {
    const line = make(table, "tr"), first = make(line, "td"), last = make(line, "td", value);
    if (part) make(first, "i", undefined, part);
    first.append(name);
    if (note) make(last, "small", " " + note);
  };
  row("tokens committed", it.committed.length, `${before[i] + it.committed.length} in all`);
  row("per iteration so far", ((before[i] + it.committed.length) / (i + 1)).toFixed(2));
  row("nodes drafted", it.drafted);
  row("nodes verified", it.verified, `depth ${it.depth}`);
  row("accepted", it.accepted, it.verified ? `${(100 * it.accepted / it.verified).toFixed(0)} %` : "");
  if (it.rollbacks) row("rollbacks", it.rollbacks);
  row("time", total.toFixed(3) + " ms");
  for (const part of ["draft", "verify", "commit", "policy"]) {
    row(part, ms[part].toFixed(3), "ms", part);
    make(split, "span", undefined, part).style.width = (total ? 100 * ms[part] / total : 0) + "%";
  }
}

const tree = byId("tree"), view = treeView(tree);
treeLegend(byId("legend"));
const tallest = Math.max(...all.map(iteration => Number(iteration.svg.match(/viewBox='[^']* ([0-9.]+)'/)[1])));
tree.style.height = view.heightFor(tallest);

let at = -1;
function show(i) {
  i = Math.max(0, Math.min(all.length - 1, i));
  if (i === at) return;
  const from = Math.min(i, at < 0 ? 0 : at), to = at < 0 ? all.length - 1 : Math.max(i, at);
  for (let k = from; k <= to; k++) blocks[k].hidden = k > i;
  if (at >= 0) [blocks[at], bars[at]].forEach(element => element.classList.remove("now"));
  at = i;
  [blocks[at], bars[at]].forEach(element => element.classList.add("now"));
  byId("place").textContent = `${all[at].number} of ${all[all.length - 1].number}`;
  byId("slider").value = at + 1;
  for (const id of ["first", "back"]) byId(id).disabled = at === 0;
  for (const id of ["last", "next"]) byId(id).disabled = at === all.length - 1;
  view.show(all[at].svg);
  centre(byId("text"), blocks[at]);
  numbers(at);
  history.replaceState(null, "", "#" + (at + 1));
}

byId("slider").max = all.length;
const steps = { first: () => 0, back: () => at - 1, next: () => at + 1, last: () => all.length - 1 };
for (const id in steps) byId(id).onclick = () => show(steps[id]());

let timer;
function play(on) {
  clearInterval(timer);
  timer = on && setInterval(() => at < all.length - 1 ? show(at + 1) : play(false), 800);
  byId("play").textContent = on ? "stop" : "play";
}
byId("play").onclick = () => {
  if (!timer && at === all.length - 1) show(0);
  play(!timer);
};
byId("in").onclick = view.larger;
byId("out").onclick = view.smaller;
byId("fit").onclick = view.fit;
byId("slider").oninput = event => show(event.target.value - 1);
byId("bars").onclick = event => {
  const bounds = byId("bars").getBoundingClientRect();
  show(Math.floor((event.clientX - bounds.left) / bounds.width * all.length));
};
const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last",
  "+": "in", "=": "in", "-": "out", "0": "fit", p: "play" };
addEventListener("keydown", event => {
  const id = keys[event.key];
  const inSlider = event.target.type === "range" && steps[id];
  if (!id || inSlider || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  byId(id).click();
});
addEventListener("hashchange", () => show(parseInt(location.hash.slice(1)) - 1 || 0));
show(parseInt(location.hash.slice(1)) - 1 || 0);
]==]

local STAYS = { ["\n"] = true, ["\t"] = true }

-- Makes characters visible that would not show; other text is unchanged.
local function shown(text) return visible.pictures(text, STAYS) end

-- The colours of the parts of an iteration's time.
local function phases()
  local rules = {}
  for _, part in ipairs { "draft", "verify", "commit", "policy" } do
    table.insert(rules, (".%s { background: %s; }\n"):format(part, palette.PHASES[part]))
  end
  return table.concat(rules)
end

-- The data of an iteration for the page's program.
local function summary(iteration, svg)
  local depth, one = { [0] = 0 }, {
    number = iteration.iteration, rollbacks = iteration.rollbacks, ms = iteration.ms, svg = svg,
    drafted = #iteration.nodes - 1, verified = 0, accepted = 0, depth = 0, committed = json.array(),
  }
  for _, node in ipairs(iteration.nodes) do
    if node.parent then
      depth[node.id] = depth[node.parent] + 1
      if node.kept then
        one.verified = one.verified + 1
        one.depth = math.max(one.depth, depth[node.id])
      end
      if node.accepted then one.accepted = one.accepted + 1 end
    end
  end
  for i, token in ipairs(iteration.committed) do one.committed[i] = { token.origin, shown(token.text) } end
  return one
end

local function description(trace)
  local head, ending, parts, settings = trace.head, trace.ending, {}, {}
  local function add(...) parts[#parts + 1] = (...):format(select(2, ...)) end
  for name, value in pairs(head.params or {}) do settings[#settings + 1] = name .. "=" .. params.text(value) end
  table.sort(settings)
  if #settings > 0 then add("%s", table.concat(settings, " ")) end
  add("target %s", (head.target or "unknown"):match "[^/]*$")
  if head.draft then add("draft %s", head.draft:match "[^/]*$") end
  add("%s, %d threads", head.backend or "unknown", head.threads or 0)
  if ending then
    add("%d tokens in %.1f ms (%s)", ending.tokens, ending.total_ms, ending.finish_reason)
  else
    add("the trace does not contain the end of the run")
  end
  return table.concat(parts, " · ")
end

-- Returns the page of a trace (from dt.trace's read) with the drawings of its iterations.
return function(trace, drawings)
  local iterations = {}
  for i, iteration in ipairs(trace.iterations) do iterations[i] = summary(iteration, drawings[i]) end
  local title = tables.escape(trace.head.policy) .. ", iteration by iteration"
  local data = json.encode({ prompt = shown(trace.head.prompt), iterations = iterations }):gsub("<", "\\u003c")
  return table.concat {
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
    "<title>", title, "</title>\n<style>\n", tree_css, STYLE, phases(),
    "</style>\n</head>\n<body>\n<h1>", title, '</h1>\n<p id="run">',
    tables.escape(description(trace)), "</p>\n", BODY, '<script type="application/json" id="data">', data,
    "</script>\n<script>\n", tree_js, PROGRAM, "</script>\n</body>\n</html>\n",
  }
end
