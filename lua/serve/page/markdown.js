// A small part of Markdown as elements: paragraphs, headings, lists, quotes, code, bold and italic letters. Everything
// else stays text. There are no links and no pictures, so that an answer can neither load nor lead to anything.
import { copy, make } from "./dom.js";

const INLINE = /(`+)(.+?)\1|\*\*(?=\S)(.+?)\*\*|\*(?=\S)([^*]+?)\*/g;

function inline(parent, text) {
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parent.append(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] !== undefined) parent.append(make("code", {}, found[2]));
    else parent.append(inline(make(found[3] !== undefined ? "strong" : "em"), found[3] ?? found[4]));
  }
  parent.append(text.slice(at));
  return parent;
}

function codeBlock(lines, language) {
  const text = lines.join("\n");
  const button = make("button", { type: "button", class: "quiet", onclick: () => copy(text, button) }, "copy");
  return make("figure", { class: "code" }, make("figcaption", {}, make("span", {}, language || "code"), button),
    make("pre", { tabindex: 0 }, make("code", {}, text)));
}

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/, HEADING = /^(#{1,6})\s+(.*)/, QUOTE = /^>\s?(.*)/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)/, RULE = /^ {0,3}([-*_])( *\1){2,}\s*$/;
const begins = line => !line.trim() || FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line) || RULE.test(line);

export function markdown(text) {
  const out = document.createDocumentFragment(), lines = text.split("\n");
  let list = null;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i], fence = FENCE.exec(line), item = ITEM.exec(line);
    if (!item) list = line.trim() ? null : list;
    if (fence) {
      const body = [];
      while (++i < lines.length && !lines[i].trim().startsWith(fence[1])) body.push(lines[i]);
      out.append(codeBlock(body, fence[2]));
    } else if (RULE.test(line)) {
      out.append(make("hr"));
    } else if (HEADING.test(line)) {
      const [, marks, words] = HEADING.exec(line);
      out.append(inline(make("h" + Math.min(6, marks.length + 2)), words)); // below the page's own headings
    } else if (item) {
      const tag = item[1] ? "ol" : "ul";
      if (list?.localName !== tag) out.append(list = make(tag, item[1] && item[1] !== "1" ? { start: item[1] } : {}));
      list.append(inline(make("li"), item[2]));
    } else if (QUOTE.test(line)) {
      const words = [QUOTE.exec(line)[1]];
      while (i + 1 < lines.length && QUOTE.test(lines[i + 1])) words.push(QUOTE.exec(lines[++i])[1]);
      out.append(make("blockquote", {}, markdown(words.join("\n"))));
    } else if (line.trim()) {
      const words = [line];
      while (i + 1 < lines.length && !begins(lines[i + 1])) words.push(lines[++i]);
      out.append(inline(make("p"), words.join("\n")));
    }
  }
  return out;
}
