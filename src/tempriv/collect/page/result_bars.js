/** Shares as bars with intervals, and the same in a table. */

import { barChart } from "../ui/chart_bars.js";
import { el, renew } from "../ui/dom.js";
import { count, interval, share } from "../ui/format.js";
import { resultTable } from "./result_table.js";

const MOST_PICTURED = 40;

export function barsResult(view, signal) {
  const place = el("div", { class: "plot", role: "img" });
  const pointed = el("p", { class: "readout", "aria-hidden": "true" }, "\u00a0");
  const note = el("p", { class: "note" });
  const numbers = el("div", {});
  const node = el("div", { class: "beside" },
    el("figure", {}, el("figcaption", {}, `${view.caption}, with 95\u00a0% intervals`), place, pointed, note), numbers);
  let rows = [];
  let draw = null;

  const onPoint = (index) => {
    const row = index === null ? null : rows[index];
    pointed.textContent = row ? `${row.name}: ${share(row.share)} (${interval(row.low, row.high)})` : "\u00a0";
  };

  function update(result) {
    const all = [...result[view.rows]].sort((a, b) => b.share - a.share);
    rows = all.slice(0, MOST_PICTURED).map((one) => ({ name: one[view.name], share: one.share, low: one.low, high: one.high }));
    note.textContent = all.length > rows.length ? `The ${count(rows.length)} most common of ${count(all.length)}; the others are in the table.` : "";
    place.setAttribute("aria-label", `Bars for ${count(rows.length)} rows. The most common is ${rows[0]?.name ?? "none"} with ${share(rows[0]?.share)}. All numbers are in the table.`);
    renew(numbers, resultTable(view, all));
    if (draw) draw();
    else if (rows.length) draw = barChart(place, () => rows, onPoint, signal);
  }
  return { node, update };
}
