// One stream of events a page. It is closed while the tab is hidden; the browser reconnects by itself
// and tells the server the last event it saw, so nothing is missed in between.

const KINDS = ["evaluation.created", "job.changed", "gate.decided", "run.created"];

export function listen(url, { onEvent, onState, onResume }) {
  let source = null;
  let retry = null;

  function open() {
    onState("connecting");
    source = new EventSource(url);
    source.onopen = () => onState("live");
    source.onerror = () => {
      onState("reconnecting");
      // A refused answer (the session ended, the service restarts) closes the stream for good.
      if (source.readyState === EventSource.CLOSED) {
        retry = setTimeout(() => {
          close();
          onResume();
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
    } else if (!source) {
      onResume();
      open();
    }
  });
  addEventListener("pagehide", close);
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
