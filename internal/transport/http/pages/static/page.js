// Behaviour of all pages: colour theme, copy buttons, approvals without a page load, error messages.

import { palette } from "./palette.js";
import { sidebar } from "./sidebar.js";

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
    if (answer.ok || answer.status === 422) return { text, url: answer.url, again: !answer.ok }; // 422: the form once more, with what is wrong in it
    toast(text.trim() || answer.statusText, true);
  } catch {
    toast("The server cannot be reached. Your text is kept: try again.", true);
  }
  return null;
}

function themeButton() {
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

// reachable makes code focusable, so that its copy button can be reached with the keyboard.
export function reachable(root) {
  root?.querySelectorAll("figure.code, pre.command").forEach((f) => (f.tabIndex = 0));
}

// A button that copies the text of a message is made when it is first pointed at or focused.
function offerMessage(said) {
  const tools = said?.querySelector(":scope > header .tools");
  if (!tools || tools.querySelector(".copy-text")) return;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet copy-text", textContent: "Copy" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(said.querySelector(":scope > .text")?.innerText ?? "");
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    } catch {
      toast("The browser does not let this page copy: select the text and copy it yourself.", true);
    }
  });
  tools.prepend(button);
}

// Copy buttons are made when code is pointed at or focused, so that pages stay small.
function copyButtons() {
  const offer = (event) => {
    offerMessage(event.target.closest?.(".said"));
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

// A button beside a field copies what the field holds.
function copyFields() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      button.textContent = "Copied";
    } catch {
      toast("The browser does not let this page copy: the link is selected, copy it yourself.", true);
    }
  });
}

// Approvals are answered without leaving the page.
function approvalForms() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form.verdict")) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    form.querySelectorAll("button").forEach((b) => (b.disabled = true));
    const done = await post(form.action, body);
    if (done?.again) {
      form.outerHTML = done.text; // rendered by our own server
      document.querySelector("form.verdict :is(input, select)[aria-invalid=true], form.verdict [aria-invalid=true] input")?.focus();
      return;
    }
    if (done) {
      form.remove(); // what was written in it is sent; the stream or the list says how it ended
      if (body.has("back")) await reloadParts();
      return;
    }
    form.querySelectorAll("button").forEach((b) => (b.disabled = false));
  });
}

// writing reports whether a field in a part of the page is focused and has text, or has text that was not sent.
function writing(part) {
  const field = document.activeElement?.closest?.("input, textarea, select");
  if (field && part.contains(field) && field.value) return true;
  const typed = (f) => f.value !== f.defaultValue;
  const chosen = (s) => [...s.options].some((o) => o.defaultSelected) && !s.selectedOptions[0]?.defaultSelected;
  return [...part.querySelectorAll("textarea, input:not([type=checkbox], [type=radio], [type=hidden])")].some(typed) || [...part.querySelectorAll("select")].some(chosen);
}

// renewFrame asks for what stands around every page and changes by itself: the list of conversations, and how many approvals wait.
export async function renewFrame() {
  if (document.hidden) return; // it is asked for when the page is seen again
  try {
    const answer = await fetch(`/frame?at=${encodeURIComponent(location.pathname)}`, { headers: { "X-Chorus": "1" } });
    if (!answer.ok || answer.redirected) return;
    const fresh = await answer.json();
    await released;
    for (const [selector, html] of Object.entries(fresh)) {
      const part = document.querySelector(selector);
      if (!part) continue;
      const made = part.cloneNode(false);
      made.innerHTML = html; // rendered by our own server
      renew(part, made);
    }
  } catch {
    // the server cannot be reached; tried again with the next change
  }
}

let reloads = 0;

// released ends when no button of a mouse and no finger is down: what somebody presses must still be there when they let it go, or
// their click is lost. A release that the page never sees (outside of the window) is not waited for.
export let released = Promise.resolve();
addEventListener("pointerdown", () => {
  released = new Promise((done) => {
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(done), { once: true, capture: true }); // the click comes first
    setTimeout(done, 10000);
  });
}, true);

// Overview pages reload their content while they are visible and nobody writes or drags in them.
export async function reloadParts() {
  const parts = document.querySelectorAll("[data-renew]");
  if (!parts.length) return renewFrame();
  if (document.hidden || document.body.dataset.busy) return;
  const mine = ++reloads;
  let page;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return; // tried again later
  }
  await released;
  if (mine !== reloads || document.body.dataset.busy) return; // a later reload is newer
  const fresh = page.querySelectorAll("[data-renew]");
  parts.forEach((old, i) => renew(old, fresh[i]));
  for (const part of [".recent", ".bar nav", ".places", ".asked-place"]) renew(document.querySelector(part), page.querySelector(part));
}

