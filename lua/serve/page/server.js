// Sends requests to the server that this page comes from.

const KEY = "dtrun.key"; // kept until the tab is closed
export const key = {
  get: () => sessionStorage.getItem(KEY) || "",
  set: value => value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY),
};

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let onKey = async () => false; // asks the user for a key; returns whether there is a new one
export const whenKeyIsNeeded = ask => { onKey = ask; };

async function send(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (key.get()) headers.Authorization = "Bearer " + key.get();
  try {
    return await fetch(path, body === undefined ? { headers, signal }
      : { method: "POST", headers, signal, body: JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server does not answer. Is dtrun serve still running?");
  }
}

async function refusalOf(response) {
  const text = await response.text();
  try {
    return new Refusal(response.status, JSON.parse(text).error.message);
  } catch {
    return new Refusal(response.status, text || "status " + response.status);
  }
}

// GET, or POST with a body; returns a response that is not a refusal. If the key is missing or wrong, it asks for one
// and tries again.
async function ask(path, body, signal) {
  let response = await send(path, body, signal);
  while (response.status === 401 && await onKey()) response = await send(path, body, signal);
  if (!response.ok) throw await refusalOf(response);
  return response;
}

export const get = async path => (await ask(path)).json();
export const post = async (path, body, signal) => (await ask(path, body, signal)).json();

// Returns whether the model is loaded.
export const isReady = async () => (await send("/health")).ok;

// Yields the lines of a stream of bytes.
async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    yield* lines;
  }
}

// The text of a stream's choice: of a completion, or of an answer with its calls.
export function textOf(choice) {
  const parts = (choice.delta?.tool_calls || []).map(part => (part.function.name ?? "") + (part.function.arguments ?? ""));
  return (choice.delta?.content ?? choice.text ?? "") + parts.join("");
}

// Sends a request for a stream and calls take(event) for each event.
export async function stream(path, body, signal, take) {
  const response = await ask(path, { ...body, stream: true }, signal);
  for await (const line of linesOf(response.body)) {
    if (!line.startsWith("data: {")) continue;
    const event = JSON.parse(line.slice(6));
    if (event.error) throw new Refusal(event.error.code, event.error.message);
    take(event);
  }
}
