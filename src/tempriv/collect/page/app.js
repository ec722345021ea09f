/** Where it begins: who is signed in, and which view is shown for which address. */

import { call } from "./api.js";
import { announce, el, fill } from "../ui/dom.js";
import { loadKinds } from "./kinds.js";
import { forget, keep, session, signOut, token } from "./session.js";
import { themeButton } from "../ui/theme.js";
import { campaignView } from "./view_campaign.js";
import { campaignsView } from "./view_campaigns.js";
import { fleetView } from "./view_fleet.js";
import { newCampaignView } from "./view_new.js";
import { signInView } from "./view_sign_in.js";

const ROUTES = [
  [/^#?\/?$/, "Campaigns", campaignsView],
  [/^#\/new$/, "New campaign", newCampaignView],
  [/^#\/fleet$/, "Fleet", fleetView],
  [/^#\/campaign\/([0-9a-f]+)$/, "Campaign", campaignView],
];

const header = document.getElementById("header");
const main = document.getElementById("main");
let leaving = new AbortController(); // of the view that is shown

function showHeader() {
  const links = [["#/", "Campaigns"], ["#/new", "New campaign"], ["#/fleet", "Fleet"]];
  const here = location.hash || "#/";
  const me = session.me;
  fill(header, el("div", { class: "bar" },
    el("a", { class: "brand", href: "#/" }, el("span", { class: "mark", "aria-hidden": "true" }), "tempriv collect"),
    me && el("nav", { "aria-label": "Main" }, links.map(([href, text]) =>
      el("a", { href, "aria-current": here === href ? "page" : null }, text))),
    el("div", { class: "who" },
      me && el("span", { class: "note" }, me.name ? `${me.name}, ${me.role}` : me.role),
      themeButton(),
      me && el("button", { type: "button", class: "button quiet", on: { click: () => signOut() } }, "Sign out"))));
}

function show(title, view, words, focus = true) {
  leaving.abort();
  leaving = new AbortController();
  showHeader();
  fill(main);
  document.title = `${title} – tempriv collect`;
  view(main, { words, signal: leaving.signal });
  scrollTo(0, 0);
  if (focus) {
    const heading = main.querySelector("h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
    announce(title);
  }
}

function route(event) {
  if (location.hash === "#main") return; // the skip link
  if (!session.me) {
    showSignIn("", Boolean(event));
    return;
  }
  for (const [pattern, title, view] of ROUTES) {
    const found = pattern.exec(location.hash);
    if (found) {
      show(title, view, found.slice(1), Boolean(event));
      return;
    }
  }
  show("Not found", (place) => fill(place, el("h1", {}, "There is nothing here"),
    el("p", {}, el("a", { href: "#/" }, "Go to the campaigns"))), []);
}

function showSignIn(reason, focus = false) {
  show("Sign in", (place, { signal }) => signInView(place, { signal, reason, enter }), [], focus);
}

/** Take a token if the server knows it and it is one of the staff. Gives a sentence if not. */
async function enter(given) {
  const me = await call("GET", "v1/me", { as: given });
  if (me.role !== "admin" && me.role !== "analyst") {
    return "This is the token of a device. Sign in with a staff token: admin-… or analyst-….";
  }
  keep(given);
  await loadKinds();
  session.me = me;
  route(new Event("signed-in"));
  return "";
}

addEventListener("hashchange", route);
addEventListener("signed-out", (event) => {
  // whoever left by choice is not led back; whoever was thrown out is
  if (!event.detail) history.replaceState(null, "", "#/");
  showSignIn(event.detail, true);
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

const kept = token();
if (kept) {
  try {
    const me = await call("GET", "v1/me", { as: kept });
    await loadKinds();
    session.me = me;
    route();
  } catch (problem) {
    if (problem.status === 401) forget();
    showSignIn(problem.status === 401 ? "Your token is no longer valid. Sign in again." : problem.message);
  }
} else route();
