// One stream of events a page. It is closed while the tab is hidden; the browser reconnects by itself
// and tells the server the last event it saw, so nothing is missed in between.

const KINDS = ["evaluation.created", "job.changed", "gate.decided", "run.created"];

// `onFresh` is called when a new stream is open: what is fetched from then on misses no event, while what
// was fetched before may. A stream that only reconnects goes on where it broke off.
export function listen(url, { onEvent, onState, onFresh }) {
  let source = null;
  let retry = null;

  function open() {
    onState("connecting");
    let isFresh = true;
    source = new EventSource(url);
    source.onopen = () => {
      onState("live");
      if (isFresh) onFresh();
      isFresh = false;
    };
    source.onerror = () => {
      onState("reconnecting");
      // A refused answer (the session ended, the service restarts) closes the stream for good.
      if (source.readyState === EventSource.CLOSED) {
        retry = setTimeout(() => {
          close();
          open();
        }, 3000);
      }
    };
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => onEvent(kind, JSON.parse(event.data)));
    }
  }

  function close() {
    clearTimeout(retry);
    source?.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      onState("paused");
    } else if (!source) open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && !source && open());
  open();
}

const WORDS = {
  connecting: "connecting…",
  live: "live",
  reconnecting: "reconnecting… what you see may be old",
  paused: "paused",
};

export function showState(element, state) {
  if (element.dataset.state === state) return;
  element.dataset.state = state;
  element.textContent = WORDS[state];
}
