/** Make a campaign: choose a kind, fill in its fields, read what it means, start it. */

import { get, now, post } from "./api.js";
import { alertPlace, el, fill, newId } from "./dom.js";
import { fieldGroup, makeField } from "./fields.js";
import { isoSeconds, KINDS } from "./format.js";
import { commonFields, FORMS } from "./kinds.js";
import { previewPane } from "./preview.js";

const REST = 350; // milliseconds without a change before the preview is asked for
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
  let enrolled = 0;
  try {
    enrolled = (await get("v1/fleet", signal)).enrolled;
  } catch (problem) {
    if (signal.aborted) return;
    alert.say(problem.message);
  }
  if (signal.aborted) return;
  body.hidden = false;
  maker(form, { pane, start, alert: refusal }, enrolled, signal);
}

function maker(form, { pane, start, alert }, enrolled, signal) {
  const held = el("div", { class: "stack" });
  let shown; // the fields of the present kind
  let timer, asking;
  const kept = {}; // what was filled in is there again when a person comes back to a kind

  const kinds = el("fieldset", { class: "kinds" }, el("legend", {}, "What do you want to know?"),
    Object.entries(FORMS).map(([kind, { summary }]) => el("label", { class: "kind" },
      el("input", {
        type: "radio", name: "kind", value: kind, "aria-labelledby": `${kind}-name`, "aria-describedby": `${kind}-summary`,
        on: { change: () => choose(kind) },
      }),
      el("span", {}, el("strong", { id: `${kind}-name` }, KINDS[kind]),
        el("span", { class: "hint", id: `${kind}-summary` }, summary)))));
  fill(form, kinds, held);

  function choose(kind) {
    kept[kind] ??= kindFields(kind, enrolled);
    shown = kept[kind];
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
    const { problem, body } = shown.read();
    if (problem) {
      pane.refuse("Put right what is marked in the form; then this shows what the campaign means.");
      return;
    }
    asking = new AbortController();
    const both = AbortSignal.any([signal, asking.signal]);
    try {
      pane.show(await post("v1/campaigns/preview", { ...body, title: body.title || UNTITLED }, both));
    } catch (refused) {
      if (!both.aborted) pane.refuse(refused.message);
    }
  }

  async function submit(event) {
    event.preventDefault();
    alert.clear();
    const { problem, body } = shown.read({ strict: true });
    if (problem) {
      alert.say(`${problem.label}: ${problem.sentence}`);
      problem.show();
      return;
    }
    start.disabled = true;
    try {
      const made = await post("v1/campaigns", body);
      location.hash = `#/campaign/${made.id}`;
    } catch (refused) {
      alert.say(refused.message);
    } finally {
      start.disabled = false;
    }
  }

  form.addEventListener("submit", submit);
  held.addEventListener("input", () => { alert.clear(); changed(); });
  signal.addEventListener("abort", () => { clearTimeout(timer); asking?.abort(); });
  form.querySelector('input[value="shapes"]').checked = true;
  choose("shapes");
}

/** The fields of a kind: {node, read({strict}) -> {body} or {problem}}. */
function kindFields(kind, enrolled) {
  const form = FORMS[kind];
  const common = commonFields(kind, enrolled);
  const made = new Map();
  const labels = new Map();
  const make = (definitions = []) => definitions.map((definition) => {
    const field = makeField(definition);
    made.set(definition.name, field);
    labels.set(definition.name, definition.label);
    return field;
  });
  const groups = [
    fieldGroup("About it", make(common.about)),
    fieldGroup("Question and privacy", make(form.fields)),
  ];
  if (form.laplace) groups.push(...mechanismGroups(form, make, made));
  groups.push(fieldGroup("Time", make(common.time)));
  if (form.more.length) groups.push(fieldGroup("More settings, with good defaults", make(form.more), true));

  const node = el("div", { class: "stack" }, groups);
  const inUse = () => [...made.values()].filter((field) => !field.node.closest("[hidden]"));

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
    for (const field of inUse()) {
      let sentence = field.check();
      if (sentence && field.name === "title" && !strict) {
        field.say("");
        sentence = "";
      }
      if (sentence) first ??= problemOf(field, sentence);
      values[field.name] = field.value();
    }
    if (first) return { problem: first };
    for (const [name, sentence] of Object.entries(form.problems(values))) {
      made.get(name).say(sentence);
      first ??= problemOf(made.get(name), sentence);
    }
    return first ? { problem: first } : { body: bodyOf(kind, form, values) };
  }
  return { node, read };
}

/** Which fields an upload has depends on its mechanism. */
function mechanismGroups(form, make, made) {
  const groups = {
    laplace: fieldGroup("Laplace noise", make(form.laplace)),
    other: fieldGroup("Another mechanism", make(form.other)),
  };
  const chosen = made.get("mechanism");
  const choose = () => {
    for (const [name, group] of Object.entries(groups)) group.hidden = name !== chosen.value();
  };
  chosen.node.addEventListener("input", choose);
  choose();
  return Object.values(groups);
}

function bodyOf(kind, form, values) {
  const opens = values.opens ?? now();
  return {
    tempriv: "campaign", version: 1, kind,
    title: values.title ?? "", asks: values.asks,
    epsilon: form.epsilon ? form.epsilon(values) : values.epsilon,
    people: values.people,
    ...(values.opens === null ? {} : { opens: isoSeconds(values.opens) }),
    deadline: isoSeconds(opens + 1000 * values.lasts),
    patience: values.patience,
    plan: form.plan(values),
  };
}
