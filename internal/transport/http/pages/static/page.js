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
    toast("The server cannot be reached. Your text is kept: try again.", true);
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

// reachable lets the keyboard come to code, where its copy button then is the next thing.
export function reachable(root) {
  root?.querySelectorAll("figure.code, pre.command").forEach((f) => (f.tabIndex = 0));
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
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        toast("The browser does not let this page copy: select the text and copy it yourself.", true);
        return;
      }
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    figure.append(button);
  };
  document.addEventListener("pointerover", offer);
  document.addEventListener("focusin", offer);
  reachable(document);
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
      if (form.querySelector("[name=back]")) await renew();
      else form.remove(); // the answer comes in its place
      return;
    }
    form.querySelectorAll("button").forEach((b) => (b.disabled = false));
  });
}

// writing tells whether somebody has begun to write in a part of the page.
function writing(part) {
  const field = document.activeElement?.closest?.("input, textarea, select");
  return field && part.contains(field) && field.value;
}

let looks = 0;

// Pages about everything are read anew while somebody looks at them and does not write.
async function renew() {
  const now = document.querySelector("[data-renew]");
  if (!now || document.hidden || writing(now)) return;
  const look = ++looks;
  let page;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return; // the next time
  }
  if (look !== looks || writing(now)) return; // a later look knows better; and what was begun meanwhile stays
  for (const part of ["[data-renew]", ".sessions", ".bar nav", ".places", ".asked-place"]) {
    const [old, made] = [document.querySelector(part), page.querySelector(part)];
    if (!old || !made || old.innerHTML === made.innerHTML) continue;
    const open = [...old.querySelectorAll("details")].map((d) => d.open);
    const at = document.activeElement;
    const path = old.contains(at) && at.getAttribute("href");
    old.innerHTML = made.innerHTML; // our own page, made by the same server
    old.querySelectorAll("details").forEach((d, i) => (d.open = open[i] ?? false));
    if (path) old.querySelector(`[href="${CSS.escape(path)}"]`)?.focus();
  }
}

function renewing() {
  if (!document.querySelector("[data-renew]")) return;
  // The server tells when something moves in its own process; what others on its home do is found by and by. A page that nobody
  // sees holds no connection: a browser has few.
  let moves;
  const listen = () => {
    moves?.close();
    if (document.hidden) return;
    moves = new EventSource("/moves");
    moves.addEventListener("open", renew); // something may have moved before
    moves.addEventListener("message", renew);
  };
  listen();
  setInterval(renew, 30000);
  document.addEventListener("visibilitychange", listen);
}

// What takes the server a moment comes after the page.
function filling() {
  document.querySelectorAll("[data-fill]").forEach(async (place) => {
    try {
      const answer = await fetch(place.dataset.fill, { headers: { "X-Chorus": "1" } });
      const text = await answer.text();
      if (answer.ok) place.innerHTML = text; // a fragment of ours
      else place.textContent = text.trim();
    } catch {
      place.textContent = "The server cannot be reached.";
    }
    place.removeAttribute("aria-busy");
  });
}

// Times are told anew as they pass.
function aging() {
  const say = (n, unit) => `${n} ${unit}${n === 1 ? "" : "s"} ago`;
  setInterval(() => {
    for (const t of document.querySelectorAll("time[datetime]")) {
      const s = Math.floor((Date.now() - Date.parse(t.dateTime)) / 1000);
      if (!(s >= 45 && s < 86400)) continue;
      const words = s < 60 ? say(s, "second") : s < 3600 ? say(Math.floor(s / 60), "minute") : say(Math.floor(s / 3600), "hour");
      if (t.textContent !== words) t.textContent = words;
    }
  }, 30000);
}

light();
renewing();
filling();
aging();
copying();
answering();
