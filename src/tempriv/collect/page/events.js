/** Server-sent events by fetch, as EventSource cannot send the token in a header. */

import { Refused, request } from "./api.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 30_000;
const SILENCE = 40_000; // a heartbeat comes every 15 s: longer than two means that nobody is there

/**
 * Follow a route until the signal aborts or `onDocument` returns true ("that was the last").
 * onLink(up, seconds until the next try) tells how the connection is.
 */
export async function follow(path, { signal, onDocument, onLink, onRefused }) {
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    try {
      const ended = await readOnce(path, signal, onDocument, () => {
        wait = FIRST_WAIT;
        onLink(true, 0);
      });
      if (ended) return;
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Refused && [401, 403, 404].includes(problem.status)) {
        onRefused(problem.message);
        return;
      }
    }
    if (signal.aborted) return;
    const rest = wait * (0.75 + Math.random() / 2); // many pages must not all come back at once
    onLink(false, rest / 1000);
    await pause(rest, signal);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}

async function readOnce(path, signal, onDocument, onOpen) {
  const silence = new AbortController();
  let watch;
  const heard = () => {
    clearTimeout(watch);
    watch = setTimeout(() => silence.abort(), SILENCE);
  };
  heard();
  try {
    const both = AbortSignal.any([signal, silence.signal]);
    const answer = await request("GET", path, { signal: both, accept: "text/event-stream" });
    onOpen();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const lines = new EventLines();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      heard();
      for (const data of lines.push(value)) {
        if (onDocument(JSON.parse(data))) {
          reader.cancel().catch(() => {});
          return true;
        }
      }
    }
  } finally {
    clearTimeout(watch);
  }
}

/** Puts chunks together to the `data` of whole events. */
export class EventLines {
  #rest = "";
  #data = [];

  push(chunk) {
    const whole = [];
    const lines = (this.#rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length) whole.push(this.#data.join("\n"));
        this.#data = [];
      } else if (line.startsWith("data:")) {
        this.#data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
    return whole;
  }
}

export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
