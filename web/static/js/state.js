// The address is the page's whole state; the form shows it.

export function queryOf(form) {
  const query = new URLSearchParams();
  for (const [name, value] of inOrderOfChoice([...new FormData(form)])) {
    if (value.trim() !== "") query.append(name, value);
  }
  // Says that nothing was chosen on purpose; without it the newest runs would be shown.
  if (!query.has("run") && !query.has("recipe")) query.append("run", "");
  return query;
}

// What was chosen first stays first, so that a curve keeps its colour when others are added.
function inOrderOfChoice(pairs) {
  const before = [...new URLSearchParams(location.search)].map(String);
  const rank = (pair) => {
    const found = before.indexOf(String(pair));
    return found < 0 ? before.length : found;
  };
  const isChoice = ([name]) => name === "run" || name === "recipe";
  const choices = pairs.filter(isChoice).sort((a, b) => rank(a) - rank(b));
  return [...choices, ...pairs.filter((pair) => !isChoice(pair))];
}

export function restore(form, query) {
  for (const control of form.elements) {
    if (!control.name) continue;
    if (control.type === "checkbox") control.checked = query.getAll(control.name).includes(control.value);
    else if (query.has(control.name)) control.value = query.get(control.name);
    else control.value = control.dataset.default ?? "";
  }
}

export function showErrors(form, errors) {
  for (const place of form.querySelectorAll("[data-error-for]")) {
    const key = place.dataset.errorFor;
    const message = errors[key];
    place.textContent = message ?? "";
    place.hidden = !message;
    form.elements.namedItem(key)?.setAttribute?.("aria-invalid", String(Boolean(message)));
  }
}

// Calls `work` at most once per `interval_ms`, and always once more after the last request.
export function atMostEvery(interval_ms, work) {
  let timer = null;
  let last = -Infinity;
  return () => {
    if (timer !== null) return;
    const wait_ms = Math.max(0, last + interval_ms - performance.now());
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, wait_ms);
  };
}
