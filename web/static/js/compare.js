import { draw, save } from "./chart.js";
import { watchChooser } from "./chooser.js";
import { watchHandles } from "./handles.js";
import { listen, showState } from "./live.js";
import { atMostEvery, queryOf, restore, showErrors } from "./state.js";

const form = document.getElementById("state");
const chart = document.getElementById("chart");
const place = (id) => document.getElementById(id);
let shown = null; // the last answer
let request = null; // the one on its way
let isStale = false; // something happened since it was sent

// What the reader changed replaces the request on its way. News wait for it: forecasts may take longer
// than the next news, and would never be shown.
function refreshForNews() {
  if (request) isStale = true;
  else refresh();
}

async function refresh({ remember = "replace" } = {}) {
  const query = queryOf(form);
  query.set("theme", document.documentElement.dataset.theme);
  request?.abort();
  const mine = (request = new AbortController());
  place("verdicts").setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`/compare/data?${query}`, { signal: mine.signal });
    if (answer.status === 401) {
      location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
      return;
    }
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.detail ?? `The service answered ${answer.status}.`);
    await show(body, remember);
    problem(null);
  } catch (error) {
    if (error.name === "AbortError") return;
    problem(error instanceof TypeError ? "The service does not answer; what you see may be old." : error.message);
  } finally {
    if (request === mine) {
      request = null;
      place("verdicts").setAttribute("aria-busy", "false");
      if (isStale) refreshSoon();
      isStale = false;
    }
  }
}

async function show(body, remember) {
  shown = body;
  const address = body.query ? `/?${body.query}` : "/";
  if (remember === "push" && address !== location.pathname + location.search) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  // Fragments are rendered by our own escaping templates.
  put("verdicts", body.panel);
  put("data", body.data);
  place("summary").textContent = body.summary;
  place("caption").textContent = body.caption;
  place("updated").textContent = `last update ${new Date().toLocaleTimeString()}`;
  for (const link of document.querySelectorAll("[data-export]")) link.href = `${link.dataset.export}?${body.query}`;
  form.elements.at.placeholder = body.at;
  showErrors(form, body.errors);
  showChosen();
  await draw(chart, body.figure, body.query);
  handles.place(body.window);
}

function put(id, html) {
  const element = place(id);
  const open = [...element.querySelectorAll("details")].map((details) => details.open);
  element.innerHTML = html;
  [...element.querySelectorAll("details")].forEach((details, i) => {
    details.open = open[i] ?? details.open;
  });
}

function problem(text) {
  place("problem").textContent = text ?? "";
  place("problem").hidden = !text;
}

function showChosen() {
  const n = form.querySelectorAll("#catalogue input:checked").length;
  place("chosen").textContent = n === 1 ? "1 chosen" : `${n} chosen`;
}

async function refreshPart(id, path) {
  const query = queryOf(form);
  const answer = await fetch(`${path}?${query}`);
  if (answer.ok) put(id, await answer.text());
}

async function refreshCatalogue() {
  await refreshPart("catalogue", "/compare/catalogue");
  chooser.filter();
  showChosen();
}

const chooser = watchChooser(form);
const handles = watchHandles(chart, (end, compute) => {
  form.elements[end].value = compute === null ? "" : String(Number(compute.toPrecision(3)));
  refresh({ remember: "push" });
});

const refreshSoon = atMostEvery(1000, refreshForNews);
const sideSoon = atMostEvery(1000, () => refreshPart("side", "/compare/side"));
const catalogueSoon = atMostEvery(2000, refreshCatalogue);

let typing = null;
form.addEventListener("input", (event) => {
  if (event.target.id === "search") return;
  clearTimeout(typing);
  typing = setTimeout(() => refresh({ remember: "push" }), event.target.type === "checkbox" ? 0 : 350);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  refresh({ remember: "push" });
});
addEventListener("popstate", () => {
  restore(form, new URLSearchParams(location.search));
  refresh();
});
addEventListener("themechange", () => shown && refresh());
place("exports").addEventListener("click", (event) => {
  const format = event.target.dataset?.image;
  if (format && shown) save(chart, format, shown);
});

place("keep").addEventListener("click", async () => {
  const answer = await fetch(`/compare/keep?${queryOf(form)}`, { method: "POST" });
  const body = await answer.json().catch(() => ({}));
  place("kept").textContent = body.message ?? body.detail ?? `The service answered ${answer.status}.`;
  place("kept").hidden = false;
});

listen("/live", {
  onState: (state) => showState(place("live"), state),
  onFresh: () => {
    refreshSoon();
    sideSoon();
  },
  onEvent: (kind, data) => {
    if (kind === "evaluation.created") {
      if (!shown || shown.run_ids.includes(data.run_id)) refreshSoon();
      catalogueSoon();
    } else if (kind === "run.created") catalogueSoon();
    else sideSoon();
  },
});

if (matchMedia("(max-width: 860px)").matches) {
  place("chooser").open = false;
  place("options").open = false;
}
setTimeout(() => shown ?? refreshSoon(), 700); // also without a stream
