/** One campaign, live: how far it is, what it guarantees, what it found. */

import { get, now, post } from "./api.js";
import { alertPlace, announce, el, facts, fill, renew, table } from "../ui/dom.js";
import { confirmed } from "../ui/dialogs.js";
import { follow, pause } from "./events.js";
import { count, duration, filledIn, number, plural, share, STATES, when } from "../ui/format.js";
import { kindOf, questionName, questionWords } from "./kinds.js";
import { meaning } from "./meaning.js";
import { part, progressBar, timeLeft } from "./progress.js";
import { resultBox } from "./results.js";
import { frozenSpec } from "./spec_box.js";

const ENDED = ["finished", "cancelled"];
const OVER = [...ENDED, "failed"]; // a failed one can still be canceled
const SAY_EVERY = 20_000; // milliseconds between two spoken reports of progress
const RESULT_EVERY = 2000;
const QUIET = 20_000; // milliseconds without an event before it is looked whether one was lost

export async function campaignView(place, { words: [id], signal }) {
  const alert = alertPlace();
  fill(place, el("div", { class: "heading" }, el("h1", {}, "Campaign")), alert.node, el("p", { class: "note" }, "Loading…"));
  let first;
  try {
    first = await get(`v1/campaigns/${id}`, signal);
  } catch (problem) {
    if (!signal.aborted) {
      alert.say(problem.message);
      place.lastChild.remove();
    }
    return;
  }
  if (!signal.aborted) live(place, first, signal);
}

