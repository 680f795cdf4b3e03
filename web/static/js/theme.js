// Runs before the first paint, so that a chosen theme does not flash. "auto" follows the system.
(() => {
  const order = ["auto", "light", "dark"];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = "auto";
  try {
    chosen = order.includes(localStorage.theme) ? localStorage.theme : "auto";
  } catch {
    // Storage may be blocked; the system's choice stands.
  }

  function apply() {
    const shown = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
    document.documentElement.dataset.theme = shown;
    dispatchEvent(new CustomEvent("themechange", { detail: shown }));
    const button = document.getElementById("theme");
    if (button) {
      button.hidden = false;
      button.textContent = `Theme: ${chosen}`;
    }
  }

  dark.addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme")?.addEventListener("click", () => {
      chosen = order[(order.indexOf(chosen) + 1) % order.length];
      try {
        localStorage.theme = chosen;
      } catch {
        // Kept for this page only.
      }
      apply();
    });
    apply();
  });
  apply();
})();
