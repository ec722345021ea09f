/** What a campaign means for the people who are asked, in plain words. */

import { announce, el, fill } from "../ui/dom.js";
import { specBox } from "./spec_box.js";
import { meaning } from "./meaning.js";

/** `below` stays in sight under it: what there is to do once it is read. */
export function previewPane(below) {
  const state = el("p", { class: "warning" });
  const held = el("div", {});
  const accept = el("input", { type: "checkbox" });
  const weak = el("label", { class: "warning weak" }, accept,
    " Start it although it protects practically nothing (an epsilon above 10)");
  weak.hidden = true;
  const node = el("aside", { class: "card preview", "aria-labelledby": "preview-heading" },
    el("div", { class: "preview-body" }, el("h2", { id: "preview-heading" }, "What this means"), state, held), weak, below);
  state.hidden = true;
  return {
    node,
    acceptsWeak: () => !weak.hidden && accept.checked,
    busy() {
      node.setAttribute("aria-busy", "true");
    },
    refuse(sentence) {
      node.removeAttribute("aria-busy");
      fill(held);
      state.hidden = false;
      state.textContent = sentence;
      announce(sentence);
    },
    show(found) {
      node.removeAttribute("aria-busy");
      state.hidden = true;
      const open = held.querySelector("details:last-child")?.open;
      weak.hidden = !found.protects_little;
      if (weak.hidden) accept.checked = false;
      const warnings = found.warnings ?? [];
      fill(held,
        warnings.length > 0 && el("section", { class: "warning" }, el("h3", {}, "Before you start"),
          el("ul", {}, warnings.map((one) => el("li", {}, one)))),
        meaning(found),
        specBox(found.spec, open));
      announce(warnings.length ? `Preview updated. ${warnings.join(" ")}` : "Preview updated.");
    },
  };
}
