// Requests to the server, and their errors.

export function toast(text, bad = false) {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.classList.toggle("bad", bad);
  box.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => box.classList.remove("shown"), bad ? 8000 : 3000);
}

// post sends a form and returns the response, or shows the error and returns null.
export async function post(url, body) {
  try {
    const answer = await fetch(url, { method: "POST", body, headers: { "X-Chorus": "1" }, redirect: "follow" });
    const text = await answer.text();
    if (answer.ok || answer.status === 422) return { text, url: answer.url, again: !answer.ok }; // 422: the form again, with its errors
    toast(text.trim() || answer.statusText, true);
  } catch {
    toast("The server cannot be reached. Your text is kept. Try again.", true);
  }
  return null;
}
