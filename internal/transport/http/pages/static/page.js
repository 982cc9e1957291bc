// What every page can do: change the light, copy code, answer in place, say what went wrong.

export function toast(text, bad = false) {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.classList.toggle("bad", bad);
  box.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => box.classList.remove("shown"), bad ? 8000 : 3000);
}

// post sends a form and gives what the server said; a refusal is shown, not thrown.
export async function post(url, body) {
  try {
    const answer = await fetch(url, { method: "POST", body, headers: { "X-Chorus": "1" }, redirect: "follow" });
    const text = await answer.text();
    if (answer.ok) return { text, url: answer.url };
    toast(text.trim() || answer.statusText, true);
  } catch {
    toast("The server cannot be reached. Nothing was lost here: try again.", true);
  }
  return null;
}

function light() {
  const button = document.getElementById("theme");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}

// Copy buttons are made when a pointer or the keyboard comes near, so that pages stay small.
function copying() {
  const offer = (event) => {
    const figure = event.target.closest?.("figure.code, pre.command, .out pre");
    if (!figure || figure.querySelector(":scope > .copy")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const code = (figure.querySelector("code") ?? figure).cloneNode(true);
      code.querySelectorAll(".copy").forEach((b) => b.remove());
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    figure.append(button);
  };
  document.addEventListener("pointerover", offer);
  document.addEventListener("focusin", offer);
  document.querySelectorAll("figure.code").forEach((f) => (f.tabIndex = 0));
}

// Forms that answer a question do it without leaving the page.
function answering() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form.verdict")) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    form.querySelectorAll("button").forEach((b) => (b.disabled = true));
    const done = await post(form.action, body);
    if (done) {
      if (form.querySelector("[name=back]")) location.reload();
      else form.remove();
      return;
    }
    form.querySelectorAll("button").forEach((b) => (b.disabled = false));
  });
}

light();
copying();
answering();
