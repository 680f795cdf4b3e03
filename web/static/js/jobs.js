import { keepFresh } from "./part.js";

// A log is fetched when it is opened, and again when its job moved on.
async function fetchLog(details) {
  const answer = await fetch(details.dataset.log);
  if (!answer.ok) return;
  const log = details.querySelector("pre");
  log.textContent = await answer.text();
  log.scrollTop = log.scrollHeight;
}

// "toggle" does not bubble, so it is caught on its way down. It also fires for those that were open
// before the part was replaced.
document.addEventListener("toggle", (event) => event.target.dataset.log && event.target.open && fetchLog(event.target), true);

keepFresh({ kinds: ["job.changed"] });

// Cancelling ends a training: it is asked once more.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
