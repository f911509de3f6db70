// Small helpers for the document. Texts of models and users become text nodes, never markup.

export const byId = id => document.getElementById(id);

// make("a", {href: "#", class: "x", onclick: f}, "text", child, ..) returns a new element.
export function make(tag, about = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== undefined));
  return element;
}

// Shows a line in an element; without a text, hides the element.
export function tell(place, text) {
  place.textContent = text || "";
  place.hidden = !text;
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    button.textContent = "not allowed";
  }
  setTimeout(() => { button.textContent = before; }, 1200);
}

export const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
