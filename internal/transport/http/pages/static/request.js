// Requests to the server, and their errors.

export function toast(text, bad = false) {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.classList.toggle("bad", bad);
  box.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => box.classList.remove("shown"), bad ? 8000 : 3000);
}

// The server ends a request after 90 seconds by itself. After this time it is unreachable, and what is sent in turn need not wait for it.
const timeLimit = 120_000;

// post sends a form and returns the response, or shows the error and returns null.
export async function post(url, body) {
  try {
    const answer = await fetch(url, { method: "POST", body, headers: { "X-Chorus": "1" }, redirect: "follow", signal: AbortSignal.timeout(timeLimit) });
    const text = await answer.text();
    if (answer.ok || answer.status === 422) return { text, url: answer.url, again: !answer.ok }; // 422: the form again, with its errors
    toast(text.trim() || answer.statusText, true);
  } catch {
    toast("The server cannot be reached. Your text is kept. Try again.", true);
  }
  return null;
}

// inTurn does one piece of work after the other, in the order in which they were given.
let last = Promise.resolve();

export function inTurn(work) {
  const mine = last.then(work);
  last = mine.catch(() => {}); // what fails does not hold up the rest
  return mine;
}
