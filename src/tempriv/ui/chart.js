/** Charts that follow the width of their place and the colors of the page. */

import uPlot from "./vendor/uplot/uPlot.esm.min.js";
import { color } from "./theme.js";

export { uPlot };

const LINES = 6;

export function palette() {
  return {
    ink: color("--ink"), soft: color("--soft"), rule: color("--rule"), page: color("--card"),
    bar: color("--bar"),
    lines: Array.from({ length: LINES }, (_, i) => color(`--line-${i + 1}`)),
  };
}

/** Beyond so many, colors come again with another dash. */
export const dashOf = (index) => [[], [8, 4], [2, 3], [10, 3, 2, 3]][Math.floor(index / LINES) % 4];

export const FONT = "13px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/**
 * build(colors, width) -> {options, data}. Drawn anew when the place or the theme changes.
 * Gives draw(), for new data.
 */
export function chart(place, build, signal) {
  let plot = null;
  let width = 0;
  function draw() {
    width = Math.floor(place.clientWidth);
    if (!width) return;
    const { options, data } = build(palette(), width);
    const made = new uPlot({ width, ...options }, data);
    place.replaceChildren(made.root);
    plot?.destroy();
    plot = made;
  }
  const watcher = new ResizeObserver(() => {
    if (Math.floor(place.clientWidth) !== width) requestAnimationFrame(draw);
  });
  watcher.observe(place);
  addEventListener("theme-changed", draw, { signal });
  signal.addEventListener("abort", () => {
    watcher.disconnect();
    plot?.destroy();
  });
  draw();
  return draw;
}

/** "12 %", with as many decimals as neighboring marks need. */
export function percentMarks(values) {
  const gap = values.length > 1 ? Math.abs(values[1] - values[0]) : 1;
  const decimals = Math.max(0, Math.ceil(-Math.log10(gap) - 1e-9));
  return values.map((value) => `${value.toFixed(decimals)} %`);
}

export function axis(colors, more) {
  return {
    stroke: colors.soft, font: FONT, labelFont: FONT,
    grid: { stroke: colors.rule, width: 1 }, ticks: { stroke: colors.rule, width: 1, size: 5 }, ...more,
  };
}
