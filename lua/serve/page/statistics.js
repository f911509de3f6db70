// The numbers that the page shows next to a text.
import { count, make } from "./dom.js";

const number = (x, digits = 0) => x.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });

// result: the field "dtrun" of a choice; timings: the answer's timings.
export function numbersOf(result, timings) {
  const s = result.stats;
  return {
    policy: result.policy,
    settings: Object.entries(result.params).map(([name, value]) => `${name}=${value}`).join(" "),
    speed: timings?.predicted_per_second || s.tokens_per_second,
    perPass: s.tokens_per_iteration || 0,
    passes: s.iterations,
    tokens: timings?.predicted_n ?? 0,
    drafted: s.drafted,
    accepted: s.accepted,
    time: s.time_ms,
    finish: result.finish_reason,
  };
}

export const speedText = n => `${number(n.speed, n.speed < 100 ? 1 : 0)} tokens/s`;
export const perPassText = n => `${number(n.perPass, 2)} tokens per pass`;
export const acceptedText = n => n.drafted ? `${number(100 * n.accepted / n.drafted)} % of ${count(n.drafted, "guess", "guesses")} accepted` : "no guesses";

// Returns a line of numbers for below an answer.
export function line(n) {
  const part = (text, title) => make("span", { title }, text);
  return make("p", { class: "numbers" },
    make("b", { title: n.settings }, n.policy),
    part(speedText(n), "not counting the time of the prompt"),
    part(perPassText(n), "each pass of the target model checks one tree of guesses"),
    part(acceptedText(n), "guesses that the target accepted"),
    part(count(n.tokens, "token"), "the text ended: " + n.finish));
}
