/** Make a campaign: choose a kind, fill in its fields, read what it means, start it. */

import { post } from "./api.js";
import { alertPlace, el, fill, newId } from "../ui/dom.js";
import { fieldGroup, makeField } from "../ui/fields.js";
import { loadKinds } from "./kinds.js";
import { previewPane } from "./preview.js";

const REST = 350; // milliseconds without a change before the preview is asked for
const MARKED = "Put right what is marked in the form; then this shows what the campaign means.";
const UNTITLED = "Untitled campaign"; // so that there is a preview before there is a title

export async function newCampaignView(place, { signal }) {
  const alert = alertPlace();
  const id = newId("form");
  const form = el("form", { id, class: "maker", novalidate: true });
  const start = el("button", { class: "button primary large", type: "submit", form: id }, "Start the campaign");
  const refusal = alertPlace();
  const pane = previewPane(el("div", { class: "preview-below" }, refusal.node, start));
  const body = el("div", { class: "columns" }, form, pane.node);
  fill(place, el("div", { class: "heading" }, el("h1", {}, "New campaign")), alert.node, body);
  body.hidden = true;
  let kinds;
  try {
    kinds = await loadKinds(signal);
  } catch (problem) {
    if (!signal.aborted) alert.say(problem.message);
    return;
  }
  if (signal.aborted) return;
  body.hidden = false;
  maker(form, { pane, start, alert: refusal }, kinds, signal);
}

function maker(form, { pane, start, alert }, kinds, signal) {
  const held = el("div", { class: "stack" });
  let shown; // the fields of the present kind
  let timer, asking;
  const kept = {}; // what was filled in is there again when a person comes back to a kind

  const choice = el("fieldset", { class: "kinds" }, el("legend", {}, "What do you want to know?"),
    kinds.map((kind) => el("label", { class: "kind" },
      el("input", {
        type: "radio", name: "kind", value: kind.name, "aria-labelledby": `${kind.name}-name`, "aria-describedby": `${kind.name}-summary`,
        on: { change: () => choose(kind) },
      }),
      el("span", {}, el("strong", { id: `${kind.name}-name` }, kind.title),
        el("span", { class: "hint", id: `${kind.name}-summary` }, kind.summary)))));
  fill(form, choice, held);

  function choose(kind) {
    kept[kind.name] ??= { ...kindFields(kind), name: kind.name };
    shown = kept[kind.name];
    fill(held, shown.node);
    changed();
  }

  function changed() {
    clearTimeout(timer);
    asking?.abort();
    pane.busy();
    timer = setTimeout(refresh, REST);
  }

  async function refresh() {
    const asked = shown;
    const { problem, values } = asked.read();
    if (problem) {
      pane.refuse(MARKED);
      return;
    }
    asking = new AbortController();
    const both = AbortSignal.any([signal, asking.signal]);
    try {
      const { campaign, problems } = await draftOf(asked, values, both);
      asked.tell(problems);
      if (campaign) pane.show(await post("v1/campaigns/preview", campaign, both));
      else pane.refuse(MARKED);
    } catch (refused) {
      if (!both.aborted) pane.refuse(refused.message);
    }
  }

  async function submit(event) {
    event.preventDefault();
    alert.clear();
    const { problem, values } = shown.read({ strict: true });
    if (problem) {
      refuse(problem);
      return;
    }
    start.disabled = true;
    try {
      const { campaign, problems } = await draftOf(shown, values);
      const first = shown.tell(problems);
      if (first) refuse(first);
      else location.hash = `#/campaign/${(await post("v1/campaigns", { ...campaign, accept_weak: pane.acceptsWeak() })).id}`;
    } catch (refused) {
      alert.say(refused.message);
    } finally {
      start.disabled = false;
    }
  }

  function refuse(problem) {
    alert.say(`${problem.label}: ${problem.sentence}`);
    problem.show();
  }

  form.addEventListener("submit", submit);
  held.addEventListener("input", () => { alert.clear(); changed(); });
  signal.addEventListener("abort", () => { clearTimeout(timer); asking?.abort(); });
  form.querySelector("input").checked = true;
  choose(kinds[0]);
}

/** The campaign that the values of a form make, or what is wrong with which field. */
const draftOf = (shown, values, signal) => post(`v1/campaign-kinds/${shown.name}/draft`, { values }, signal);

/** The fields of a kind: {node, read({strict}) -> {values} or {problem}, tell(problems)}. */
function kindFields(kind) {
  const made = new Map();
  const labels = new Map();
  const groups = kind.form.map(({ title, fields, folded, when }) => {
    const members = fields.map((definition) => {
      const field = makeField(definition);
      made.set(definition.name, field);
      labels.set(definition.name, definition.label);
      return field;
    });
    return { node: fieldGroup(title, members, folded), when };
  });
  const node = el("div", { class: "stack" }, groups.map((group) => group.node));
  const showGroups = () => {
    for (const { node: group, when } of groups) group.hidden = Boolean(when) && made.get(when.field).value() !== when.equals;
  };
  node.addEventListener("input", showGroups);
  showGroups();

  function problemOf(field, sentence) {
    return {
      sentence, label: labels.get(field.name),
      show() {
        field.node.closest("details")?.setAttribute("open", "");
        field.focus();
      },
    };
  }

  function read({ strict = false } = {}) {
    let first = null;
    const values = {};
    for (const field of made.values()) {
      if (field.node.closest("[hidden]")) continue;
      let sentence = field.check();
      if (sentence && field.name === "title" && !strict) {
        field.say("");
        sentence = "";
      }
      if (sentence) first ??= problemOf(field, sentence);
      values[field.name] = field.value();
    }
    return first ? { problem: first } : { values: { ...values, title: values.title || UNTITLED } };
  }

  /** Show what the server says is wrong, beside the fields; gives the first, or null. */
  function tell(problems) {
    const found = Object.entries(problems).map(([name, sentence]) => {
      made.get(name).say(sentence);
      return problemOf(made.get(name), sentence);
    });
    return found[0] ?? null;
  }
  return { node, read, tell };
}
