// A page whose body is one part rendered by the server: it is fetched again when something changed.
import { listen, showState } from "./live.js";
import { atMostEvery } from "./state.js";

export function keepFresh({ kinds }) {
  const part = document.getElementById("part");
  const problem = document.getElementById("problem");
  const updated = document.getElementById("updated");

  async function refresh() {
    try {
      const answer = await fetch(part.dataset.part + location.search);
      if (answer.status === 401) return location.assign(`/login?next=${encodeURIComponent(location.pathname)}`);
      if (!answer.ok) throw new Error(`The service answered ${answer.status}.`);
      replace(await answer.text());
      problem.hidden = true;
      updated.textContent = `last update ${new Date().toLocaleTimeString()}`;
    } catch (error) {
      problem.textContent =
        error instanceof TypeError ? "The service does not answer; what you see may be old." : error.message;
      problem.hidden = false;
    }
  }

  // What the reader opened stays open, and the focus stays where it was.
  function replace(html) {
    const open = new Set([...part.querySelectorAll("article:has(details[open])")].map((a) => a.id));
    const focused = document.activeElement?.closest("article")?.id;
    part.innerHTML = html;
    for (const id of open) document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.querySelector("button, summary, a")?.focus();
  }

  const soon = atMostEvery(1000, refresh);
  listen("/live", {
    onState: (state) => showState(document.getElementById("live"), state),
    onFresh: soon,
    onEvent: (kind, data) => kinds.includes(kind) && soon(),
  });
}
