// not a module, so that it runs before anything is painted: no flash of the other colors
try {
  const kept = localStorage.getItem("tempriv-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {
  // storage may be forbidden; then colors are those of the system
}
