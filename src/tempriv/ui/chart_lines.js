/** Shares over steps: a line for each category, its 95 % interval as a band. */

import { axis, chart, dashOf, percentMarks, uPlot } from "./chart.js";

/**
 * content(): {steps: [{step, published, shares, low, high}], chosen: [index of a category]}.
 * Steps before the first published one have no line: nothing was known then.
 * onPoint(index of a step or null): what is pointed at.
 */
export function lineChart(place, content, onPoint, signal) {
  return chart(place, (colors, width) => build(content(), colors, width, onPoint), signal);
}

function build({ steps, chosen }, colors, width, onPoint) {
  const published = steps.map((step, index) => (step.published ? index : -1)).filter((index) => index >= 0);
  const begin = published.length ? published[0] : steps.length;
  const percent = (name, category) => steps.map((step, index) => {
    const value = step[name]?.[category];
    return index >= begin && Number.isFinite(value) ? 100 * value : null;
  });
  // where releases are repeated, a line stands still until the next one
  const standing = steps.slice(begin).some((step) => !step.published);
  const paths = standing ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
  const data = [steps.map((step) => step.step)];
  const [first, last] = [data[0][0], data[0].at(-1)];
  const series = [{}];
  const bands = [];
  for (const category of chosen) {
    const stroke = colors.lines[category % colors.lines.length];
    const place = series.length;
    data.push(percent("shares", category), percent("high", category), percent("low", category));
    series.push(
      {
        stroke, width: 2, paths, dash: dashOf(category), spanGaps: false,
        points: { show: 8 * steps.length <= width, size: 5, stroke, fill: stroke, filter: () => published },
      },
      { width: 0, paths, points: { show: false } }, { width: 0, paths, points: { show: false } });
    bands.push({ series: [place + 1, place + 2], fill: transparent(stroke, 0.16) });
  }
  const options = {
    height: width < 500 ? 260 : 340,
    padding: [12, 16, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 8 } },
    scales: {
      x: { time: false, range: () => [first, Math.max(last, first + 1)] },
      y: { range: (_, from, to) => [Math.min(0, from ?? 0), Math.max(1, (to ?? 1) * 1.05)] },
    },
    axes: [
      axis(colors, {
        label: "Step", labelSize: 22, size: 34, grid: { show: false }, space: 56, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000],
        values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? mark.toLocaleString("en") : "")),
      }),
      axis(colors, { label: "Share of devices", labelSize: 22, size: 52, values: (_, marks) => percentMarks(marks) }),
    ],
    series, bands,
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
  return { options, data };
}

function transparent(rgb, part) {
  const match = /rgba?\(([^)]+)\)/.exec(rgb);
  return match ? `rgba(${match[1].split(",").slice(0, 3).join(",")}, ${part})` : rgb;
}
