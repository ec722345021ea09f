/** Sentences and guarantees of a campaign: before it starts, while it runs, and with its result. */

import { el } from "../ui/dom.js";
import { count, number } from "../ui/format.js";

/** found: {sentences, sentence, published, amplified, not_protected}; what is not there is left out. */
export function meaning(found) {
  return [
    found.sentences?.length > 0 && el("section", {}, el("h3", {}, "What a device reveals"),
      el("ul", { class: "sentences" }, found.sentences.map((one) => el("li", {}, one)))),
    found.sentence && el("section", { class: "guarantee" }, el("h3", {}, "The guarantee"), el("p", {}, found.sentence)),
    found.amplified && amplified(found.amplified),
    found.published && published(found.published),
    found.not_protected?.length > 0 && el("section", {}, el("h3", {}, "What is not protected"),
      el("ul", { class: "sentences" }, found.not_protected.map((one) => el("li", {}, one)))),
  ];
}

function published(claim) {
  const heading = el("h3", {}, "What was published about it");
  if (typeof claim === "string") return el("section", {}, heading, el("p", {}, claim));
  return el("section", {}, heading,
    el("p", {}, claim.claim, claim.source ? ` (${claim.source})` : ""),
    typeof claim.holds === "boolean" && el("p", {}, claim.holds ? "This holds." : "This does not hold as published."),
    claim.remark && el("p", { class: "note" }, claim.remark));
}

function amplified(found) {
  const conditions = [found.conditions ?? []].flat();
  return el("section", {}, el("h3", {}, "Stronger for those who only see the result"),
    el("p", {}, found.sentence ??
      `Epsilon ${number(found.epsilon)} and delta ${found.delta} among ${count(found.people)} devices.`),
    conditions.length > 0 && el("details", { class: "fold" }, el("summary", {}, "When this holds"),
      el("ul", { class: "sentences" }, conditions.map((one) => el("li", {}, one)))),
    found.source && el("p", { class: "note" }, found.source));
}
