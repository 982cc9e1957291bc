// Runs before the page is drawn, so that it never flashes in the wrong light.
(() => {
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
