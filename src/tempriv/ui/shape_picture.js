/** A shape as a small drawing: grey steps are what was found, the line is drawn through them. */

import { svg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 120;
const LEFT = 22;
const EDGE = 12;
const SMOOTH = 12; // pieces of a line between two letters

/** The letters of a text, from the lowest level 0 up. */
export const levelsOf = (shape) => [...shape].map((letter) => letter.codePointAt(0) - 97);

export function shapePicture(shape, symbols) {
  const levels = levelsOf(shape).filter((level) => level >= 0 && level < symbols);
  const height = (level) => HEIGHT - EDGE - (level * (HEIGHT - 2 * EDGE)) / Math.max(1, symbols - 1);
  const each = (WIDTH - LEFT - EDGE) / Math.max(1, levels.length);
  const middle = (i) => LEFT + (i + 0.5) * each;
  const scale = Array.from({ length: symbols }, (_, level) => [
    svg("line", { class: "level", x1: LEFT, x2: WIDTH - EDGE, y1: height(level), y2: height(level) }),
    // beyond ten levels not every letter has room
    (symbols <= 10 || level % Math.ceil(symbols / 8) === 0) &&
      svg("text", { class: "letter", x: LEFT - 8, y: height(level) + 4, "text-anchor": "end" },
        String.fromCodePoint(97 + level)),
  ]);
  const words = levels.length ? `Shape ${shape}: ${levels.map((level) => level + 1).join(", ")} of ${symbols} levels` : "An empty shape";
  return svg("svg", { class: "shape", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    scale,
    svg("path", { class: "found", d: steps(levels, height, each) }),
    svg("path", { class: "drawn", d: smooth(levels, height, middle) }));
}

function steps(levels, height, each) {
  return levels.map((level, i) =>
    `${i ? "L" : "M"}${at(LEFT + i * each)} ${at(height(level))}L${at(LEFT + (i + 1) * each)} ${at(height(level))}`).join("");
}

/** From the middle of one letter to that of the next in half a cosine wave, never beyond them. */
function smooth(levels, height, middle) {
  if (!levels.length) return "";
  const parts = [`M${at(LEFT)} ${at(height(levels[0]))}L${at(middle(0))} ${at(height(levels[0]))}`];
  for (let i = 1; i < levels.length; i += 1) {
    for (let k = 1; k <= SMOOTH; k += 1) {
      const way = (1 - Math.cos((Math.PI * k) / SMOOTH)) / 2;
      const x = middle(i - 1) + ((middle(i) - middle(i - 1)) * k) / SMOOTH;
      const y = height(levels[i - 1]) + way * (height(levels[i]) - height(levels[i - 1]));
      parts.push(`L${at(x)} ${at(y)}`);
    }
  }
  parts.push(`L${at(WIDTH - EDGE)} ${at(height(levels.at(-1)))}`);
  return parts.join("");
}

const at = (x) => x.toFixed(1);

/** A share with its interval on a line from 0 to `most`. */
export function shareLine({ share, low, high }, most) {
  const width = 240;
  const x = (part) => at(6 + ((width - 12) * Math.min(1, Math.max(0, part))) / Math.max(most, 1e-9));
  return svg("svg", { class: "share-line", viewBox: `0 0 ${width} 16`, "aria-hidden": "true" },
    svg("line", { class: "track", x1: 6, x2: width - 6, y1: 8, y2: 8 }),
    svg("line", { class: "interval", x1: x(low), x2: x(high), y1: 8, y2: 8 }),
    svg("circle", { class: "share", cx: x(share), cy: 8, r: 4.5 }));
}
