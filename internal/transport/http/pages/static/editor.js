// A form with a live preview next to it.

import { toast } from "./request.js";

const form = document.getElementById("draft");
const preview = document.getElementById("preview");
let asked = 0, timer = null;

async function look() {
  const mine = ++asked;
  preview.classList.add("stale");
  const body = new URLSearchParams(new FormData(form));
  body.set("do", "preview");
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { "X-Chorus": "1" } });
    const text = await answer.text();
    if (mine !== asked) return; // more was typed meanwhile
    if (!answer.ok) throw new Error(text);
    const open = [...preview.querySelectorAll(":scope > details")].map((d) => d.open);
    preview.innerHTML = text; // rendered by our own server
    preview.querySelectorAll(":scope > details").forEach((d, i) => (d.open = open[i] ?? d.open));
  } catch (error) {
    if (mine === asked) toast(error.message || "The server cannot be reached.", true);
  }
  preview.classList.remove("stale");
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(look, 500); // people type in bursts
});
form.addEventListener("change", (event) => {
  if (event.target.name === "which") form.querySelector("details.sub").open = event.target.value === "some";
});
form.addEventListener("submit", (event) => {
  if (event.submitter?.value !== "preview") return;
  event.preventDefault();
  look();
});
