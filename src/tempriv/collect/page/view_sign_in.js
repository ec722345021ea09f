/** Sign in with a token. */

import { alertPlace, el, fill, newId } from "../ui/dom.js";

export function signInView(place, { reason, enter }) {
  const id = newId("token");
  const alert = alertPlace();
  const input = el("input", {
    id, type: "password", name: "token", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": `${id}-hint`,
  });
  const button = el("button", { class: "button primary", type: "submit" }, "Sign in");

  async function submit(event) {
    event.preventDefault();
    const given = input.value.trim();
    if (!/^(admin|analyst|device)-\d+\.[\w-]+$/.test(given)) {
      refuse("This does not look like a token. A token looks like admin-1.hR3… and is one line.");
      return;
    }
    button.disabled = true;
    alert.clear();
    try {
      const refusal = await enter(given);
      if (refusal) refuse(refusal);
    } catch (problem) {
      refuse(problem.status === 401
        ? "The server does not know this token. Check that all of it was copied, and that it was not revoked."
        : problem.message);
    } finally {
      button.disabled = false;
    }
  }

  function refuse(sentence) {
    alert.say(sentence);
    input.setAttribute("aria-invalid", "true");
    input.focus();
  }

  fill(place, el("section", { class: "card narrow" },
    el("h1", {}, "Sign in"),
    el("p", { class: "lead" }, "Ask many devices, learn what they have in common, and nothing much about any one of them."),
    el("form", { novalidate: true, on: { submit } },
      el("div", { class: "field" },
        el("label", { for: id }, "Token"),
        input,
        el("p", { class: "hint", id: `${id}-hint` },
          "The first admin token is in the file ", el("code", {}, "admin.token"),
          " that ", el("code", {}, "tempriv serve"), " wrote. It is kept in this tab only and forgotten when you close it.")),
      alert.node,
      el("p", { class: "actions" }, button))));
  if (reason) alert.say(reason);
}
