import { draw } from "./chart.js";
import { listen, showState } from "./live.js";
import { atMostEvery } from "./state.js";

const page = document.getElementById("run");
const place = (id) => document.getElementById(id);

async function refresh() {
  try {
    const theme = document.documentElement.dataset.theme;
    const answer = await fetch(`/runs/${page.dataset.run}/data?theme=${theme}`);
    if (answer.status === 401) return location.assign(`/login?next=${encodeURIComponent(location.pathname)}`);
    if (!answer.ok) throw new Error(`The service answered ${answer.status}.`);
    const body = await answer.json();
    place("part").innerHTML = body.part;
    const open = place("evaluations").querySelector("details")?.open ?? false;
    place("evaluations").innerHTML = body.evaluations;
    place("evaluations").querySelector("details").open = open;
    place("summary").textContent = body.summary;
    place("updated").textContent = `last update ${new Date().toLocaleTimeString()}`;
    for (const [id, figure] of Object.entries(body.figures)) await draw(place(id), figure, id);
    place("problem").hidden = true;
  } catch (error) {
    place("problem").textContent =
      error instanceof TypeError ? "The service does not answer; what you see may be old." : error.message;
    place("problem").hidden = false;
  }
}

const soon = atMostEvery(1000, refresh);
addEventListener("themechange", soon);
listen("/live", {
  onState: (state) => showState(place("live"), state),
  onFresh: soon,
  onEvent: (kind, data) => {
    if (kind === "evaluation.created" && data.run_id === page.dataset.run) soon();
    if (kind === "job.changed" && data.run_id === page.dataset.run) soon();
  },
});
setTimeout(() => place("updated").textContent || soon(), 700); // also without a stream
