/** The frozen spec of a campaign, as devices get it. */

import { el } from "../ui/dom.js";
import { copyButton } from "../ui/dialogs.js";

export function specBox(spec, open = false) {
  const text = JSON.stringify(spec, null, 2);
  return el("details", { class: "fold", open: Boolean(open) },
    el("summary", {}, "The spec as devices get it"),
    el("pre", { class: "code", tabindex: "0", "aria-label": "Spec as JSON" }, text),
    el("p", {}, copyButton(() => text, "Copy the spec")));
}

export function frozenSpec(spec, id) {
  return [
    el("p", { class: "identity" }, el("code", {}, id), copyButton(() => id, "Copy the id")),
    el("p", { class: "note" }, "The id is a digest of the spec. Devices recompute it, so nobody can change the campaign after it has started."),
    specBox(spec),
  ];
}
