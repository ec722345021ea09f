/** The shapes that many series have in common. */

import { el, fill, renew, table } from "./dom.js";
import { count, interval, share } from "./format.js";
import { shapePicture, shareLine } from "./shape_picture.js";

const MOST_PICTURED = 24;
const SURE = {
  true: ["sure", "surely there"],
  false: ["unsure", "not surely there: noise alone can make this"],
};

export function shapesResult() {
  const gallery = el("ul", { class: "gallery" });
  const note = el("p", { class: "note" });
  const numbers = el("div", {});
  const node = el("div", { class: "stack" }, gallery, note, numbers);

  function update(result) {
    const { shapes } = result;
    const { sax, labels } = result.spec.plan;
    const labelled = labels.length > 0;
    if (!shapes.length) {
      fill(gallery);
      note.textContent = "No shape was found.";
      return;
    }
    const most = Math.max(...shapes.map((one) => one.high), 0.01);
    fill(gallery, shapes.slice(0, MOST_PICTURED).map((one) => picture(one, sax.symbols, most)));
    const last = String.fromCodePoint(96 + sax.symbols);
    note.textContent = `Letters go from a, the lowest level, to ${last}, the highest. Grey steps are what was found; the line is drawn through them. `
      + (sax.compressed ? "How long a letter lasted is left out, so each has an equal share of the width." : `Each letter stands for ${count(sax.segment)} readings.`)
      + (shapes.length > MOST_PICTURED ? ` ${count(shapes.length - MOST_PICTURED)} more are in the table only.` : "");
    renew(numbers, table({
      caption: "Shapes with their shares", rows: shapes, tall: shapes.length > 14,
      columns: [
        { head: "Shape", rowHead: true, cell: (one) => el("code", {}, nameOf(one)) },
        labelled && { head: "Label", cell: (one) => one.label ?? "" },
        { head: "Share", number: true, cell: (one) => share(one.share) },
        { head: "95\u00a0% interval", number: true, cell: (one) => interval(one.low, one.high) },
        { head: "Devices, about", number: true, cell: (one) => count(one.count) },
        { head: "Standard error", number: true, cell: (one) => count(one.standard_error) },
        shapes.some((one) => one.sure !== null && one.sure !== undefined) &&
          { head: "Surely there", cell: (one) => (one.sure === true ? "yes" : one.sure === false ? "no" : "–") },
      ].filter(Boolean),
    }));
  }
  return { node, update };
}

/** A shape that may go on after its last letter has dots. */
const nameOf = (one) => `${one.shape}${one.ends === false ? "…" : ""}`;

function picture(one, symbols, most) {
  const sure = SURE[String(one.sure)];
  return el("li", { class: "shape-card" },
    el("h3", {}, el("code", {}, nameOf(one)), one.label && el("span", { class: "label" }, one.label)),
    shapePicture(one.shape, symbols),
    shareLine(one, most),
    el("p", { class: "figures" }, el("strong", {}, share(one.share)), " ",
      el("span", { class: "note" }, `95\u00a0%: ${interval(one.low, one.high)}`)),
    sure && el("p", { class: `mark-${sure[0]}` }, sure[1]));
}
