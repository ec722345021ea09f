/** How far a question is. */

import { now } from "./api.js";
import { el } from "../ui/dom.js";
import { count, duration, share } from "../ui/format.js";

export function progressBar(label) {
  const node = el("progress", { "aria-label": label, max: 1, value: 0 });
  node.hidden = true;
  return {
    node,
    show(received, expected) {
      node.hidden = false;
      node.max = Math.max(1, expected);
      node.value = Math.min(received, node.max);
      node.title = `${count(received)} of ${count(expected)}`;
    },
    hide() {
      node.hidden = true;
    },
  };
}

/** Rounded down: 100 % means all. */
export function part(received, expected) {
  return expected > 0 ? share(Math.floor(1000 * Math.min(1, received / expected)) / 1000) : "";
}

export function timeLeft(closesAt) {
  const seconds = (Date.parse(closesAt) - now()) / 1000;
  if (!Number.isFinite(seconds)) return "";
  return seconds > 0 ? `closes in ${duration(seconds)}` : "closing now";
}
