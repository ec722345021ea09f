/** The result of a campaign: a picture, a table with the same numbers, and downloads. */

import { download } from "./api.js";
import { alertPlace, announce, el, facts, fill } from "./dom.js";
import { count, when } from "./format.js";
import { meaning } from "./meaning.js";
import { categoriesResult } from "./result_categories.js";
import { shapesResult } from "./result_shapes.js";
import { streamResult } from "./result_stream.js";

const FORMS = [["csv", "CSV"], ["json", "JSON"], ["zip", "Everything (zip)"]];

/** Gives {node, update(result)}; pictures are kept and drawn anew, so a choice stays. */
export function resultBox(id, kind, signal) {
  const summary = el("div", {});
  const held = el("div", {});
  const about = el("div", { class: "meaning" });
  const node = el("section", { class: "card result", "aria-labelledby": "result-heading" },
    el("h2", { id: "result-heading" }, "Result"), summary, held, downloads(id), about);
  const parts = { shapes: shapesResult, frequency: categoriesResult, stream: streamResult, upload: uploadResult };
  const part = (parts[kind] ?? uploadResult)(signal);
  fill(held, part.node);
  return {
    node,
    update(result) {
      fill(summary, facts([
        [kind === "stream" ? "Most answers at one step" : "Devices that answered", count(result.people)],
        result.finished_at && ["Finished", when(result.finished_at)],
        result.counted !== undefined && ["Counted in the last round", count(result.counted)],
      ]));
      // sentences about devices and the guarantee stand elsewhere on the page
      fill(about, meaning({ amplified: result.amplified, published: result.published, not_protected: result.not_protected }));
      part.update(result);
    },
  };
}

function uploadResult() {
  const node = el("p", {});
  return {
    node,
    update(result) {
      node.textContent = `${count(result.series)} protected series were sent. Download them: what they show is as private as the guarantee says.`;
    },
  };
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
