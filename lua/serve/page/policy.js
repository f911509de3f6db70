// Choosers for a policy and its parameters: an installed policy, or the one that is written in the playground.
import { count, make } from "./dom.js";
import { get, post } from "./server.js";

export const OWN = "your policy"; // no installed policy has a blank in its name

const FIRST_PAGE = `-- A chain of guesses that also offers the runner-up wherever the draft model is unsure.
local policy = require "dt.policy"
local Hedge = policy.define { name = "hedge", params = {
  { "K", 4, min = 1, max = 64, doc = "length of the chain" },
  { "sure", 0.3, min = 0, max = 1, doc = "confidence from which one guess is enough" } } }
function Hedge:draft(tree)
  local node = tree.root                             -- the last token of the text
  for _ = 1, math.min(self.K, tree:depth_room()) do
    tree:draft_step(node)                            -- one pass of the draft model
    local first, last = tree:branch(node, tree:confidence(node) < self.sure and 2 or 1)
    if last < first then return end                  -- no room for another node
    node = first
  end
end
return Hedge
`;

// The user's policy: its text, what the server says about it ({name, params, ..} or {error}), and the functions to call
// when that changes.
export const own = { text: FIRST_PAGE, about: null, listeners: [] };

let asked = 0;
export async function setOwn(text) {
  own.text = text;
  const mine = ++asked;
  const about = await post("/v1/policies/check", { source: text });
  if (mine !== asked) return; // there is a newer text
  own.about = about;
  for (const tell of own.listeners) tell();
}

let list = null; // {name: {name, doc, draft, presets, params, source}}
export async function policies() {
  if (!list) list = Object.fromEntries((await get("/v1/policies")).policies.filter(policy => !policy.error).map(policy => [policy.name, policy]));
  return list;
}

const kinds = { // for each type: makes an element that edits a parameter
  boolean: param => make("select", {}, ...["true", "false"].map(text => make("option", { selected: text === param.value }, text))),
  integer: param => make("input", { type: "number", step: 1, min: param.min, max: param.max, value: param.value, placeholder: "not set" }),
  number: param => make("input", { type: "number", step: "any", min: param.min, max: param.max, value: param.value, placeholder: "not set" }),
  string: param => param.one_of.length
    ? make("select", {}, ...param.one_of.map(text => make("option", { selected: text === param.value }, text)))
    : make("input", { type: "text", value: param.value, spellcheck: "false" }),
};

function valueOf(param, text) {
  if (param.type === "boolean") return text === "true";
  return param.type === "integer" || param.type === "number" ? Number(text) : text;
}

// Makes a chooser in the element `place`. hasDraft: the server has a draft model. state() returns {policy, preset,
// params}, which choose() accepts.
export async function chooser(place, label, first, hasDraft) {
  const all = await policies();
  const select = make("select", {}), preset = make("select", {}), doc = make("p", { class: "doc" });
  const presetField = make("label", {}, "preset", preset), fields = make("div", { class: "params" });
  const summary = make("summary"), folded = make("details", { class: "folded" }, summary, fields);
  select.append(...Object.values(all).map(policy =>
    make("option", { value: policy.name, disabled: policy.draft === "needed" && !hasDraft }, policy.name)), make("option", { value: OWN }, OWN));
  place.replaceChildren(make("label", {}, label, select), doc, presetField, folded);
  const inputs = new Map();
  let changed = () => {};

  const about = () => select.value === OWN ? own.about?.error ? null : own.about : all[select.value];

  function params() {
    const out = {};
    for (const [param, input] of inputs)
      if (input.value !== param.value && (input.value !== "" || input.type === "text")) out[param.name] = valueOf(param, input.value);
    return out;
  }

  function summarize() {
    const set = Object.entries(params()).map(([name, value]) => name + "=" + value).join(" ");
    summary.textContent = set || count(inputs.size, "parameter");
    changed();
  }

  function show() {
    const policy = about(), before = params();
    doc.textContent = select.value === OWN ? own.about?.error ? "This policy has an error." : "The policy that you write in the playground." : policy.doc;
    const names = policy?.presets || [];
    presetField.hidden = !names.length;
    preset.replaceChildren(make("option", { value: "" }, "none"), ...names.map(name => make("option", {}, name)));
    inputs.clear();
    fields.replaceChildren();
    for (const param of policy?.params || []) {
      const input = (kinds[param.type] || kinds.string)(param);
      if (before[param.name] !== undefined) input.value = before[param.name];
      input.oninput = summarize;
      inputs.set(param, input);
      fields.append(make("label", {}, make("span", { class: "mono" }, param.name), input,
        make("small", {}, [param.doc, param.one_of.length ? "" : param.range].filter(Boolean).join("; "))));
    }
    folded.hidden = !inputs.size;
    summarize();
  }

  select.onchange = () => { inputs.clear(); show(); };
  preset.onchange = () => changed();
  own.listeners.push(() => { if (select.value === OWN) show(); });

  function choose({ policy, preset: named = "", params: set = {} }) {
    select.value = policy in all || policy === OWN ? policy : first;
    inputs.clear();
    show();
    preset.value = named;
    for (const [param, input] of inputs) if (set[param.name] !== undefined) input.value = set[param.name];
    summarize();
  }
  choose({ policy: first });

  return {
    choose,
    select,
    state: () => ({ policy: select.value, preset: preset.value, params: params() }),
    onChange: f => { changed = f; },
    name: () => select.value === OWN ? own.about?.name || OWN : select.value,
    // returns the field "dtrun" of a request
    request: () => ({
      ...(select.value === OWN ? { source: own.text } : { policy: select.value }),
      ...(preset.value ? { preset: preset.value } : {}),
      params: params(),
    }),
  };
}
