// The editor for a policy's text: line numbers, and a mark on the line with an error.
import { byId, make } from "./dom.js";
import { own, policies, setOwn } from "./policy.js";

const text = byId("own-text"), gutter = byId("gutter"), stripe = byId("stripe"), says = byId("own-says");
let wrong = 0; // the line of the error; 0: none

function place() {
  gutter.scrollTop = text.scrollTop;
  const line = parseFloat(getComputedStyle(text).lineHeight), padding = parseFloat(getComputedStyle(text).paddingTop);
  stripe.hidden = !wrong;
  stripe.style.height = line + "px";
  stripe.style.top = padding + (wrong - 1) * line - text.scrollTop + "px";
}

function number() {
  const lines = text.value.split("\n").length;
  gutter.replaceChildren(...Array.from({ length: lines }, (_, i) => make("span", { class: i + 1 === wrong ? "wrong" : undefined }, i + 1 + "\n")));
  place();
}

// Shows an error and marks its line, which a message such as "policy.lua:5: ..." contains. "" removes the mark.
export function mark(message, line) {
  wrong = line || Number(/policy\.lua:(\d+):/.exec(message)?.[1]) || 0;
  says.classList.toggle("error", !!message);
  says.textContent = message;
  text.setAttribute("aria-invalid", !!message);
  byId("jump").hidden = !wrong;
  number();
}

function jump() {
  const lines = text.value.split("\n"), from = lines.slice(0, wrong - 1).join("\n").length + (wrong > 1 ? 1 : 0);
  text.focus();
  text.setSelectionRange(from, from + lines[wrong - 1].length);
  text.scrollTop = (wrong - 4) * parseFloat(getComputedStyle(text).lineHeight);
}

let waits;
function changed() {
  own.text = text.value;
  number();
  clearTimeout(waits);
  waits = setTimeout(() => check(), 250);
}

export async function check() {
  clearTimeout(waits);
  await setOwn(text.value);
  const { error, name } = own.about;
  mark(error?.message || "", error?.line);
  if (!error) says.textContent = `${name} is a policy`;
}

export function setText(value) {
  text.value = value;
  return check();
}

export async function openEditor() {
  const all = await policies();
  byId("begin").replaceChildren(make("option", { value: "" }, "an installed policy"), ...Object.keys(all).map(name => make("option", {}, name)));
  byId("begin").onchange = () => {
    if (all[byId("begin").value]) setText(all[byId("begin").value].source);
    byId("begin").value = "";
    text.scrollTop = 0;
  };
  await setText(own.text);
}

text.oninput = changed;
text.onscroll = place;
text.onkeydown = event => { // a new line gets the indentation of the line before; Tab leaves the box, as everywhere
  if (event.key !== "Enter" || event.ctrlKey || event.isComposing) return;
  event.preventDefault();
  const before = text.value.slice(0, text.selectionStart), indent = /(?:^|\n)([ \t]*)[^\n]*$/.exec(before)[1];
  text.setRangeText("\n" + indent, text.selectionStart, text.selectionEnd, "end");
  changed();
};
byId("jump").onclick = jump;
byId("save").onclick = () => {
  const link = make("a", { href: URL.createObjectURL(new Blob([text.value], { type: "text/plain" })), download: (own.about?.name || "policy") + ".lua" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
