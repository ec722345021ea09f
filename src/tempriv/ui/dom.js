/** Elements without markup text: what comes from elsewhere is only ever a text node or an attribute. */

const SVG = "http://www.w3.org/2000/svg";
let made = 0;

export const newId = (what) => `${what}-${++made}`;

/** el("p", {class: "note", on: {click: f}}, "text", node, null) */
export function el(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), attributes, children);
}

function dressed(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
    } else node.setAttribute(name, value === true ? "" : String(value));
  }
  fill(node, ...children);
  return node;
}

/** Replace what a node holds; null, undefined and false are left out. */
export function fill(node, ...children) {
  const kept = children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
  node.replaceChildren(...kept);
  return node;
}

/** Say something to those who hear the page; the same sentence is not said twice in a row. */
export function announce(sentence) {
  const place = document.getElementById("announcer");
  if (place.textContent !== sentence) place.textContent = sentence;
}

/** A place for what went wrong: said aloud as soon as it is filled. */
export function alertPlace() {
  const place = el("p", { class: "alert", role: "alert" });
  place.hidden = true;
  return {
    node: place,
    say(sentence) {
      place.hidden = false;
      place.textContent = sentence;
    },
    clear() {
      place.hidden = true;
      place.textContent = "";
    },
  };
}

/** A table that can be wider or longer than its place. Columns: {head, cell(row), number, rowHead}. */
export function table({ caption, columns, rows, tall = false, empty = "Nothing yet." }) {
  if (!rows.length) return el("p", { class: "note" }, empty);
  const head = el("tr", {}, columns.map((column) =>
    el("th", { scope: "col", class: column.number ? "number" : null }, column.head)));
  const body = rows.map((row, index) => el("tr", {}, columns.map((column) =>
    el(column.rowHead ? "th" : "td",
      { scope: column.rowHead ? "row" : null, class: column.number ? "number" : null },
      column.cell(row, index)))));
  return el("div",
    { class: tall ? "scroll tall" : "scroll", role: "region", tabindex: "0", "aria-label": caption },
    el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, head),
      el("tbody", {}, body)));
}

/** Put a newer table in the place of one; where a person has scrolled to, and the focus, stay. */
export function renew(place, newer) {
  const old = place.firstElementChild;
  const had = old && [old.scrollTop, old.scrollLeft, old === document.activeElement];
  fill(place, newer);
  if (!had) return;
  [newer.scrollTop, newer.scrollLeft] = had;
  if (had[2]) newer.focus({ preventScroll: true });
}

/** Names with values. Pairs: [name, value or nodes]. */
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** Hand over data as a file with this name. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
