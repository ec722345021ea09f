/** Devices and staff: who may answer, and who may ask. */

import { get, post, remove } from "./api.js";
import { alertPlace, announce, el, facts, fill, table } from "../ui/dom.js";
import { confirmed, showOnce } from "../ui/dialogs.js";
import { makeField } from "../ui/fields.js";
import { count, plural, when } from "../ui/format.js";
import { isAdmin, session } from "./session.js";

const MOST_TOKENS = 10_000;

export function fleetView(place, { signal }) {
  const devices = deviceNumbers(signal);
  fill(place, el("div", { class: "heading" }, el("h1", {}, "Fleet")),
    el("div", { class: "stack" },
      el("section", { class: "card" }, el("h2", {}, "Devices"), devices.node,
        isAdmin() && el("div", { class: "halves" }, tokensBox(devices.refresh), withdrawBox(devices.refresh))),
      isAdmin() ? staffBox(signal)
        : el("p", { class: "note" }, "Tokens of devices and of staff are made by an admin.")));
}

function deviceNumbers(signal) {
  const alert = alertPlace();
  const numbers = el("div", {}, el("p", { class: "note" }, "Loading…"));
  async function refresh() {
    try {
      const found = await get("v1/fleet", signal);
      fill(numbers, facts([["Enrolled devices", count(found.enrolled)],
        ["Unused enrollment tokens", count(found.waiting)]]));
      alert.clear();
    } catch (problem) {
      if (!signal.aborted) alert.say(problem.message);
    }
  }
  refresh();
  const timer = setInterval(() => document.hidden || refresh(), 5000);
  signal.addEventListener("abort", () => clearInterval(timer));
  return { node: el("div", {}, numbers, alert.node), refresh };
}

/** A small form with one action; what goes wrong is said beside it. */
function smallForm(fields, action, act, look = "primary") {
  const alert = alertPlace();
  const button = el("button", { class: `button ${look}`, type: "submit" }, action);
  async function submit(event) {
    event.preventDefault();
    const wrong = fields.filter((field) => field.check());
    if (wrong.length) {
      wrong[0].focus();
      return;
    }
    button.disabled = true;
    alert.clear();
    try {
      await act(...fields.map((field) => field.value()));
    } catch (problem) {
      alert.say(problem.message);
    } finally {
      button.disabled = false;
    }
  }
  return el("form", { class: "small-form", novalidate: true, on: { submit } },
    fields.map((field) => field.node), el("p", { class: "actions" }, button), alert.node);
}

function tokensBox(refresh) {
  const many = makeField({
    name: "count", label: "How many", type: "integer", unit: "tokens", value: 1000, min: 1, max: MOST_TOKENS,
    hint: `One for each device, at most ${count(MOST_TOKENS)} at a time.`,
  });
  return el("section", {}, el("h3", {}, "Make enrollment tokens"),
    el("p", {}, "A device enrolls once with a token of its own and with the hash of a secret that it made. The tokens are shown once: this server keeps only their hashes."),
    smallForm([many], "Make tokens", async (wanted) => {
      const made = await post("v1/enrolments", { count: wanted });
      const last = made.first + made.tokens.length - 1;
      showOnce({
        title: plural(made.tokens.length, "enrollment token"),
        text: `For devices ${count(made.first)} to ${count(last)}. Give each device one of them; whoever has a token can enroll with it.`,
        tokens: made.tokens, file: `enrollment-tokens-${made.first}-${last}.txt`,
      });
      await refresh();
    }));
}

function staffBox(signal) {
  const alert = alertPlace();
  const list = el("div", {}, el("p", { class: "note" }, "Loading…"));
  const name = makeField({
    name: "name", label: "Name", type: "text", value: "", required: true, most: 100,
    hint: "Who will use it: a person or a program.",
  });
  const role = makeField({
    name: "role", label: "Role", type: "choice", value: "analyst",
    options: [["analyst", "Analyst: campaigns and results"], ["admin", "Admin: also tokens and devices"]],
    hint: "The least that is enough.",
  });
  async function refresh() {
    try {
      const found = await get("v1/staff", signal);
      fill(list, staffTable(found.staff ?? found, revoke));
      alert.clear();
    } catch (problem) {
      if (!signal.aborted) alert.say(problem.message);
    }
  }
  async function revoke(one) {
    const meant = await confirmed({
      title: `Revoke the token of ${one.name}?`,
      text: `${one.role}-${one.number} can then no longer sign in, nor can any program that uses this token. This cannot be undone.`,
      action: "Revoke the token",
    });
    if (!meant) return;
    try {
      await remove(`v1/staff/${one.number}`);
      announce(`The token of ${one.name} is revoked.`);
      await refresh();
    } catch (problem) {
      alert.say(problem.message);
    }
  }
  refresh();
  return el("section", { class: "card" }, el("h2", {}, "Staff"), list, alert.node,
    el("h3", {}, "Make a staff token"),
    smallForm([name, role], "Make token", async (called, as) => {
      const made = await post("v1/staff", { role: as, name: called });
      showOnce({
        title: `Token of ${made.name}`,
        text: `Hand it over safely: with it, ${made.name} signs in as ${made.role}.`,
        tokens: [made.token], file: `${made.role}-${made.number}.token`,
      });
      name.set("");
      await refresh();
    }));
}

function staffTable(staff, revoke) {
  const dated = staff.some((one) => one.made_at);
  return table({
    caption: "Staff tokens",
    rows: staff,
    columns: [
      { head: "Name", rowHead: true, cell: (one) => one.name },
      { head: "Role", cell: (one) => one.role },
      { head: "Token", cell: (one) => el("code", {}, `${one.role}-${one.number}`) },
      dated && { head: "Made", cell: (one) => when(one.made_at) },
      { head: "Action", cell: (one) => lastCell(one, revoke) },
    ].filter(Boolean),
  });
}

function lastCell(one, revoke) {
  if (one.revoked || one.revoked_at) return el("span", { class: "note" }, "revoked");
  if (one.role === session.me.role && one.number === session.me.number) return el("span", { class: "note" }, "you");
  return el("button", {
    type: "button", class: "button small", "aria-label": `Revoke the token of ${one.name}`,
    on: { click: () => revoke(one) },
  }, "Revoke");
}

function withdrawBox(refresh) {
  const which = makeField({
    name: "device", label: "Number of the device", type: "integer", unit: "", value: "", min: 1, required: true,
    hint: "It stands in the device's token: device-17 is number 17.",
  });
  return el("section", {}, el("h3", {}, "Withdraw a device"),
    el("p", {}, "A device that is withdrawn is asked nothing any more. What it has answered already stays counted."),
    smallForm([which], "Withdraw", async (device) => {
      const meant = await confirmed({
        title: `Withdraw device ${count(device)}?`,
        text: "It would have to enroll again, with a new token, to take part.",
        action: "Withdraw the device",
      });
      if (!meant) return;
      await remove(`v1/devices/${device}`);
      announce(`Device ${device} is withdrawn.`);
      which.set("");
      await refresh();
    }, "danger-quiet"));
}
