// The playground: one text under two policies. They run one after the other, so that each has the machine for itself;
// then their trees are shown, pass by pass.
/* global treeLegend */
import { byId, copy, count, tell } from "./dom.js";
import { check, mark, openEditor, setText } from "./editor.js";
import { Lane } from "./lane.js";
import { chooser, own, OWN } from "./policy.js";
import { post, Refusal, stream, textOf } from "./server.js";
import { EXAMPLE, readTools } from "./tools.js";

const PLAIN = "ar", STEP_MS = 700, SHORT_S = 0.5, AGAIN = 5; // AGAIN is odd, for the median
const narrow = matchMedia("(max-width: 64rem)");
let server, first, second, lanes = [], running = null, at = 0, follows = false, timer = 0;

// ---- stepping

const most = () => Math.max(1, ...lanes.map(lane => lane.passes));

function show(i) {
  at = Math.max(0, Math.min(most() - 1, i));
  for (const lane of lanes) lane.show(at);
  byId("place").textContent = `pass ${at + 1} of ${most()}`;
  byId("slider").max = most();
  byId("slider").value = at + 1;
  for (const id of ["to-first", "to-back"]) byId(id).disabled = at === 0;
  for (const id of ["to-last", "to-next"]) byId(id).disabled = at === most() - 1;
}

function play(on) {
  clearInterval(timer);
  timer = on && setInterval(() => at < most() - 1 ? show(at + 1) : play(false), STEP_MS);
  byId("to-play").textContent = on ? "pause" : "play";
}

function go(i) {
  follows = false;
  play(false);
  show(i);
}

const steps = { "to-first": () => 0, "to-back": () => at - 1, "to-next": () => at + 1, "to-last": () => most() - 1 };
for (const id in steps) byId(id).onclick = () => go(steps[id]());
byId("to-play").onclick = () => {
  follows = false;
  if (!timer && at === most() - 1) show(0);
  play(!timer);
};
byId("slider").oninput = event => go(event.target.value - 1);
const keys = { ArrowLeft: "to-back", ArrowRight: "to-next", Home: "to-first", End: "to-last", p: "to-play" };
addEventListener("keydown", event => {
  if (byId("playground").hidden || byId("key").open) return;
  if (event.key === "Escape" && running) { event.preventDefault(); running.abort(); return; }
  if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); run(); return; }
  const id = keys[event.key];
  if (!id || byId("stepper").hidden || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  byId(id).click();
});

// ---- running

// The part of the request that all runs share. Throws an Error if the tool is not JSON.
function request() {
  const prompt = byId("prompt").value, tools = server.chat ? readTools(byId("play-tool").value) : undefined;
  return {
    ...(server.chat ? { messages: [{ role: "user", content: prompt }] } : { prompt }),
    ...(tools && { tools, tool_choice: "required", parallel_tool_calls: false }),
    temperature: Number(byId("play-temperature").value),
    seed: Number(byId("play-seed").value) || 0,
    max_tokens: Number(byId("play-tokens").value) || 60,
  };
}

const route = () => server.chat ? "/v1/chat/completions" : "/v1/completions";

async function plainText(asked, signal) {
  let text = "";
  await stream(route(), { ...asked, dtrun: { policy: PLAIN } }, signal, event => {
    if (event.choices[0]) text += textOf(event.choices[0]);
  });
  return text;
}

// Returns the speed of each lane's policy. Times of short texts are inaccurate, and those of the first runs most: such
// texts run again, in turns. With a trace no policy can copy from the text of the run before.
async function speeds(requests, signal) {
  if (lanes.some(lane => lane.numbers.tokens / lane.numbers.speed > SHORT_S)) return lanes.map(lane => lane.numbers.speed);
  const runs = lanes.map(() => []);
  for (let turn = 0; turn < AGAIN; turn++)
    for (const [i, body] of requests.entries()) runs[i].push((await post(route(), body, signal)).timings.predicted_per_second);
  return runs.map(list => list.sort((a, b) => a - b)[(AGAIN - 1) / 2]);
}

// Shows whether all texts equal that of plain decoding, which is run separately.
function judge(plain, [fast, slow]) {
  const [one, two] = lanes, wrong = lanes.find(lane => lane.text !== plain);
  const verdict = byId("verdict");
  verdict.className = wrong ? "error" : fast < slow ? "slower" : "good";
  if (wrong) {
    let i = 0;
    while (wrong.text[i] === plain[i]) i++;
    tell(verdict, `${wrong.numbers.policy}: the text differs from plain decoding's from character ${i + 1} on. This is a bug in dtrun: report it.`);
    return;
  }
  const equal = "Equal to plain decoding: all " + count(one.numbers.tokens, "token");
  tell(verdict, `${equal}. ${one.numbers.policy} took ${count(one.passes, "pass", "passes")}, ${two.numbers.policy} ${two.passes}: ` +
    `speedup ${(fast / slow).toFixed(2)}x.`);
}

function setBusy(busy) {
  byId("run").hidden = busy;
  byId("play-stop").hidden = !busy;
  byId("results").setAttribute("aria-busy", busy);
}

// The trees of both lanes get the height of the tallest one.
function fit() {
  const tallest = Math.max(...lanes.map(lane => lane.tallest));
  for (const lane of lanes) lane.setHeight(tallest);
}

