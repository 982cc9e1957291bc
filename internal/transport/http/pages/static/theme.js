// Runs before the first paint, so that the page never flashes in the wrong theme.
(() => {
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  if (location.pathname === "/sign-in") sessionStorage.clear(); // it belongs to the person who was signed in
})();
