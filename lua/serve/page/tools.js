// Tools: their JSON as a person writes it, and the calls of an answer.
import { make } from "./dom.js";

export const EXAMPLE = `{
  "name": "get_weather",
  "description": "The weather in a city.",
  "parameters": {
    "type": "object",
    "properties": {
      "city": { "type": "string", "maxLength": 20 },
      "unit": { "enum": ["celsius", "fahrenheit"] }
    },
    "required": ["city", "unit"],
    "additionalProperties": false
  }
}`;

// Reads a function, or a list of functions, each with or without {type, function} around it. Returns undefined if the text
// is empty. Throws an Error if it is not JSON.
export function readTools(text) {
  if (!text.trim()) return undefined;
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error("The tools are not JSON: " + error.message);
  }
  return [value].flat().map(tool => tool?.function ? tool : { type: "function", function: tool });
}

// Adds what a stream's delta says to the calls of an answer: [{id, name, arguments}].
export function addCalls(calls, delta) {
  for (const part of delta?.tool_calls || []) {
    const call = calls[part.index] ||= { id: part.id, name: "", arguments: "" };
    call.name += part.function.name ?? "";
    call.arguments += part.function.arguments ?? "";
  }
}

// Returns whether a call is whole: the answer may have ended in the middle of it.
export function isWhole(call) {
  try {
    return typeof JSON.parse(call.arguments) === "object";
  } catch {
    return false;
  }
}

// A call as a message of a conversation has it.
export const asMessage = call => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } });

// Shows the calls in an element, each folded, and keeps those open that are.
export function showCalls(place, calls) {
  calls.forEach((call, i) => {
    if (!place.children[i]) place.append(make("details", { class: "folded call" }, make("summary"), make("pre")));
    const [name, text] = place.children[i].children;
    name.textContent = "Call of " + call.name;
    text.textContent = call.arguments;
  });
}
