// A login link carries the token in its fragment, which browsers never send. It is taken out of the
// address at once and posted in a form's body.
const form = document.getElementById("login");

function loginByFragment() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return false;
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.token.value = token;
  form.requestSubmit();
  return true;
}

// A link pasted while this page is open only changes the fragment.
addEventListener("hashchange", loginByFragment);

if (!loginByFragment()) {
  // Coming from another site the session's cookie is held back; from here it is sent.
  const answer = await fetch("/session");
  if (answer.ok && (await answer.json()).logged_in) location.replace(form.elements.next.value);
}
