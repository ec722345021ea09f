/** The list of campaigns, and what to do if there is none. */

import { get, ROOT } from "./api.js";
import { alertPlace, announce, el, fill } from "../ui/dom.js";
import { copyButton } from "../ui/dialogs.js";
import { pause } from "./events.js";
import { count, number, plural, STATES, when } from "../ui/format.js";
import { kindOf, questionName } from "./kinds.js";
import { progressBar, timeLeft } from "./progress.js";
import { isAdmin } from "./session.js";

const EVERY = 3000;
const LONGEST_WAIT = 30_000;

export function campaignsView(place, { signal }) {
  const alert = alertPlace();
  const fleet = el("p", { class: "note" });
  const list = el("div", { class: "stack", "aria-busy": "true" }, el("p", { class: "note" }, "Loading…"));
  fill(place,
    el("div", { class: "heading" }, el("div", {}, el("h1", {}, "Campaigns"), fleet),
      el("a", { class: "button primary", href: "#/new" }, "New campaign")),
    alert.node, list);
  watch(list, fleet, alert, signal);
}

async function watch(list, fleet, alert, signal) {
  const cards = new Map();
  let wait = EVERY;
  while (!signal.aborted) {
    const began = Date.now();
    try {
      if (!document.hidden || !cards.size) {
        const [found, devices] = await Promise.all([get("v1/campaigns", signal), get("v1/fleet", signal)]);
        alert.clear();
        fill(fleet, `${plural(devices.enrolled, "device")} enrolled, ${plural(devices.waiting, "enrollment token")} not used yet. `,
          el("a", { href: "#/fleet" }, "Fleet"));
        show(list, cards, found.campaigns, devices);
      }
      wait = Math.max(EVERY, 10 * (Date.now() - began)); // a long list is asked for less often
    } catch (problem) {
      if (signal.aborted) return;
      alert.say(problem.message);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
    await pause(wait, signal);
  }
}

function show(list, cards, campaigns, devices) {
  list.removeAttribute("aria-busy");
  if (!campaigns.length) {
    if (list.dataset.empty !== String(devices.enrolled)) {
      fill(list, nothingYet(devices));
      list.dataset.empty = String(devices.enrolled);
    }
    return;
  }
  for (const campaign of campaigns) {
    const card = cards.get(campaign.id) ?? campaignCard(campaign);
    cards.set(campaign.id, card);
    card.update(campaign);
  }
  const wanted = campaigns.map((campaign) => cards.get(campaign.id).node);
  // nodes that stay are not moved: whoever has the focus keeps it
  if (wanted.length !== list.children.length || wanted.some((node, i) => list.children[i] !== node)) {
    fill(list, wanted);
    delete list.dataset.empty;
  }
}

function campaignCard({ id, spec, state }) {
  let said = state;
  const pill = el("span", { class: "pill" });
  const bar = progressBar(`Answers to ${spec.title}`);
  const below = el("p", { class: "note split" });
  const node = el("article", { class: "card campaign" },
    el("div", { class: "split" },
      el("h2", {}, el("a", { href: `#/campaign/${id}` }, spec.title)), pill),
    el("p", { class: "note" }, `${kindOf(spec.kind).title}, epsilon ${number(spec.epsilon)}, ${plural(spec.people, "device")} announced`),
    bar.node, below);
  function update(campaign) {
    pill.textContent = STATES[campaign.state] ?? campaign.state;
    pill.dataset.state = campaign.state;
    const question = campaign.question;
    if (campaign.state === "running" && question) {
      bar.show(question.received, question.expected);
      fill(below, el("span", {}, `${count(question.received)} of ${count(question.expected)} answers to ${questionName(spec.kind, question).toLowerCase()}`),
        el("span", {}, timeLeft(question.closes_at)));
    } else {
      bar.hide();
      fill(below, el("span", {}, `${plural(campaign.received, "answer")} counted`),
        el("span", {}, campaign.state === "waiting" ? ["opens ", when(spec.opens)]
          : campaign.state === "running" ? ["ends by ", when(spec.deadline)] : ["opened ", when(spec.opens)]));
    }
    if (campaign.state !== said) announce(`${spec.title}: ${STATES[campaign.state]}`);
    said = campaign.state;
  }
  return { node, update };
}

function nothingYet({ enrolled }) {
  const url = ROOT.href.replace(/\/$/, "");
  const simulate = `tempriv simulate --url ${url} --devices 10000`;
  return el("section", { class: "card" },
    el("h2", {}, "No campaign yet"),
    el("p", {}, "A campaign asks the devices of your fleet one thing. To the first result:"),
    el("ol", { class: "steps" },
      el("li", {}, el("h3", {}, "Enroll devices"),
        el("p", {}, enrolled
          ? `${plural(enrolled, "device")} enrolled already. More can join at any time.`
          : isAdmin()
            ? ["Make one-time enrollment tokens in the ", el("a", { href: "#/fleet" }, "fleet"), " and give one to each device. A device makes its own secret; the server stores only its hash."]
            : "Ask an admin to make enrollment tokens in the fleet, one for each device."),
        el("p", {}, "Or try it with simulated devices: on any machine with tempriv, this enrolls 10,000 and lets them answer whatever is asked."),
        el("div", { class: "command" }, el("code", {}, simulate), copyButton(() => simulate))),
      el("li", {}, el("h3", {}, "Start a campaign"),
        el("p", {}, "Before it starts you see, in plain words, exactly what a device will reveal."),
        el("p", {}, el("a", { class: "button primary", href: "#/new" }, "New campaign"))),
      el("li", {}, el("h3", {}, "Watch the answers come in"),
        el("p", {}, "The campaign is then listed here, with its progress; pictures, tables and downloads follow when it is finished."))));
}
