// Buttons that copy the text of another element.
document.addEventListener("click", async (event) => {
  const id = event.target.dataset?.copy;
  if (!id) return;
  await navigator.clipboard.writeText(document.getElementById(id).textContent);
  event.target.textContent = "Copied";
  setTimeout(() => (event.target.textContent = "Copy"), 1500);
});
