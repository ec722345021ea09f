/** Questions that must be answered first, and secrets that are shown once. */

import { el, fill, newId, save } from "./dom.js";
import { count } from "./format.js";

function opened(title, ...parts) {
  const id = newId("dialog");
  const dialog = el("dialog", { class: "dialog", "aria-labelledby": id }, el("h2", { id }, title), parts);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  return dialog;
}

/** Resolves to true if a person means it. What is safe has the focus. */
export function confirmed({ title, text, action, keep = "Keep it as it is", look = "danger" }) {
  return new Promise((resolve) => {
    let meant = false;
    const stay = el("button", { type: "button", class: "button", autofocus: true, on: { click: () => dialog.close() } }, keep);
    const go = el("button", {
      type: "button", class: `button ${look}`,
      on: { click: () => { meant = true; dialog.close(); } },
    }, action);
    const dialog = opened(title, el("p", {}, text), el("p", { class: "actions" }, stay, go));
    dialog.addEventListener("close", () => resolve(meant));
  });
}

/** Tokens exist here and nowhere else: closing without having kept them takes two tries. */
export function showOnce({ title, text, tokens, file }) {
  let kept = false;
  let warned = false;
  const warning = el("p", { class: "alert", role: "alert" });
  warning.hidden = true;
  const many = tokens.length;
  const sample = el("pre", { class: "secret", tabindex: "0", "aria-label": "Tokens" },
    tokens.slice(0, 5).join("\n") + (many > 5 ? `\n… and ${count(many - 5)} more in the file` : ""));
  const download = el("button", {
    type: "button", class: "button primary", autofocus: true,
    on: {
      click: () => {
        save(new Blob([`${tokens.join("\n")}\n`], { type: "text/plain" }), file);
        kept = true;
        warning.hidden = true;
      },
    },
  }, "Download as a text file");
  const close = el("button", { type: "button", class: "button", on: { click: leave } }, "Close");
  const dialog = opened(title, el("p", {}, text), sample,
    many === 1 && copyButton(() => { kept = true; return tokens[0]; }), warning,
    el("p", { class: "actions" }, download, close));
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });
  function leave() {
    if (kept || warned) {
      dialog.close();
      return;
    }
    warned = true;
    warning.hidden = false;
    warning.textContent = "Not downloaded yet, and not shown again. Close once more to throw them away.";
  }
  return dialog;
}

/** Copies what `text()` gives; where the browser does not allow it, says so. */
export function copyButton(text, what = "Copy") {
  const button = el("button", { type: "button", class: "button small" }, what);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copying is not allowed here: select the text";
    }
    setTimeout(() => fill(button, what), 2500);
  });
  return button;
}
