// Behaviour of all pages: colour theme, approvals without a page load, times, and the modules that every page uses.

import { copyButtons, copyFields } from "./copy.js";
import { notices } from "./notices.js";
import { palette } from "./palette.js";
import { autoReload, reloadParts } from "./renew.js";
import { post } from "./request.js";
import { sidebar } from "./sidebar.js";

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
      form.remove(); // its text is sent; the stream or the list shows the result
      if (body.has("back")) await reloadParts();
      return;
    }
    form.querySelectorAll("button").forEach((b) => (b.disabled = false));
  });
}

// Content that the server needs a few seconds for is loaded after the page.
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

// In a message field, Enter sends and Shift+Enter adds a line.
function enterSends() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches?.("textarea[data-enter]")) return;
    event.preventDefault();
    if (event.target.value.trim()) event.target.form.requestSubmit();
  });
}

// Scroll to the task that a graph is around.
[...document.querySelectorAll(".graph .around")].find((e) => e.getClientRects().length)?.scrollIntoView({ inline: "center", block: "nearest" });

// After coming back to a page, its buttons create new things instead of repeating earlier requests.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  const key = crypto.getRandomValues(new Uint32Array(4)).join("-");
  document.querySelectorAll("input[name=key]").forEach((field) => (field.value = key));
});

themeButton();
enterSends();
palette();
notices();
autoReload();
loadLater();
updateTimes();
copyButtons();
copyFields();
approvalForms();
sidebar();
