/** The result of a campaign: a picture, a table with the same numbers, and downloads. */

import { download } from "./api.js";
import { alertPlace, announce, el, facts, fill } from "../ui/dom.js";
import { count, filledIn, when } from "../ui/format.js";
import { meaning } from "./meaning.js";
import { barsResult } from "./result_bars.js";
import { linesResult } from "./result_lines.js";
import { sequencesResult } from "./result_sequences.js";

const FORMS = [["csv", "CSV"], ["json", "JSON"], ["zip", "Everything (zip)"]];

const VIEWS = { bars: barsResult, lines: linesResult, sequences: sequencesResult, text: textResult };

/** view: how the server wants it drawn. Gives {node, update(result)}; pictures are kept, so a choice stays. */
export function resultBox(id, view, signal) {
  const summary = el("div", {});
  const held = el("div", {});
  const about = el("div", { class: "meaning" });
  const node = el("section", { class: "card result", "aria-labelledby": "result-heading" },
    el("h2", { id: "result-heading" }, "Result"), summary, held, downloads(id), about);
  const part = (VIEWS[view.view] ?? textResult)(view, signal);
  fill(held, part.node);
  return {
    node,
    update(result) {
      fill(summary, facts([
        [view.people_label ?? "Devices that answered", count(result.people)],
        result.finished_at && ["Finished", when(result.finished_at)],
        result.counted !== undefined && ["Counted in the last round", count(result.counted)],
      ]));
      // sentences about devices and the guarantee stand elsewhere on the page
      fill(about, meaning({ amplified: result.amplified, published: result.published, not_protected: result.not_protected }));
      part.update(result);
    },
  };
}

function textResult({ text }) {
  const node = el("p", {});
  return { node, update: (result) => { node.textContent = filledIn(text, result); } };
}

function downloads(id) {
  const alert = alertPlace();
  const buttons = FORMS.map(([form, words]) => {
    const button = el("button", { type: "button", class: "button" }, words);
    button.addEventListener("click", async () => {
      button.disabled = true;
      alert.clear();
      try {
        await download(`v1/campaigns/${id}/release?form=${form}`, `campaign-${id.slice(0, 8)}.${form}`);
        announce(`Downloaded as ${words}.`);
      } catch (problem) {
        alert.say(problem.message);
      } finally {
        button.disabled = false;
      }
    });
    return button;
  });
  return el("div", {}, el("div", { class: "actions downloads", role: "group", "aria-label": "Download the release" },
    el("span", { class: "note" }, "Download the release:"), buttons), alert.node);
}
