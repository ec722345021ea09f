/** The kinds of campaigns, as the server describes them: this page knows none by itself. */

import { get } from "./api.js";
import { count } from "../ui/format.js";

let kinds = [];

/** Ask the server for its kinds; their forms tell how many devices are enrolled now. */
export async function loadKinds(signal) {
  ({ kinds } = await get("v1/campaign-kinds", signal));
  return kinds;
}

/** What the server says of a kind: {name, title, summary, has_steps, questions, facts, form, result}. */
export const kindOf = (name) => kinds.find((kind) => kind.name === name)
  ?? { name, title: name, has_steps: false, questions: {}, facts: [], form: [], result: { view: "text", text: "" } };

/** "Step 12" where there are steps, from the id of a question; else "Question 3". */
export function questionName(kind, { id, number: place }) {
  const step = kindOf(kind).has_steps && /\/(\d+)\/\w+$/.exec(id ?? "");
  return step ? `Step ${count(Number(step[1]))}` : `Question ${count(place + 1)}`;
}

/** What is asked, in plain words. */
export const questionWords = (kind, question) => kindOf(kind).questions[question] ?? String(question ?? "");
