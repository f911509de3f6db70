// The window on a tree that dt.trace.trace_trees has drawn: scrolling, zooming, the legend. For the page of dtrun run trace, and for
// that of dtrun serve.
"use strict";

function centre(panel, element) {
  const inner = element.getBoundingClientRect(), outer = panel.getBoundingClientRect();
  panel.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
  panel.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
}

const union = boxes => ({ left: Math.min(...boxes.map(b => b.left)), right: Math.max(...boxes.map(b => b.right)),
  top: Math.min(...boxes.map(b => b.top)), bottom: Math.max(...boxes.map(b => b.bottom)) });

// Scrolls such that this path is in view. Where it is too long, its beginning is, and as much of the rest as fits after it.
function look(panel, path) {
  const { left, top } = panel.getBoundingClientRect(), edge = 12;
  const outer = { left, top, right: left + panel.clientWidth, bottom: top + panel.clientHeight }; // without the bars
  const back = (low, high, from, to) => Math.min(0, low - from - edge) + Math.max(0, high - to + edge);
  centre(panel, path[path.length - 1]);
  for (const elements of [path, path.slice(0, 1)]) {
    const inner = union(elements.map(element => element.getBoundingClientRect()));
    panel.scrollTop += back(inner.top, inner.bottom, outer.top, outer.bottom);
    panel.scrollLeft += back(inner.left, inner.right, outer.left, outer.right);
  }
}

// A view in this element, of class tree.
function treeView(panel) {
  // Scales, in pixels per point of dot: at least and at most when a tree opens (letters then have 11 pixels); the
  // limits of zooming.
  const LETTERS = 1, SCALE = 1.3, LEAST = 0.05, MOST = 6, STEP = 1.25, PADDING = 24;
  let zoom = "open", scale = 1; // zoom: open (letters readable), whole (the tree in sight) or what the reader chose
  const svg = () => panel.firstElementChild;
  const within = (width, height) =>
    Math.min((panel.clientWidth - PADDING) / width, (panel.clientHeight - PADDING) / height);
  const path = () => [...panel.querySelectorAll("g.root, g.accepted, g.bonus, g.corrected")];
  const end = () => panel.querySelector("g.bonus, g.corrected");

  function draw(to) {
    const box = svg().viewBox.baseVal;
    scale = Math.max(LEAST, Math.min(MOST, to));
    svg().setAttribute("width", box.width * scale);
    svg().setAttribute("height", box.height * scale);
  }

  function arrange() {
    if (!svg()) return;
    const box = svg().viewBox.baseVal, whole = Math.min(SCALE, within(box.width, box.height));
    draw(zoom === "open" ? Math.max(LETTERS, whole) : zoom === "whole" ? whole : zoom);
    look(panel, path());
  }

  // Larger or smaller about a point of the window, that of the path's end where none is given.
  function zoomBy(factor, x, y) {
    if (!svg()) return;
    const last = end().getBoundingClientRect();
    x ??= last.left + last.width / 2;
    y ??= last.top + last.height / 2;
    const old = svg().getBoundingClientRect();
    draw(scale * factor);
    zoom = scale;
    const now = svg().getBoundingClientRect();
    panel.scrollLeft += now.left + (x - old.left) / old.width * now.width - x;
    panel.scrollTop += now.top + (y - old.top) / old.height * now.height - y;
  }

  panel.addEventListener("wheel", event => { // a pinch on a touchpad is one with Ctrl too
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoomBy(Math.exp(-Math.max(-50, Math.min(50, event.deltaY)) / 150), event.clientX, event.clientY);
  }, { passive: false });
  let spread = 0; // between two fingers
  const fingers = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  panel.addEventListener("touchstart", event => { if (event.touches.length === 2) spread = fingers(event.touches); });
  panel.addEventListener("touchmove", event => {
    if (event.touches.length !== 2) return;
    event.preventDefault();
    const [a, b] = event.touches, now = fingers(event.touches);
    if (spread && now) zoomBy(now / spread, (a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2);
    spread = now;
  }, { passive: false });
  addEventListener("resize", arrange);

  return {
    // A drawing, as text of SVG; "" shows none.
    show(text) {
      panel.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.children);
      arrange();
    },
    heightFor: tallest => `min(54vh, ${tallest * SCALE + PADDING}px)`, // of points
    fit() { zoom = "whole"; arrange(); },
    larger: () => zoomBy(STEP),
    smaller: () => zoomBy(1 / STEP),
    path,
    end,
    get scale() { return scale; },
  };
}

function treeLegend(place) {
  const marks = [["x", "expanded (drafted from)"], ["", "leaf"], ["a", "accepted"], ["b", "bonus token"], ["c", "correction"],
    ["u", "drafted, not verified"], ["s", "square: copied by the policy from the text or its memory"],
    [null, "the number is the path probability p; · is a blank; hover over a node for more"]];
  for (const [mark, meaning] of marks) {
    const item = document.createElement("span");
    if (mark !== null) item.append(Object.assign(document.createElement("i"), { className: mark }));
    item.append(meaning);
    place.append(item);
  }
}
