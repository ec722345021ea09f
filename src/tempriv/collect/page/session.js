/** Who is signed in. The token lives in this tab only and is gone with it. */

const PLACE = "tempriv-token";

export const session = { me: null };

export const token = () => sessionStorage.getItem(PLACE);
export const isAdmin = () => session.me?.role === "admin";

export function keep(given) {
  sessionStorage.setItem(PLACE, given);
}

export function forget() {
  sessionStorage.removeItem(PLACE);
  session.me = null;
}

/** Leave, with a sentence for the sign-in page if it was not by choice. */
export function signOut(reason = "") {
  forget();
  dispatchEvent(new CustomEvent("signed-out", { detail: reason }));
}
