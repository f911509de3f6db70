// A text under one policy, pass by pass: its tree, the text so far, its numbers.
/* global treeView */
import { count, make } from "./dom.js";
import { post, stream, textOf } from "./server.js";
import { acceptedText, numbersOf, perPassText, speedText } from "./statistics.js";

const MOST_SENT = 700000; // maximum number of bytes of iterations in a request for drawings
const PHASES = ["prompt", "draft", "verify", "commit", "policy", "other"];

export class Lane {
  constructor(place) {
    this.panel = make("div", { class: "tree", tabindex: 0, role: "img" });
    this.words = make("div", { class: "words", tabindex: 0 });
    this.name = make("h2");
    this.sum = make("p", { class: "numbers" });
    this.step = make("p", { class: "numbers" });
    this.time = make("div", { class: "time", role: "img" });
    this.element = make("article", { class: "lane card" }, make("div", { class: "head" }, this.name, this.sum), this.step, this.panel, this.words, this.time);
    place.append(this.element);
    this.view = treeView(this.panel);
    this.panel.onkeydown = event => {
      const act = { "+": this.view.larger, "=": this.view.larger, "-": this.view.smaller, 0: this.view.fit }[event.key];
      if (act) { event.preventDefault(); act(); }
    };
    this.clear("");
  }

  clear(name) {
    Object.assign(this, { iterations: [], drawings: [], text: "", prompt: "", numbers: null, at: -1, asked: 0, tallest: 0 });
    this.name.textContent = name;
    this.panel.replaceChildren();
    for (const part of [this.sum, this.step, this.words, this.time]) part.replaceChildren();
  }

  // Runs a request with a trace and calls grew() for each new iteration.
  async run(route, body, signal, grew) {
    await stream(route, body, signal, event => {
      const choice = event.choices[0];
      if (!choice) return;
      this.text += textOf(choice);
      for (const line of choice.dtrun?.trace || []) {
        if (line.schema) this.prompt = line.prompt;
        if (line.nodes) { this.iterations.push(line); grew(); }
      }
      if (choice.dtrun?.stats) this.numbers = numbersOf(choice.dtrun, event.timings);
    });
    this.showSum();
  }

  setSpeed(speed) {
    this.numbers.speed = speed;
    this.showSum();
  }

  get passes() { return this.iterations.length; }

  showSum() {
    const n = this.numbers;
    if (!n) return;
    this.name.textContent = n.policy;
    this.name.title = n.settings;
    this.sum.replaceChildren(...[speedText(n), perPassText(n), acceptedText(n), `${count(n.tokens, "token")} in ${count(n.passes, "pass", "passes")}`]
      .map(text => make("span", {}, text)));
    const whole = PHASES.reduce((sum, part) => sum + n.time[part], 0), shares = [];
    this.time.replaceChildren(...PHASES.map(part => {
      const share = whole ? 100 * n.time[part] / whole : 0, bar = make("span", { class: part, title: `${part}: ${n.time[part].toFixed(2)} ms` });
      bar.style.width = share + "%";
      if (share >= 1) shares.push(`${part} ${share.toFixed(0)} %`);
      return bar;
    }));
    this.time.setAttribute("aria-label", "where the time went: " + shares.join(", "));
    this.time.append(make("small", {}, shares.join(" · ")));
  }

  // Requests the drawings of new iterations; onTallest() may give the trees more room.
  async draw(onTallest) {
    while (this.asked < this.iterations.length) {
      const list = [], mine = this.iterations, from = this.asked;
      for (let bytes = 0; this.asked < mine.length && (bytes < MOST_SENT || !list.length); this.asked++) {
        list.push(mine[this.asked]);
        bytes += JSON.stringify(mine[this.asked]).length;
      }
      const drawn = (await post("/v1/traces/draw", { iterations: list })).value;
      if (mine !== this.iterations) return; // another run has begun
      drawn.forEach((svg, i) => {
        this.drawings[from + i] = svg;
        this.tallest = Math.max(this.tallest, Number(/viewBox='[^']* ([0-9.]+)'/.exec(svg)[1]));
      });
      onTallest();
      if (this.at >= from && this.at < this.asked) this.showTree();
    }
  }

  setHeight(tallest) {
    this.panel.style.height = this.view.heightFor(tallest);
  }

  // Shows the tree of the current pass. While it is being drawn, the previous tree stays.
  showTree() {
    if (this.drawings[this.at]) this.view.show(this.drawings[this.at]);
  }

  // Shows the state after pass i, from 0. After its last pass the lane does not change.
  show(i) {
    const at = Math.min(i, this.passes - 1);
    this.element.classList.toggle("done", i >= this.passes);
    if (at < 0) return;
    this.at = at;
    const it = this.iterations[at], kept = it.nodes.filter(node => node.kept), accepted = kept.filter(node => node.accepted).length;
    const spans = [make("span", { class: "given" }, this.prompt)];
    this.iterations.slice(0, at + 1).forEach((one, k) => spans.push(make("span", { class: k === at ? "block now" : "block" },
      ...one.committed.map(token => make("span", { class: token.origin }, token.text)))));
    this.words.replaceChildren(...spans);
    this.words.scrollTop = this.words.scrollHeight;
    const committed = this.iterations.slice(0, at + 1).reduce((sum, one) => sum + one.committed.length, 0);
    const guessed = it.nodes.length - 1;
    this.step.replaceChildren(...[
      `pass ${at + 1} of ${this.passes}`,
      guessed ? `${count(guessed, "guess", "guesses")}, ${kept.length} checked, ${accepted} accepted` : "no guesses",
      `${count(it.committed.length, "token")}, ${committed} so far`,
      ...Object.entries(it.log || {}).map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`),
    ].map(text => make("span", {}, text)));
    this.panel.setAttribute("aria-label", `the tree of pass ${at + 1}: ${guessed} guesses, ${accepted} accepted`);
    this.showTree();
  }
}
