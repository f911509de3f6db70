// The chat: a conversation or, for a model without a chat template, texts that the model continues.
import { byId, copy, make, tell } from "./dom.js";
import { markdown } from "./markdown.js";
import { chooser } from "./policy.js";
import { stream } from "./server.js";
import { line, numbersOf } from "./statistics.js";
import { addCalls, asMessage, EXAMPLE, isWhole, readTools, showCalls } from "./tools.js";

const log = byId("log"), message = byId("message");
let server, policy, turns = [], running = null; // running: stops the present answer

// ---- the request

// Returns the fields of a request; null: a field is wrong, and the page says so.
function settings() {
  const fields = { temperature: Number(byId("temperature").value), max_tokens: Number(byId("tokens").value) || -1, dtrun: { ...policy.request(), trace: byId("origins").checked } };
  const seed = byId("seed").value, schema = byId("schema").value.trim();
  if (seed) fields.seed = Number(seed);
  for (const id of ["schema", "tools"]) tell(byId(id + "-error"), "");
  try {
    if (server.chat) fields.tools = readTools(byId("tools").value);
  } catch (error) {
    return wrong("tools", error.message);
  }
  if (!schema) return fields;
  try {
    fields.response_format = { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(schema) } };
    return fields;
  } catch (error) {
    return wrong("schema", "The schema is not JSON: " + error.message);
  }
}

// Shows what is wrong with a field of the settings.
function wrong(id, what) {
  byId("settings").open = true;
  tell(byId(id + "-error"), what);
  byId(id).focus();
  return null;
}

// What a turn begins with: a text, or results of the calls of the turn before.
const asks = turn => turn.results ? turn.results.map(result => ({ role: "tool", ...result })) : [{ role: "user", content: turn.asked }];
const wholeCalls = turn => turn.calls.filter(isWhole);

function answerOf(turn) {
  const calls = wholeCalls(turn).map(asMessage);
  return { role: "assistant", content: turn.answer || null, tool_calls: calls.length ? calls : undefined };
}

function conversation(until) {
  const messages = byId("system").value.trim() ? [{ role: "system", content: byId("system").value }] : [];
  for (const turn of turns.slice(0, until)) {
    if (turn.answer || wholeCalls(turn).length) messages.push(...asks(turn), answerOf(turn));
    else if (turn.results) messages.push(...asks(turn)); // it has no answer; a call must have its result all the same
    // any other turn without an answer is left out, since the roles must alternate
  }
  return messages;
}

// ---- turns

const nearEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;

const ORIGINS = { drafted: "guessed", bonus: "bonus: the target's own token after the last guess", corrected: "correction: the target's own token, since all guesses were wrong" };

// Shows the answer so far, with its reasoning apart. It is Markdown unless its tokens are colored by origin. A
// continuation is not Markdown either, since it belongs to the text before it.
function paint(turn) {
  const follow = nearEnd();
  turn.aside.hidden = !turn.reasoning || Boolean(turn.tokens);
  turn.aside.lastChild.textContent = turn.reasoning;
  showCalls(turn.called, turn.calls);
  if (turn.tokens) turn.place.replaceChildren(...turn.tokens.map(token => make("span", { class: token.origin, title: ORIGINS[token.origin] }, token.text)));
  else if (server.chat) turn.place.replaceChildren(markdown(turn.answer));
  else turn.place.textContent = turn.answer;
  if (follow) log.scrollTop = log.scrollHeight;
}

function paintLater(turn) {
  turn.waits ||= requestAnimationFrame(() => { turn.waits = 0; paint(turn); });
}

function act(text, run, title) {
  return make("button", { type: "button", class: "quiet", onclick: event => run(event.currentTarget), title }, text);
}

function finish(turn, note) {
  const follow = nearEnd();
  paint(turn);
  const last = turns.at(-1) === turn;
  for (const other of turns) other.again?.remove();
  for (const other of turns) other.form?.remove();
  turn.again = last ? act("retry", () => retry(turn), "answer again, with the present settings") : undefined;
  turn.foot.replaceChildren(...[
    turn.numbers ? line(turn.numbers) : note ? make("p", { class: "numbers" }, note) : undefined,
    make("div", { class: "acts" }, ...[
      turn.results ? undefined : act("edit", () => edit(turn), "edit this text again; everything after it is removed"),
      turn.answer ? act("copy", button => copy(server.chat ? turn.answer : turn.asked + turn.answer, button)) : undefined,
      turn.again,
      turn.answer && !server.chat ? act("continue", () => begin(turn.asked + turn.answer), "continue the whole text") : undefined,
    ].filter(Boolean)),
  ].filter(Boolean));
  if (last) offerResults(turn);
  if (follow) log.scrollTop = log.scrollHeight;
}

// Below calls one can type what they gave, and the answer goes on.
function offerResults(turn) {
  const calls = wholeCalls(turn);
  if (!calls.length) return;
  const fields = calls.map(call => make("textarea", { class: "mono", rows: 1, "aria-label": "result of " + call.name, placeholder: `what ${call.name} returned` }));
  const onsubmit = event => {
    event.preventDefault();
    begin("", settings(), calls.map((call, i) => ({ tool_call_id: call.id, name: call.name, content: fields[i].value })));
  };
  turn.form = make("form", { class: "results", onsubmit }, ...fields, make("button", {}, calls.length > 1 ? "Send results" : "Send result"));
  turn.element.append(turn.form);
}

function edit(turn) {
  stop();
  const at = turns.indexOf(turn);
  for (const later of turns.slice(at)) later.element.remove();
  turns = turns.slice(0, at);
  if (at) offerResults(turns[at - 1]);
  message.value = turn.asked;
  showWelcome();
  grow();
  message.focus();
}

