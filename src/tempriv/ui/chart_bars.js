/** Shares of categories as bars that lie, with 95 % intervals: names have room, on a phone as well. */

import { axis, chart, FONT, percentMarks, uPlot } from "./chart.js";

const ROW = 30;
const GAP = 12;

/** rows(): [{name, share, low, high}] with shares from 0 to 1. onPoint(index or null): what is pointed at. */
export function barChart(place, rows, onPoint, signal) {
  return chart(place, (colors, width) => build(rows(), colors, width, onPoint), signal);
}

function build(rows, colors, width, onPoint) {
  const names = fitting(rows.map((row) => row.name), 0.4 * width);
  const ends = rows.flatMap((row) => [row.share, row.low, row.high]).filter(Number.isFinite);
  const lowest = Math.min(0, ...ends) * 100;
  const highest = Math.max(0.01, ...ends) * 105;
  const places = rows.map((_, index) => index);
  const options = {
    height: ROW * rows.length + 64,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    cursor: {
      x: false, y: false, points: { show: false }, drag: { setScale: false, x: false, y: false },
    },
    scales: {
      x: { time: false, ori: 1, dir: -1, range: () => [-0.5, rows.length - 0.5] },
      y: { ori: 0, dir: 1, range: () => [lowest, highest] },
    },
    axes: [
      axis(colors, {
        side: 3, stroke: colors.ink, size: names.width + GAP, gap: 8, splits: () => places,
        values: () => names.texts, grid: { show: false }, ticks: { show: false },
      }),
      axis(colors, {
        side: 2, size: 34, label: "Share of devices", labelSize: 22, space: 60,
        values: (_, marks) => percentMarks(marks),
      }),
    ],
    series: [{}, {
      fill: colors.bar, width: 0, paths: uPlot.paths.bars({ size: [0.62, 22] }), points: { show: false },
    }],
    hooks: {
      draw: [(plot) => drawIntervals(plot, rows, colors)],
      setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)],
    },
  };
  return { options, data: [places, rows.map((row) => 100 * row.share)] };
}

function drawIntervals(plot, rows, colors) {
  const pen = plot.ctx;
  const scale = devicePixelRatio;
  pen.save();
  pen.strokeStyle = colors.ink;
  pen.lineWidth = 1.5 * scale;
  pen.beginPath();
  rows.forEach((row, index) => {
    if (!Number.isFinite(row.low) || !Number.isFinite(row.high)) return;
    const y = plot.valToPos(index, "x", true);
    const [from, to] = [row.low, row.high].map((end) => plot.valToPos(100 * end, "y", true));
    pen.moveTo(from, y);
    pen.lineTo(to, y);
    for (const x of [from, to]) {
      pen.moveTo(x, y - 5 * scale);
      pen.lineTo(x, y + 5 * scale);
    }
  });
  pen.stroke();
  pen.restore();
}

const pen = document.createElement("canvas").getContext("2d");

/** Names cut to a width, and how wide the widest is then. */
function fitting(names, room) {
  pen.font = FONT;
  const texts = names.map((name) => {
    if (pen.measureText(name).width <= room) return name;
    let end = name.length;
    while (end > 1 && pen.measureText(`${name.slice(0, end)}…`).width > room) end -= 1;
    return `${name.slice(0, end)}…`;
  });
  return { texts, width: Math.ceil(Math.max(...texts.map((text) => pen.measureText(text).width))) };
}
