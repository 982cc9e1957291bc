// The board: cards can be dragged to the columns that the rules allow. The server decides what a drop means and refuses what is not
// allowed; each card's menu does the same without dragging. Changes arrive over a stream, and only changed cards are touched.
import { released, renew } from "./renew.js";
import { post, toast } from "./request.js";

const board = () => document.querySelector(".board");
const dialog = document.getElementById("reopen");
let dragged = null; // a copy of the card's data: the card itself may be replaced meanwhile
let held = []; // changes that came while a card was dragged

const list = (text) => (text ?? "").split(" ").filter(Boolean);

function begin(event) {
  const card = event.target.closest?.(".card[draggable]");
  if (!card) return;
  dragged = { id: card.dataset.task, title: card.dataset.title, from: card.closest("[data-column]").dataset.column, drop: list(card.dataset.drop), asks: list(card.dataset.asks) };
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", new URL(`/work/${encodeURIComponent(dragged.id)}`, location.href).href);
  document.body.dataset.busy = "drag"; // nothing moves during a drag
  card.classList.add("dragged");
  for (const column of board().querySelectorAll("[data-column]")) column.classList.toggle("open", dragged.drop.includes(column.dataset.column));
}

function over(event) {
  const column = dragged && event.target.closest?.("[data-column]");
  if (!column) return;
  event.preventDefault(); // a forbidden drop must reach us, because we explain why it is refused
  for (const other of board().querySelectorAll(".over")) if (other !== column) other.classList.remove("over");
  column.classList.add("over");
}

function end() {
  dragged = null;
  delete document.body.dataset.busy;
  for (const e of document.querySelectorAll(".dragged, .board .open, .board .over")) e.classList.remove("dragged", "open", "over");
  for (const update of held.splice(0)) show(update);
  if (board()) delete board().dataset.held;
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
  return done;
}

// Reopening a task needs a text.
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
  }
});

const element = (html) => document.createRange().createContextualFragment(html).firstElementChild;
const cardOf = (id) => document.getElementById(`card-${id}`);

// where describes the focused element in a card or below a column, so that it can be focused again.
function where() {
  const at = document.activeElement, card = at?.closest?.(".board .card"), column = at?.closest?.("[data-column]");
  if (!column) return null;
  const home = card ?? column;
  return { task: card?.dataset.task, column: column.dataset.column, name: at.localName, index: [...home.querySelectorAll(at.localName)].indexOf(at), at };
}

// refocus restores the focus: on the same link or button of the same task, wherever that is now. If the task has left the board, its
// column gets the focus.
function refocus(was) {
  if (!was || document.activeElement === was.at) return;
  const home = was.task && cardOf(was.task);
  const same = home?.querySelectorAll(was.name)[was.index] ?? home?.querySelector("h3 a");
  (same ?? document.querySelector(`[data-column="${was.column}"] :is([data-more], .card:last-of-type h3 a)`))?.focus({ preventScroll: true });
}

// show applies changes to the board: cards are replaced, moved, added and removed one by one.
function show(update) {
  if (dragged) {
    board().dataset.held = held.push(update);
    return;
  }
  const was = where(), fresh = new Map(), stood = new Map();
  for (const [id, html] of Object.entries(update.cards ?? {})) {
    const card = element(html), old = cardOf(id); // rendered by our own server
    if (!old) fresh.set(id, card);
    else if (old.dataset.version !== card.dataset.version) {
      if (old.querySelector(".moves[open]")) card.querySelector(".moves")?.setAttribute("open", "");
      old.replaceWith(card);
    }
  }
  for (const { order } of update.columns ?? []) for (const id of order) stood.set(id, cardOf(id)?.closest("[data-column]")?.dataset.column);
  for (const column of update.columns ?? []) arrange(column, fresh, stood);
  for (const { id, order } of update.columns ?? []) {
    const there = new Set(order);
    for (const card of board().querySelectorAll(`[data-column="${id}"] > .card`)) if (!there.has(card.dataset.task)) card.remove();
  }
  for (const [selector, html] of Object.entries(update.parts ?? {})) {
    const part = document.querySelector(selector);
    if (!part) continue;
    const made = part.cloneNode(false);
    made.innerHTML = html; // likewise
    renew(part, made);
  }
  board().dataset.version = update.version;
  refocus(was);
}

// arrange sorts the cards of a column. A card from another column is marked for a moment.
function arrange({ id, total, more, order }, fresh, stood) {
  const section = board().querySelector(`[data-column="${id}"]`);
  let before = section.querySelector("h2");
  before.querySelector("small").textContent = total;
  for (const task of order) {
    const card = cardOf(task) ?? fresh.get(task);
    if (!card) continue; // the next connection sends all
    if (before.nextElementSibling !== card) before.after(card);
    if (stood.get(task) !== id && board().dataset.shown) card.classList.add("came");
    before = card;
  }
  const hint = section.querySelector(".more");
  if (hint.innerHTML !== more) hint.innerHTML = more; // likewise
}

// The stream's first event contains what the page does not show yet. A hidden page keeps no connection, because browsers limit them.
let stream;
function listen() {
  stream?.close();
  if (document.hidden) return;
  const query = new URLSearchParams(location.search);
  query.set("version", board().dataset.version);
  const mine = (stream = new EventSource(`/work/live?${query}`));
  stream.addEventListener("board", async (event) => {
    await released;
    if (mine !== stream) return; // the next one begins with it
    show(JSON.parse(event.data));
    board().dataset.shown = "yes";
  });
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) toast("The board has stopped updating. Reload the page.", true);
  });
}
listen();
document.addEventListener("visibilitychange", listen);

document.addEventListener("click", (event) => {
  const more = event.target.closest?.("[data-more]");
  if (!more) return;
  event.preventDefault();
  history.replaceState(null, "", more.href.replace(/#.*/, ""));
  listen();
});
