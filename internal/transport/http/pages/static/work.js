// The board: cards are dragged to the columns that the rules allow. The server decides what a drop means and refuses what is not allowed;
// the menu of each card does the same without dragging.
import { post, reloadParts, toast } from "./page.js";

const board = () => document.querySelector(".board");
const dialog = document.getElementById("reopen");
let dragged = null; // a copy of what the card says: the card itself may be replaced meanwhile

const list = (text) => (text ?? "").split(" ").filter(Boolean);

function begin(event) {
  const card = event.target.closest?.(".card[draggable]");
  if (!card) return;
  dragged = { id: card.dataset.task, title: card.dataset.title, from: card.closest("[data-column]").dataset.column, drop: list(card.dataset.drop), asks: list(card.dataset.asks) };
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", new URL(`/work/${encodeURIComponent(dragged.id)}`, location.href).href);
  document.body.dataset.busy = "drag"; // the board is not renewed under the hand
  card.classList.add("dragged");
  for (const column of board().querySelectorAll("[data-column]")) column.classList.toggle("open", dragged.drop.includes(column.dataset.column));
}

function over(event) {
  const column = dragged && event.target.closest?.("[data-column]");
  if (!column) return;
  event.preventDefault(); // a drop that is not allowed is refused with a sentence, so it must reach us
  for (const other of board().querySelectorAll(".over")) if (other !== column) other.classList.remove("over");
  column.classList.add("over");
}

function end() {
  dragged = null;
  delete document.body.dataset.busy;
  for (const e of document.querySelectorAll(".dragged, .board .open, .board .over")) e.classList.remove("dragged", "open", "over");
}

async function drop(event) {
  const column = dragged && event.target.closest?.("[data-column]");
  if (!column) return;
  event.preventDefault();
  const card = dragged, to = column.dataset.column;
  end();
  if (to === card.from) return;
  if (card.asks.includes(to)) return ask(card.id, card.title);
  await move(card.id, new URLSearchParams({ to }));
}

async function move(id, body) {
  const done = await post(`/work/${encodeURIComponent(id)}`, body);
  if (done) toast(done.text.trim() || "done");
  await reloadParts();
  return done;
}

// A task that is reopened needs words.
function ask(id, title) {
  const form = dialog.querySelector("form");
  form.action = `/work/${encodeURIComponent(id)}`;
  form.dataset.id = id;
  dialog.querySelector("h2 span").textContent = title;
  dialog.showModal();
}

document.addEventListener("dragstart", begin);
document.addEventListener("dragover", over);
document.addEventListener("drop", drop);
document.addEventListener("dragend", end);

document.addEventListener("click", (event) => {
  const reopen = event.target.closest?.("[data-reopen]");
  if (reopen) {
    event.preventDefault();
    const card = reopen.closest(".card");
    ask(card.dataset.task, card.dataset.title);
  }
  if (event.target.closest?.("[data-close]")) dialog.close();
  for (const menu of document.querySelectorAll(".moves[open]")) if (!menu.contains(event.target)) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector(".moves[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// The menu without leaving the board; without scripts it is an ordinary form.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches(".moves form, #reopen form")) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const id = form.dataset.id ?? form.closest(".card").dataset.task;
  form.closest(".moves")?.removeAttribute("open");
  if ((await move(id, body)) && dialog.open) {
    form.reset();
    dialog.close();
    await reloadParts();
  }
});
