/** The running histogram: lines over steps, for the categories that a person chooses. */

import { lineChart } from "../ui/chart_lines.js";
import { dashOf } from "../ui/chart.js";
import { el, fill, renew, svg, table } from "../ui/dom.js";
import { count, interval, plural, share, valueAt } from "../ui/format.js";

const FIRST_SHOWN = 4;
const MOST_CHOICES = 60;
const MOST_ROWS = 500;

export function linesResult(view, signal) {
  const place = el("div", { class: "plot", role: "img" });
  const pointed = el("p", { class: "readout", "aria-hidden": "true" }, "\u00a0");
  const choices = el("fieldset", { class: "choices" });
  const note = el("p", { class: "note" });
  const numbers = el("div", {});
  const node = el("div", { class: "stack" },
    el("figure", {}, el("figcaption", {}, "Shares over time, with 95\u00a0% bands"), choices, place, pointed, note), numbers);
  let steps = [];
  let names = [];
  let chosen = null;
  let draw = null;

  /** How many steps came before anything was released. */
  const begin = () => {
    const first = steps.findIndex((step) => step.published);
    return first < 0 ? steps.length : first;
  };

  const onPoint = (index) => {
    const step = index === null ? null : steps[index];
    pointed.textContent = step && index >= begin()
      ? `Step ${count(step.step)}${step.published ? "" : " (repeated)"}: ${chosen.map((i) => `${names[i]} ${share(step.shares[i])}`).join(", ")}`
      : "\u00a0";
  };

  function update(result) {
    steps = result[view.rows];
    if (!steps.length) return;
    names = valueAt(result.spec, view.name);
    if (!chosen) choose();
    show();
  }

  function choose() {
    const latest = steps.at(-1).shares;
    const order = names.map((_, i) => i).sort((a, b) => latest[b] - latest[a]);
    chosen = order.slice(0, FIRST_SHOWN).sort((a, b) => a - b);
    fill(choices, el("legend", {}, "Categories"), order.slice(0, MOST_CHOICES).sort((a, b) => a - b).map((i) => {
      const box = el("input", { type: "checkbox" });
      box.checked = chosen.includes(i);
      box.addEventListener("change", () => {
        chosen = box.checked ? [...chosen, i].sort((a, b) => a - b) : chosen.filter((one) => one !== i);
        show();
      });
      return el("label", { class: "choice" }, box, swatch(i), names[i]);
    }));
  }

  function show() {
    const empty = begin();
    const begun = new Set(steps.slice(empty));
    const repeated = steps.filter((step) => begun.has(step) && !step.published).length;
    note.textContent = `${plural(steps.length, "step")} so far${repeated ? `, ${count(repeated)} of them repeat the one before; they are drawn flat` : ""}.`
      + (empty ? ` Nothing was released before step ${count(steps[0].step + empty)}.` : "")
      + (steps.length > MOST_ROWS ? ` The table has the latest ${count(MOST_ROWS)}; the download has all.` : "")
      + (names.length > MOST_CHOICES ? ` The ${count(MOST_CHOICES)} most common categories can be chosen; the download has all.` : "");
    place.setAttribute("aria-label", `Lines for ${plural(chosen.length, "category", "categories")} over ${plural(steps.length, "step")}. All numbers are in the table.`);
    renew(numbers, table({
      caption: view.caption, rows: steps.slice(-MOST_ROWS).toReversed(), tall: true,
      columns: [
        { head: "Step", rowHead: true, number: true, cell: (step) => count(step.step) },
        { head: "Release", cell: (step) => (step.published ? "new" : begun.has(step) ? "repeated" : "nothing yet") },
        { head: "Answers", number: true, cell: (step) => count(step.people) },
        ...chosen.map((i) => ({
          head: names[i], number: true,
          cell: (step) => (begun.has(step) ? [share(step.shares[i]), el("span", { class: "note block" }, interval(step.low?.[i], step.high?.[i]))] : "–"),
        })),
      ],
    }));
    if (draw) draw();
    else draw = lineChart(place, () => ({ steps, chosen }), onPoint, signal);
  }
  return { node, update };
}

function swatch(index) {
  return svg("svg", { class: `swatch line-${(index % 6) + 1}`, viewBox: "0 0 24 8", "aria-hidden": "true" },
    svg("line", { x1: 1, x2: 23, y1: 4, y2: 4, "stroke-dasharray": dashOf(index).map((part) => part * 0.8).join(" ") || null }));
}
