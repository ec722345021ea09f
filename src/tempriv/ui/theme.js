/** Light or dark: the system's choice until a person makes another. */

import { el, svg } from "./dom.js";

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

system.addEventListener("change", tell);

function tell() {
  dispatchEvent(new Event("theme-changed"));
}

const icon = (...parts) => svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, parts);
const moon = () => icon(svg("path", { d: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z" }));
const sun = () => icon(svg("circle", { cx: 12, cy: 12, r: 4.2 }),
  svg("path", { d: "M12 2.5v2.5M12 19v2.5M2.5 12H5M19 12h2.5M5.3 5.3l1.8 1.8M16.9 16.9l1.8 1.8M5.3 18.7l1.8-1.8M16.9 7.1l1.8-1.8" }));

export function themeButton() {
  const button = el("button", { type: "button", class: "button quiet icon", on: { click: turn } });
  const show = () => {
    const other = isDark() ? "light" : "dark";
    button.setAttribute("aria-label", `Use ${other} colors`);
    button.title = `Use ${other} colors`;
    button.replaceChildren(isDark() ? sun() : moon());
  };
  function turn() {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("tempriv-theme", root.dataset.theme);
    } catch {
      // it then lasts as long as the page
    }
    show();
    tell();
  }
  system.addEventListener("change", show);
  show();
  return button;
}

/** The color that a CSS variable comes to now, in a form a canvas understands. */
export function color(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