// renew replaces the content of a part of the page, unless somebody has begun to write in it. What was unfolded stays so, and the focus stays
// on the same link or button.
export function renew(old, made) {
  if (!old || !made) return;
  reachable(made);
  if (old.dataset.renew === "each") return renewEach(old, made);
  if (old.innerHTML === made.innerHTML || writing(old)) return;
  const key = (d, i) => d.id || i;
  const open = new Map([...old.querySelectorAll("details")].map((d, i) => [key(d, i), d.open]));
  const places = [...old.querySelectorAll("[data-scrolls]")].map((e) => [e.scrollLeft, e.scrollTop]);
  const at = document.activeElement;
  const holder = old.contains(at) && at.closest("[id]");
  const path = old.contains(at) && at.getAttribute("href");
  const menu = old.contains(at) && at.matches(".row-menu") && at.closest("li").querySelector("a").getAttribute("href");
  const inside = holder && old.contains(holder) && (holder !== old || old.parentElement.dataset.renew === "each") && [holder.id, [...holder.querySelectorAll(at.localName)].indexOf(at), at.localName];
  old.innerHTML = made.innerHTML; // rendered by our own server
  old.querySelectorAll("details").forEach((d, i) => (d.open = open.get(key(d, i)) ?? d.open));
  old.querySelectorAll("[data-scrolls]").forEach((e, i) => places[i] && e.scrollTo(...places[i]));
  if (path) old.querySelector(`[href="${CSS.escape(path)}"]`)?.focus();
  else if (menu) old.querySelector(`[href="${CSS.escape(menu)}"] + .row-menu`)?.focus();
  else if (inside) document.getElementById(inside[0])?.querySelectorAll(inside[2])[inside[1]]?.focus();
}

// renewEach renews the children of a part one by one, known by their ids: what somebody writes in stays as it is, and what comes or goes
// around it does not move what was unfolded or focused.
function renewEach(old, made) {
  const gone = new Map([...old.children].filter((c) => c.id).map((c) => [c.id, c]));
  let before = [...old.children].findLast((c) => !c.id);
  for (const child of [...made.children].filter((c) => c.id)) {
    const there = gone.get(child.id);
    gone.delete(child.id);
    if (there) renew(there, child);
    else if (before) before.after(child);
    else old.prepend(child);
    before = there ?? child;
  }
  for (const child of gone.values()) if (!writing(child)) child.remove();
}

function autoReload() {
  // The board has a stream of its own, and so has a conversation, which is all of its page.
  if (document.querySelector(".board") || document.querySelector("[data-after]") && !document.querySelector("[data-renew]")) return;
  // The server reports changes of its own process at once; those of other processes are found by the timer. A hidden
  // page keeps no connection, because browsers limit them.
  let moves;
  const listen = () => {
    moves?.close();
    if (document.hidden) return;
    moves = new EventSource("/moves");
    moves.addEventListener("open", reloadParts); // something may have changed before
    moves.addEventListener("message", reloadParts);
  };
  listen();
  setInterval(reloadParts, 30000);
  document.addEventListener("visibilitychange", listen);
}

// Content that takes the server a few seconds is loaded after the page.
function loadLater() {
  document.querySelectorAll("[data-fill]").forEach(async (place) => {
    try {
      const answer = await fetch(place.dataset.fill, { headers: { "X-Chorus": "1" } });
      const text = await answer.text();
      if (answer.ok) place.innerHTML = text; // rendered by our own server
      else place.textContent = text.trim();
    } catch {
      place.textContent = "The server cannot be reached.";
    }
    place.removeAttribute("aria-busy");
  });
}

// Relative times are kept up to date.
function updateTimes() {
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

// In a field for a message Enter sends it and Shift+Enter begins a new line.
function enterSends() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches?.("textarea[data-enter]")) return;
    event.preventDefault();
    if (event.target.value.trim()) event.target.form.requestSubmit();
  });
}

// The task that a graph is around is in sight.
[...document.querySelectorAll(".graph .around")].find((e) => e.getClientRects().length)?.scrollIntoView({ inline: "center", block: "nearest" });

// A page that is come back to makes new things when its buttons are pressed again, and not those of before.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  const key = crypto.getRandomValues(new Uint32Array(4)).join("-");
  document.querySelectorAll("input[name=key]").forEach((field) => (field.value = key));
});

themeButton();
enterSends();
palette();
autoReload();
loadLater();
updateTimes();
copyButtons();
copyFields();
approvalForms();
sidebar();