function retry(turn) {
  const fields = settings();
  if (!fields || running) return;
  turns.pop();
  turn.element.remove();
  begin(turn.asked, fields, turn.results);
}

// results: of the calls of the turn before, in place of a text.
async function begin(asked, fields = settings(), results = undefined) {
  if (!fields || running) return;
  tell(byId("chat-error"), "");
  const turn = { asked, results, answer: "", reasoning: "", calls: [] };
  turn.place = make(server.chat ? "div" : "span", { class: "words" });
  turn.aside = make("details", { class: "folded reasoning", hidden: true }, make("summary", {}, "Reasoning"), make("div"));
  turn.called = make("div");
  turn.foot = make("footer");
  turns.at(-1)?.form?.remove();
  const said = results ? results.map(result => `${result.name}: ${result.content}`).join("\n") : asked;
  turn.element = server.chat
    ? make("article", { class: "turn" }, make("div", { class: results ? "said mono" : "said" }, said), turn.aside, turn.place, turn.called, turn.foot)
    : make("article", { class: "turn continued" }, make("div", { class: "text" }, make("span", { class: "given" }, asked), turn.place), turn.foot);
  byId("welcome")?.remove();
  log.append(turn.element);
  turns.push(turn);
  log.scrollTop = log.scrollHeight;
  await run(turn, fields);
}

async function run(turn, fields) {
  const stopper = running = new AbortController();
  setBusy(true);
  turn.element.classList.add("busy");
  let note = "";
  try {
    if (fields.dtrun.trace) turn.tokens = [];
    turn.place.classList.toggle("plain", fields.dtrun.trace);
    const body = server.chat ? { ...fields, messages: [...conversation(turns.length - 1), ...asks(turn)] }
      : { ...fields, prompt: turn.asked };
    await stream(server.chat ? "/v1/chat/completions" : "/v1/completions", body, stopper.signal, event => {
      const choice = event.choices[0];
      if (!choice) return;
      const content = choice.delta?.content ?? choice.text ?? "", reasoning = choice.delta?.reasoning_content ?? "";
      if (reasoning && !turn.reasoning) turn.aside.open = true;
      if (content && !turn.answer) turn.aside.open = false;
      turn.answer += content;
      turn.reasoning += reasoning;
      addCalls(turn.calls, choice.delta);
      for (const line of choice.dtrun?.trace || []) turn.tokens.push(...line.committed || []);
      if (choice.dtrun?.stats) turn.numbers = numbersOf(choice.dtrun, event.timings);
      paintLater(turn);
    });
  } catch (error) {
    note = error.name === "AbortError" ? "stopped" : "";
    if (!note) tell(byId("chat-error"), error.message);
  }
  running = null;
  turn.element.classList.remove("busy");
  setBusy(false);
  if (turns.includes(turn)) finish(turn, note || "no answer");
}

function stop() {
  running?.abort();
}

// ---- the box below

function setBusy(busy) {
  log.setAttribute("aria-busy", busy);
  byId("stop").hidden = !busy;
  byId("send").hidden = busy;
  byId("new").hidden = busy || !turns.length;
}

function grow() {
  message.style.height = "auto";
  message.style.height = Math.min(message.scrollHeight + 2, innerHeight * 0.4) + "px";
}

function send() {
  const text = message.value, fields = !running && text.trim() ? settings() : null;
  if (!fields) return;
  message.value = "";
  grow();
  begin(text, fields);
}

// ---- the beginning

const TOY = "mini-target", IDEAS = {
  chat: ["Why is the sky blue?", "Write a haiku about a compiler.", "List three uses of a paper clip."],
  text: ["It was a dark night, and", "The little girl saw a big dog and", "Once upon a time there was"],
};

function showWelcome() {
  if (turns.length || byId("welcome")) return;
  const parts = [make("h1", {}, server.chat ? "Ask the model" : "Begin a text")];
  if (!server.chat)
    parts.push(make("p", {}, "This model has no chat template, so it was not trained to answer questions. It continues a text instead: write a beginning."));
  if (server.model === TOY)
    parts.push(make("p", {}, "This is the small model that comes with dtrun. It knows some words of children's stories and repeats itself. For a model that answers questions, run"),
      make("pre", { tabindex: 0 }, "dtrun pull smollm2\ndtrun serve -m smollm2"));
  parts.push(make("div", { class: "ideas" }, ...IDEAS[server.chat ? "chat" : "text"].map(idea => make("button", { type: "button", onclick: () => begin(idea) }, idea))));
  log.append(make("div", { id: "welcome" }, ...parts));
}

// about: {chat: whether the model has a chat template, model, policy, hasDraft, context}
export async function openChat(about) {
  server = about;
  policy = await chooser(byId("chat-policy"), "policy", about.policy, about.hasDraft);
  byId("system-field").hidden = byId("tools-field").hidden = !server.chat;
  message.placeholder = server.chat ? "Ask something" : "The beginning of a text";
  byId("send").textContent = server.chat ? "Send" : "Continue";
  byId("tokens").max = about.context;
  showWelcome();
  if (wide.matches && document.activeElement === document.body) message.focus();
}

byId("composer").onsubmit = event => { event.preventDefault(); send(); };
byId("stop").onclick = stop;
byId("tools-example").onclick = () => { byId("tools").value = EXAMPLE; };
byId("new").onclick = () => { turns = []; log.replaceChildren(); setBusy(false); showWelcome(); message.focus(); };
message.oninput = grow;
message.onkeydown = event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
};
byId("chat").addEventListener("keydown", event => {
  if (event.key === "Escape" && running) { event.preventDefault(); stop(); message.focus(); }
});
const wide = matchMedia("(min-width: 64rem)");
wide.onchange = () => { byId("settings").open = wide.matches; };
wide.onchange();
