/** Sequences of letters as small pictures, with their shares. */

import { el, fill, renew } from "../ui/dom.js";
import { count, filledIn, interval, share, valueAt } from "../ui/format.js";
import { shapePicture, shareLine } from "../ui/shape_picture.js";
import { resultTable, sequenceName } from "./result_table.js";

const MOST_PICTURED = 24;
const SURE = {
  true: ["sure", "surely there"],
  false: ["unsure", "not surely there: noise alone can make this"],
};

export function sequencesResult(view) {
  const gallery = el("ul", { class: "gallery" });
  const note = el("p", { class: "note" });
  const numbers = el("div", {});
  const node = el("div", { class: "stack" }, gallery, note, numbers);

  function update(result) {
    const rows = result[view.rows];
    const symbols = valueAt(result.spec, view.symbols);
    if (!rows.length) {
      fill(gallery);
      note.textContent = "No shape was found.";
      return;
    }
    const most = Math.max(...rows.map((row) => row.high), 0.01);
    fill(gallery, rows.slice(0, MOST_PICTURED).map((row) => picture(row, row[view.name], symbols, most)));
    const last = String.fromCodePoint(96 + symbols);
    const notes = view.notes.filter(({ when }) => !when || valueAt(result.spec, when.field) === when.equals);
    note.textContent = `Letters go from a, the lowest level, to ${last}, the highest. Gray steps are what was found; the line is drawn through them. `
      + notes.map(({ text }) => filledIn(text, result.spec)).join(" ")
      + (rows.length > MOST_PICTURED ? ` ${count(rows.length - MOST_PICTURED)} more are in the table only.` : "");
    renew(numbers, resultTable(view, rows));
  }
  return { node, update };
}

function picture(one, sequence, symbols, most) {
  const sure = SURE[String(one.sure)];
  return el("li", { class: "shape-card" },
    el("h3", {}, el("code", {}, sequenceName(sequence, one)), one.label && el("span", { class: "label" }, one.label)),
    shapePicture(sequence, symbols),
    shareLine(one, most),
    el("p", { class: "figures" }, el("strong", {}, share(one.share)), " ",
      el("span", { class: "note" }, `95\u00a0%: ${interval(one.low, one.high)}`)),
    sure && el("p", { class: `mark-${sure[0]}` }, sure[1]));
}
