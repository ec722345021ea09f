/** How common each category is: bars with intervals, and the same in a table. */

import { barChart } from "./chart_bars.js";
import { el, renew, table } from "./dom.js";
import { count, interval, share } from "./format.js";

const MOST_PICTURED = 40;

export function categoriesResult(signal) {
  const place = el("div", { class: "plot", role: "img" });
  const pointed = el("p", { class: "readout", "aria-hidden": "true" }, "\u00a0");
  const note = el("p", { class: "note" });
  const numbers = el("div", {});
  const node = el("div", { class: "beside" },
    el("figure", {}, el("figcaption", {}, "Share of each category, with 95\u00a0% intervals"), place, pointed, note), numbers);
  let rows = [];
  let draw = null;

  const onPoint = (index) => {
    const row = index === null ? null : rows[index];
    pointed.textContent = row ? `${row.name}: ${share(row.share)} (${interval(row.low, row.high)})` : "\u00a0";
  };

  function update(result) {
    const all = [...result.categories].sort((a, b) => b.share - a.share);
    rows = all.slice(0, MOST_PICTURED).map((one) => ({ name: one.category, share: one.share, low: one.low, high: one.high }));
    note.textContent = all.length > rows.length ? `The ${count(rows.length)} most common of ${count(all.length)}; the others are in the table.` : "";
    place.setAttribute("aria-label", `Bars for ${count(rows.length)} categories. The most common is ${rows[0]?.name ?? "none"} with ${share(rows[0]?.share)}. All numbers are in the table.`);
    renew(numbers, table({
      caption: "Share of each category", rows: all, tall: all.length > 14,
      columns: [
        { head: "Category", rowHead: true, cell: (one) => one.category },
        { head: "Share", number: true, cell: (one) => share(one.share) },
        { head: "95\u00a0% interval", number: true, cell: (one) => interval(one.low, one.high) },
        { head: "Devices, about", number: true, cell: (one) => count(one.count) },
      ],
    }));
    if (draw) draw();
    else if (rows.length) draw = barChart(place, () => rows, onPoint, signal);
  }
  return { node, update };
}
