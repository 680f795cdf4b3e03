import { keepFresh } from "./part.js";

keepFresh({ kinds: ["job.changed"] });

// Cancelling ends a training: it is asked once more.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
