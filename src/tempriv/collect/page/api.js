/** Requests to the server that this page came from. */

import { save } from "../ui/dom.js";
import { signOut, token } from "./session.js";

export const ROOT = new URL("../", import.meta.url);
let ahead = 0; // milliseconds of the server's clock before ours

/** The time by the server's clock, as a wrong clock here must not make a wrong time left. */
export const now = () => Date.now() + ahead;

/** A request that was refused, with the server's own sentence. */
export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

export async function request(method, path, { body, signal, accept, as } = {}) {
  const carried = as ?? token();
  const headers = { Accept: accept ?? "application/json" };
  if (carried) headers.Authorization = `Bearer ${carried}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(new URL(path, ROOT), {
      method, headers, signal, cache: "no-store", credentials: "omit", redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refused(0, "The server does not answer. Check that it is running, then try again.");
  }
  noteTime(answer);
  if (answer.ok) return answer;
  const reason = await reasonOf(answer);
  if (answer.status === 401 && carried === token()) signOut(reason);
  throw new Refused(answer.status, reason);
}

export async function call(method, path, options) {
  const answer = await request(method, path, options);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

export const get = (path, signal) => call("GET", path, { signal });
export const post = (path, body = {}, signal) => call("POST", path, { body, signal });
export const remove = (path) => call("DELETE", path);

function noteTime(answer) {
  const told = Date.parse(answer.headers.get("Date") ?? "");
  const off = told + 500 - Date.now();
  ahead = Number.isFinite(off) && Math.abs(off) > 2000 ? off : 0;
}

async function reasonOf(answer) {
  try {
    const found = await answer.json();
    if (typeof found.reason === "string" && found.reason) return found.reason;
  } catch {
    // not JSON: a proxy's page, perhaps
  }
  return `The server refused this with status ${answer.status} and did not say why.`;
}

/** Authorization is a header, so a plain link cannot download: fetch, then hand over as a file. */
export async function download(path, name) {
  const answer = await request("GET", path, { accept: "*/*" });
  const told = /filename="?([^";]+)"?/.exec(answer.headers.get("Content-Disposition") ?? "");
  save(await answer.blob(), told ? told[1] : name);
}
