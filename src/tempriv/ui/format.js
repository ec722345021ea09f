/** Numbers with their units, and moments in local time. */

import { el } from "./dom.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const percent = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const moment = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
});
const NO_BREAK = "\u00a0";

export const count = (n) => (Number.isFinite(n) ? whole.format(n) : "–");
export const number = (x) => (Number.isFinite(x) ? short.format(x) : "–");
export const plural = (n, one, many = `${one}s`) => `${count(n)}${NO_BREAK}${n === 1 ? one : many}`;

export function share(x) {
  return Number.isFinite(x) ? `${percent.format(100 * x + 0)}${NO_BREAK}%` : "–";
}

export function interval(low, high) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return "–";
  return `${percent.format(100 * low)} to ${percent.format(100 * high)}${NO_BREAK}%`;
}

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** The two largest units: "1 h 40 min". */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  let left = Math.max(0, Math.round(seconds));
  const first = UNITS.findIndex(([, size]) => left >= size);
  if (first < 0) return `0${NO_BREAK}s`;
  const parts = [];
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const many = Math.floor(left / size);
    left -= many * size;
    if (many) parts.push(`${many}${NO_BREAK}${unit}`);
  }
  return parts.join(" ");
}

/** A moment in local time; the ISO form is its title. */
export function when(iso) {
  const at = new Date(iso ?? NaN);
  if (Number.isNaN(at.getTime())) return "–";
  return el("time", { datetime: iso, title: iso }, moment.format(at));
}

/** "2026-11-16T23:00:00Z": seconds are enough for a campaign. */
export const isoSeconds = (milliseconds) => new Date(milliseconds).toISOString().replace(/\.\d+Z$/, "Z");

export const STATES = {
  waiting: "Waiting to open", running: "Running", finished: "Finished", cancelled: "Canceled",
  failed: "Failed",
};

const FORMATS = { count, number, duration, share };

/** The value at a path such as "plan.steps"; undefined if there is none. */
export const valueAt = (data, path) => path.split(".").reduce((found, name) => found?.[name], data);

/** A text with {path} or {path|format} for values of `data`. */
export const filledIn = (text, data) => text.replace(/\{([\w.]+)(?:\|(\w+))?\}/g,
  (_, path, format) => (FORMATS[format] ?? String)(valueAt(data, path)));