// Runs one lane's text. It shows each pass as it comes, until the user moves the slider.
async function runLane(lane, body, signal) {
  let waits = false;
  await lane.run(route(), body, signal, () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(async () => {
      waits = false;
      if (follows) show(lane.passes - 1);
      await lane.draw(fit).catch(() => {}); // the call below reports the error
    });
  });
  await lane.draw(fit);
}

// Returns the request; null: a field is wrong, and the page says so.
function checkedRequest() {
  tell(byId("play-tool-error"), "");
  try {
    return request();
  } catch (error) {
    byId("play-tool-field").open = true;
    tell(byId("play-tool-error"), error.message);
    byId("play-tool").focus();
    return null;
  }
}

async function run() {
  const asked = running ? null : checkedRequest();
  if (!asked) return;
  const stopper = running = new AbortController(), chosen = [first, second];
  const requests = chosen.map(one => ({ ...asked, dtrun: { ...one.request(), trace: true } })); // the user may change the settings during the run
  setBusy(true);
  play(false);
  follows = true;
  tell(byId("play-error"), "");
  tell(byId("verdict"), "");
  byId("about").hidden = true;
  byId("stepper").hidden = byId("legend").hidden = false;
  if (!lanes.length) lanes = [new Lane(byId("lanes")), new Lane(byId("lanes"))];
  lanes.forEach((lane, i) => lane.clear(chosen[i].name()));
  show(0);
  if (narrow.matches) byId("results").scrollIntoView();
  try {
    if (chosen.some(one => one.select.value === OWN)) await check();
    for (const [i, lane] of lanes.entries()) await runLane(lane, requests[i], stopper.signal);
    const plain = lanes.find((lane, i) => requests[i].dtrun.policy === PLAIN);
    const text = plain ? plain.text : await plainText(asked, stopper.signal);
    const measured = await speeds(requests, stopper.signal);
    lanes.forEach((lane, i) => lane.setSpeed(measured[i]));
    judge(text, measured);
    if (follows) {
      show(0);
      play(most() > 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches);
    }
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
    else tell(byId("play-error"), "Stopped.");
  }
  running = null;
  setBusy(false);
}

let failed; // the text of the user's policy whose error is shown

// Shows an error; if it is in the user's policy, also at its line.
function fail(error) {
  tell(byId("play-error"), error.message);
  failed = usesOwn() ? own.text : undefined;
  if (!(error instanceof Refusal) || !/^(policy )?policy\.lua|policy\.lua:\d+:/.test(error.message)) return;
  mark(error.message);
  byId("own").scrollIntoView({ block: "nearest" });
}

// ---- links

const toText = bytes => btoa(Array.from(bytes, b => String.fromCharCode(b)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const toBytes = text => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0));

function link() {
  const state = {
    prompt: byId("prompt").value, temperature: byId("play-temperature").value, seed: byId("play-seed").value, tokens: byId("play-tokens").value,
    tool: byId("play-tool").value || undefined, policies: [first.state(), second.state()], source: usesOwn() ? own.text : undefined,
  };
  return location.origin + "/#playground=" + toText(new TextEncoder().encode(JSON.stringify(state)));
}

// Reads the state in a link. Nothing of it runs before the user presses Run.
async function openLink() {
  const held = /^#playground=([\w-]+)$/.exec(location.hash);
  if (!held || !second) return;
  try {
    const state = JSON.parse(new TextDecoder().decode(toBytes(held[1])));
    for (const [id, name] of [["prompt", "prompt"], ["play-temperature", "temperature"], ["play-seed", "seed"], ["play-tokens", "tokens"]])
      byId(id).value = String(state[name] ?? byId(id).value);
    setTool(String(state.tool ?? ""));
    if (typeof state.source === "string") await setText(state.source);
    first.choose(state.policies[0]);
    second.choose(state.policies[1]);
  } catch {
    tell(byId("play-error"), "The link is incomplete.");
  }
}

// ---- the beginning

function setTool(text) {
  byId("play-tool").value = text;
  byId("play-tool-field").open = Boolean(text);
}

const usesOwn = () => [first, second].some(one => one.select.value === OWN);

export async function openPlayground(about) {
  server = about;
  byId("prompt-label").textContent = server.chat ? "a question" : "a text to continue";
  if (server.chat) byId("prompt").value = "Why is the sky blue?";
  byId("play-tool-field").hidden = !server.chat;
  byId("legend").replaceChildren();
  treeLegend(byId("legend"));
  first = await chooser(byId("first-policy"), "policy", about.policy === PLAIN ? "rate" : about.policy, about.hasDraft);
  second = await chooser(byId("second-policy"), "compared with (ar is plain decoding)", PLAIN, about.hasDraft);
  const change = () => { byId("own").hidden = !usesOwn(); };
  first.onChange(change);
  second.onChange(change);
  await openEditor();
  await openLink();
  own.listeners.push(() => { // the text has changed since the error
    if (failed !== undefined && own.text !== failed) tell(byId("play-error"), "");
    if (own.text !== failed) failed = undefined;
  });
  change();
}

byId("setup").onsubmit = event => { event.preventDefault(); run(); };
byId("play-tool-example").onclick = () => setTool(EXAMPLE);
byId("play-stop").onclick = () => running?.abort();
byId("share").onclick = event => copy(link(), event.currentTarget);
addEventListener("hashchange", openLink);
