// The two ends of the fit's window as sliders over the chart: drag them, or move them by arrow keys.
// Plotly's own draggable shapes cannot be reached by keyboard.

const STEP_DECADES = 0.05;

export function watchHandles(chart, onMove) {
  const ends = { min: handle("Fit from"), max: handle("Fit to") };
  let bounds = null; // [first, last] compute of any point
  let compute = {};
  const moving = new Set(); // ends in the reader's hand: news must not move them back

  function handle(label) {
    const element = document.createElement("div");
    element.className = "handle";
    element.tabIndex = 0;
    element.hidden = true;
    element.setAttribute("role", "slider");
    element.setAttribute("aria-label", label);
    chart.parentElement.append(element);
    return element;
  }

  const axis = () => chart._fullLayout?.xaxis;
  const clamp = (value) => Math.min(Math.max(value, bounds[0]), bounds[1]);

  function put(end, value) {
    const x = axis();
    const plot = chart._fullLayout._size;
    const pixel = x.d2p(value);
    const element = ends[end];
    element.hidden = pixel < -1 || pixel > x._length + 1;
    element.style.left = `${chart.offsetLeft + plot.l + pixel}px`;
    element.style.top = `${chart.offsetTop + plot.t}px`;
    element.style.height = `${plot.h}px`;
    element.setAttribute("aria-valuemin", bounds[0]);
    element.setAttribute("aria-valuemax", bounds[1]);
    element.setAttribute("aria-valuenow", value);
    element.setAttribute("aria-valuetext", `${Number(value.toPrecision(3))}`);
  }

  function place(window) {
    bounds = window ? window.bounds : null;
    for (const end of ["min", "max"]) {
      if (!window) ends[end].hidden = true;
      else put(end, (compute[end] = clamp(moving.has(end) ? compute[end] : window[end])));
    }
  }

  function commit(end, value) {
    moving.delete(end);
    if (!bounds) return; // the curve went while its end was moved
    // An end at the outermost point means "all of them": new points then count without a change.
    const outermost = end === "min" ? value <= bounds[0] : value >= bounds[1];
    onMove(end, outermost ? null : value);
  }

  for (const [end, element] of Object.entries(ends)) {
    element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      element.focus();
      element.setPointerCapture(event.pointerId);
      moving.add(end);
      const left = chart.getBoundingClientRect().left + chart._fullLayout._size.l;
      const move = (e) => put(end, (compute[end] = clamp(axis().p2d(e.clientX - left))));
      element.addEventListener("pointermove", move);
      element.addEventListener(
        "lostpointercapture",
        () => {
          element.removeEventListener("pointermove", move);
          commit(end, compute[end]);
        },
        { once: true },
      );
    });
    element.addEventListener("keydown", (event) => {
      const direction = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!direction) return;
      event.preventDefault();
      moving.add(end);
      put(end, (compute[end] = clamp(compute[end] * 10 ** (direction * STEP_DECADES))));
      clearTimeout(element.timer);
      element.timer = setTimeout(() => commit(end, compute[end]), 250);
    });
  }

  new ResizeObserver(() => bounds && place({ bounds, ...compute })).observe(chart);
  return { place };
}