function live(place, first, signal) {
  const { id, spec } = first;
  document.title = `${spec.title} – tempriv collect`;
  const alert = alertPlace();
  const pill = el("span", { class: "pill" });
  const link = el("span", { class: "link" });
  const summary = el("div", {});
  const rounds = el("div", {});
  const going = progressBox(spec);
  const result = resultKeeper(id, spec, signal, alert);
  const heading = el("h1", { tabindex: "-1" }, spec.title);
  let shown = first;
  let heard = Date.now();

  const actions = actionButtons(id, alert, (document) => show(document), () => shown);
  fill(place,
    el("p", { class: "crumb" }, el("a", { href: "#/" }, "Campaigns")),
    el("div", { class: "heading" }, el("div", {}, heading, el("p", { class: "lead" }, spec.asks)), el("div", { class: "states" }, link, pill)),
    alert.node,
    el("div", { class: "stack" },
      el("section", { class: "card", "aria-label": "At a glance" }, summary, going.node, actions.node),
      result.node,
      el("section", { class: "card" }, el("h2", {}, "What it means"), el("div", { class: "meaning" }, meaning(first))),
      el("section", { class: "card" }, el("h2", {}, "Questions so far"), rounds),
      el("section", { class: "card" }, el("h2", {}, "Frozen spec"), frozenSpec(spec, id))));
  heading.focus({ preventScroll: true });

  function show(document) {
    const before = shown;
    shown = document;
    heard = Date.now();
    pill.textContent = STATES[document.state] ?? document.state;
    pill.dataset.state = document.state;
    fill(summary, glance(document));
    going.show(document);
    actions.show(document);
    if (before === document || latest(before) !== latest(document)) renew(rounds, roundsTable(document));
    if (before.state !== document.state) announce(`${spec.title}: ${STATES[document.state]}.`);
    if (OVER.includes(document.state)) showLink("", "");
    if (document.state === "failed")
      alert.say("The answers could not be evaluated. They are kept, and the server tries again when it starts; its log says more.");
    result.show(document);
    return OVER.includes(document.state);
  }

  function showLink(state, text) {
    link.dataset.state = state;
    link.textContent = text;
  }

  async function lookAgain() {
    heard = Date.now();
    try {
      show(await get(`v1/campaigns/${id}`, signal));
    } catch {
      // the connection for events tells how things are
    }
  }

  const timer = setInterval(() => {
    going.tick(shown);
    if (Date.now() - heard > QUIET && !OVER.includes(shown.state)) lookAgain();
  }, 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
  if (show(first)) return;
  follow(`v1/campaigns/${id}/events`, {
    signal, onDocument: show,
    onLink: (up, seconds) => (up ? showLink("up", "Live") : showLink("down", `Connection lost, next try in ${duration(Math.max(1, seconds))}`)),
    onRefused: (reason) => { showLink("", ""); alert.say(reason); },
  });
}

/** Which closed question was the last; only the latest are told, so their number says nothing. */
const latest = ({ rounds }) => rounds.length + (rounds.at(-1)?.id ?? rounds.at(-1)?.closed_at ?? "");

function glance({ spec, received }) {
  return facts([
    ["Kind", kindOf(spec.kind).title],
    ["Epsilon", number(spec.epsilon)],
    ["Devices announced", count(spec.people)],
    ["Answers counted", count(received)],
    ...kindOf(spec.kind).facts.map(([label, text]) => [label, filledIn(text, spec)]),
    [Date.parse(spec.opens) > now() ? "Opens" : "Opened", when(spec.opens)],
    ["Ends by", when(spec.deadline)],
  ]);
}

function progressBox(spec) {
  const title = el("h2", {});
  const asks = el("p", {});
  const bar = progressBar("Answers to the open question");
  const numbers = el("span", {});
  const left = el("span", {});
  const node = el("div", { class: "going" }, title, asks, bar.node, el("p", { class: "split" }, numbers, left));
  let said = 0;

  function tick(document) {
    if (document.question) left.textContent = timeLeft(document.question.closes_at);
  }

  function show(document) {
    const { question, state } = document;
    node.hidden = OVER.includes(state);
    if (node.hidden) return;
    if (!question) {
      bar.hide();
      [title.textContent, asks.textContent] = pauseWords(document);
      numbers.textContent = left.textContent = "";
      return;
    }
    const { received, expected } = question;
    title.textContent = questionName(spec.kind, question);
    asks.textContent = questionWords(spec.kind, question.kind);
    bar.show(received, expected);
    numbers.textContent = `${count(received)} of ${count(expected)} answers (${part(received, expected) || share(0)})`;
    tick(document);
    if (Date.now() - said > SAY_EVERY) {
      said = Date.now();
      announce(`${questionName(spec.kind, question)}: ${count(received)} of ${plural(expected, "answer")}.`);
    }
  }
  return { node, show, tick };
}

/** Why nothing is asked just now. */
function pauseWords({ spec, state }) {
  if (state !== "waiting") return ["Between two questions", "The next question follows by itself."];
  if (Date.parse(spec.opens) > now()) return ["Not open yet", "Devices are asked as soon as it opens."];
  if (kindOf(spec.kind).has_steps) return ["Waiting for devices", `It begins when ${plural(spec.people, "device")} are enrolled.`];
  return ["Opening", "The first question follows by itself."];
}

function actionButtons(id, alert, show, shown) {
  const goOn = el("button", { type: "button", class: "button" }, "Go on with what has come in");
  const cancel = el("button", { type: "button", class: "button danger-quiet" }, "Cancel the campaign");
  const node = el("p", { class: "actions" }, goOn, cancel);

  async function act(button, path, body) {
    button.disabled = true;
    alert.clear();
    try {
      show(await post(`v1/campaigns/${id}/${path}`, body));
    } catch (problem) {
      alert.say(problem.message);
    } finally {
      button.disabled = false;
    }
  }

  goOn.addEventListener("click", async () => {
    const question = shown().question;
    const meant = await confirmed({
      title: "Close this question now?",
      text: question
        ? `${count(question.received)} of ${plural(question.expected, "device")} have answered. Answers that come later are refused, and nobody is asked a second time to make up for them.`
        : "Answers that come later are refused.",
      action: "Close it and go on", keep: "Wait for more answers", look: "primary",
    });
    // the one that was looked at: another may be open by now
    if (meant && question) await act(goOn, "close-question", { question: question.id });
  });
  cancel.addEventListener("click", async () => {
    const meant = await confirmed({
      title: "Cancel this campaign?",
      text: "It ends for good and gives no further result. Devices that have answered have spent their epsilon all the same. This cannot be undone.",
      action: "Cancel the campaign", keep: "Let it run",
    });
    if (meant) await act(cancel, "cancel");
  });
  return {
    node,
    show({ state, question }) {
      node.hidden = ENDED.includes(state);
      goOn.hidden = !question;
    },
  };
}

/** Fetches the result when there is one; of a stream whenever another step is done. */
function resultKeeper(id, spec, signal, alert) {
  const node = el("div", { class: "holder" });
  node.hidden = true;
  let box = null;
  let known = ""; // what the result that is shown was fetched for
  let wanted = "";
  let busy = false;

  async function refresh() {
    if (busy) return;
    busy = true;
    try {
      while (known !== wanted && !signal.aborted) {
        const asked = wanted;
        const began = Date.now();
        try {
          const result = await get(`v1/campaigns/${id}/result`, signal);
          node.hidden = false;
          if (!box) {
            box = resultBox(id, kindOf(spec.kind).result, signal);
            fill(node, box.node);
          }
          box.update(result);
        } catch (problem) {
          // not there yet is no mishap while it runs
          if (!signal.aborted && ![404, 409].includes(problem.status)) alert.say(problem.message);
        }
        known = asked;
        // a long stream takes long to send: it is asked for less often
        await pause(Math.max(RESULT_EVERY, 5 * (Date.now() - began)), signal);
      }
    } finally {
      busy = false;
    }
  }

  function show(document) {
    const streaming = kindOf(spec.kind).has_steps && document.rounds.length > 0;
    if (document.state === "finished" || streaming) {
      wanted = `${document.state} ${latest(document)}`;
      refresh();
    }
  }
  return { node, show };
}

function roundsTable({ spec, rounds }) {
  return table({
    caption: "Questions that are closed, the latest first", rows: rounds.toReversed(), tall: rounds.length > 8,
    empty: "No question is closed yet.",
    columns: [
      { head: "Question", rowHead: true, cell: (one) => `${questionName(spec.kind, one)}: ${questionWords(spec.kind, one.kind)}` },
      { head: "Answers", number: true, cell: (one) => `${count(one.received)} of ${count(one.expected)}` },
      { head: "Answered", number: true, cell: (one) => part(one.received, one.expected) || "–" },
      { head: "Opened", cell: (one) => when(one.opened_at) },
      { head: "Closed", cell: (one) => when(one.closed_at) },
    ],
  });
}
