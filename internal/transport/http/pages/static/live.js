// Live updates of a conversation: fragments from the server are inserted into the page, and messages
// are sent without leaving it. Only answers of commands are stored here (answers.js).
import { keeper } from "./answers.js";
import { completions, isCommand } from "./commands.js";
import { attachments, drafts, grow, leave, take } from "./composer.js";
import { reachable } from "./copy.js";
import { tell } from "./notices.js";
import { renewFrame } from "./renew.js";
import { inTurn, post, toast } from "./request.js";

const conversation = document.querySelector("[data-after]");
const log = document.getElementById("log");
const form = document.getElementById("say");
const id = conversation.dataset.session;

// A reader at the end stays at the end; one further up is not moved.
const own = conversation.dataset.scroll === "own"; // the log scrolls by itself, as a part of another page
const scroller = own ? log : document.scrollingElement;
const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 120;
const toEnd = () => scroller.scrollTo({ top: scroller.scrollHeight });

function element(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // rendered by the server, which escapes all text
  return holder.content.firstElementChild;
}

// Parts belong in a row. If the row is on an earlier page, there is nothing to do.
const isPart = (id) => /^(out|state|answer|over)-/.test(id);

function put({ id, html, replaces, in: inside }) {
  const stay = atEnd();
  const old = document.getElementById(id) ?? (replaces && document.getElementById(replaces));
  if (!html) {
    old?.remove();
  } else if (old) {
    const made = element(html);
    keepOpen(old, made);
    old.replaceWith(made);
    if ("open" in made.dataset) made.closest("details.call").open = true; // a change short enough to show at once
    else fold(made);
    if (made.querySelector(".answer") || made.matches(".answer")) made.closest(".ask")?.querySelector(".about")?.removeAttribute("open");
  } else if (!isPart(id)) {
    if (inside) unfold(document.getElementById(inside))?.append(element(html));
    else log.insertBefore(element(html), document.getElementById("live")); // the draft stays last
  }
  if (id.startsWith("progress-")) document.getElementById(id)?.scrollTo({ top: 1e6 }); // its last lines
  if (html && !inside) reachable(document.getElementById(id));
  if (replaces && id !== replaces) document.getElementById(replaces)?.remove();
  document.getElementById("hello")?.remove();
  if (stay) toEnd();
}

// A call with output is open while it runs, unless the reader folds it, and after a failure; otherwise it is folded again.
function unfold(place) {
  const card = place?.matches(".out") && place.closest("details.call");
  if (!card || card.open) return place;
  card.open = true;
  card.dataset.unfolded = "yes";
  card.querySelector("summary").addEventListener("click", () => delete card.dataset.unfolded, { once: true });
  return place;
}

function fold(made) {
  const card = made.matches(".state.ok") && made.closest("details.call[data-unfolded]");
  if (!card) return;
  delete card.dataset.unfolded;
  if (!card.querySelector("[data-open]")) card.open = false;
}

// Elements that the reader unfolded stay open when they are replaced.
function keepOpen(old, made) {
  if (old.open) made.open = true;
  const folds = made.querySelectorAll("details");
  old.querySelectorAll("details").forEach((d, i) => { if (d.open && folds[i]) folds[i].open = true; });
}

// How long a call has been running, and the time until a failed request is retried.
setInterval(() => {
  for (const state of document.querySelectorAll(".state.running[data-since]")) {
    const s = Math.floor((Date.now() - Date.parse(state.dataset.since)) / 1000);
    if (s >= 1) state.textContent = s < 60 ? `running · ${s} s` : `running · ${Math.floor(s / 60)} min ${s % 60} s`;
  }
  for (const next of document.querySelectorAll(".retry .next")) {
    const s = Math.round((Date.parse(next.dataset.at) - Date.now()) / 1000);
    const words = s <= 0 ? "now" : s < 60 ? `in ${s} second${s === 1 ? "" : "s"}` : `in ${Math.ceil(s / 60)} minute${s <= 60 ? "" : "s"}`;
    if (next.textContent !== words) next.textContent = words;
  }
}, 1000);

let status = document.getElementById("status")?.dataset.status ?? "idle", queue = 0;

function show(now) {
  const stay = atEnd();
  const text = (name, value) => { const e = document.getElementById(name); if (e && e.textContent !== value) e.textContent = value; };
  if (now.status === "idle" && status === "running") tell(`${now.title}: ${now.shown === "failed" ? "the run failed" : "the answer is ready"}`);
  status = now.status;
  queue = now.queue;
  text("tokens", now.tokens);
  text("cost", now.cost);
  text("title", now.title);
  if (now.model) text("model", now.model);
  text("status-text", now.words);
  text("queue", now.queue ? ` · ${now.queue} waiting` : "");
  document.title = `${{ running: "… ", waiting: "? ", failed: "! " }[now.shown] ?? ""}${now.title} · Chorus`;
  document.querySelectorAll(`#status .dot, a[data-session="${CSS.escape(id)}"] .dot`).forEach((d) => { d.className = `dot ${now.shown}`; d.title = now.words; });
  document.querySelectorAll(`a[data-session="${CSS.escape(id)}"] .name`).forEach((n) => { if (n.textContent !== now.title) n.textContent = now.title; });
  document.getElementById("status")?.setAttribute("data-status", now.status);
  const busy = now.status !== "idle";
  const stop = document.getElementById("stop");
  if (stop) stop.hidden = !busy;
  const steer = document.getElementById("steer-mode");
  if (steer) steer.hidden = !busy;
  if (stay) toEnd(); // the form below may have grown
  if (document.hidden) pause();
}

let source = null, over = false;

function listen() {
  if (source || over) return;
  const mine = new EventSource(`/s/${encodeURIComponent(id)}/live?after=${conversation.dataset.after}`);
  source = mine;
  mine.addEventListener("put", (e) => put(JSON.parse(e.data)));
  mine.addEventListener("state", (e) => show(JSON.parse(e.data)));
  mine.addEventListener("seen", (e) => (conversation.dataset.after = e.data));
  mine.addEventListener("moved", renewFrame);
  mine.addEventListener("gone", gone);
  mine.addEventListener("open", () => document.body.classList.remove("away"));
  mine.addEventListener("error", () => {
    document.body.classList.add("away");
    if (mine.readyState !== EventSource.CLOSED || source !== mine) return; // the browser reconnects by itself
    source = null;
    reconnect();
  });
}

// The conversation was deleted: the page says so, offers links, and makes no more requests. Unsent text is not lost.
function gone() {
  over = true;
  source?.close();
  source = null;
  document.body.classList.remove("away");
  const words = document.getElementById("gone")?.content.firstElementChild.cloneNode(true);
  if (!words) {
    toast("This conversation was deleted. The page shows its last state.", true);
    return;
  }
  const text = form ? written() : "";
  if (text.trim()) {
    leave("draft", text);
    draft.drop();
    words.querySelector(".unsent").hidden = false;
  }
  conversation.querySelectorAll(".head .menu, .log form, .log .tools, #hello, #live").forEach((e) => e.remove());
  conversation.querySelectorAll(".log .state.running").forEach((e) => { delete e.dataset.since; e.textContent = "stopped"; });
  if (form) form.replaceWith(words);
  else conversation.append(words);
  document.title = "Gone · Chorus";
  renewFrame();
  words.scrollIntoView({ block: "nearest" });
}

// The browser gave up reconnecting: find out whether we are signed out or the session is gone.
async function reconnect() {
  try {
    const page = await fetch(`/s/${encodeURIComponent(id)}`, { method: "HEAD" });
    if (page.status === 404) return gone();
    if (page.redirected || page.status === 401) {
      if (form && written()) toast("You are signed out. Sign in in another tab; your text is kept.", true);
      else location.reload();
      return;
    }
  } catch {
    // the server is not back yet
  }
  setTimeout(listen, 2000);
}

// Browsers limit the connections to one server: a hidden page keeps its stream only while the
// agent works or has work waiting, and catches up when it is shown again.
function pause() {
  if (status !== "idle" || queue || !source) return;
  source.close();
  source = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? pause() : listen()));

let completion = null, attached = null, draft = null;
const answers = keeper(log, id, conversation.dataset.reader ?? "");

// A command is answered in the page. If it needs confirmation, its answer has a form for that.
async function command(line) {
  const body = new URLSearchParams({ message: line });
  const done = await post(form.dataset.commands, body);
  if (!done) return false;
  if (done.text) {
    const made = element(done.text);
    log.insertBefore(made, document.getElementById("live"));
    document.getElementById("hello")?.remove();
    reachable(made);
    answers.add(made);
  }
  toEnd();
  return true;
}

document.addEventListener("submit", async (event) => {
  const asked = event.target;
  if (!asked.matches("form.confirm")) return;
  event.preventDefault();
  asked.querySelector("button").disabled = true;
  const answer = asked.closest("[data-answer]");
  if (await command(asked.elements.message.value)) {
    asked.remove();
    answers.changed(answer);
  } else asked.querySelector("button").disabled = false;
});

// Messages that were sent from the form and have not reached the server, in order.
const unsent = [];

// written returns them with what the field contains.
const written = () => [...unsent.map((m) => m.text), form.elements.message.value].filter((text) => text).join("\n");

// The last message that returned to the form.
let returned = {};
const content = ({ text, files }) => JSON.stringify([text, ...files.map((f) => [f.name, f.size, f.lastModified])]);

async function send(event) {
  const area = form.elements.message;
  if (event.submitter?.id === "stop") {
    event.preventDefault();
    await post(event.submitter.formAction, new URLSearchParams());
    return;
  }
  event.preventDefault();
  const files = form.elements.files;
  if (!area.value.trim() && !files.files.length) return;
  const body = new FormData(form);
  if (document.getElementById("steer-mode").hidden) body.delete("mode");
  for (const name of ["model", "permissions", "work"]) body.delete(name); // these took effect when they were chosen
  const message = { text: area.value, files: [...files.files] };
  // Sending twice has no effect: if the server has it, but its response was lost, the same message is recognised.
  body.set("key", returned.content === content(message) ? returned.key : (crypto.randomUUID?.() ?? String(Math.random())));
  returned = {}; // the same words said again later are another message
  unsent.push(message);
  area.value = "";
  attached.clear();
  grow(area);
  // At once and not after the response: by then the reader may have moved the focus elsewhere.
  area.focus();
  toEnd();
  completion?.close();
  await inTurn(() => deliver(message, body));
}

// deliver sends a message. If it fails, it returns to the form, with those that were to follow it.
async function deliver(message, body) {
  if (!unsent.includes(message)) return; // returned to the form with one before it
  const area = form.elements.message;
  const done = isCommand(message.text) && !message.files.length ? await command(message.text) : await post(form.action, body);
  if (done) {
    unsent.shift();
    if (location.search.startsWith("?edit=")) history.replaceState(null, "", location.pathname); // the edited message is sent, so a reload must not restore it
  } else {
    returned = { content: content(message), key: body.get("key") };
    area.value = written();
    attached.add(unsent.splice(0).flatMap((m) => m.files));
    grow(area);
  }
  draft.keep(); // keep only what is not sent
}

// Choices below the message take effect at once, not only with the next message.
function choices() {
  form.querySelectorAll("select[data-change]").forEach((select) => select.addEventListener("change", async () => {
    if (!select.value) return;
    const chosen = select.selectedOptions[0];
    const body = new URLSearchParams({ [select.name]: select.value });
    const done = await inTurn(() => post(select.dataset.change, body));
    if (!done) {
      select.selectedIndex = 0;
      return;
    }
    toast(done.text);
    // The first option is the current value: it sends nothing with the next message.
    const first = select.options[0], was = first.textContent;
    first.textContent = chosen.value === "off" ? "no mode" : chosen.value;
    if (select.name !== "work") {
      chosen.value = was;
      chosen.textContent = was;
    }
    select.selectedIndex = 0;
  }));
}

// Another agent answers in another conversation: the text moves along.
function otherAgent() {
  const select = form.querySelector("select[data-new]");
  select?.addEventListener("change", () => {
    const agent = select.value;
    select.selectedIndex = 0; // somebody who comes back sees the current value
    leave("draft", form.elements.message.value);
    form.elements.message.value = "";
    draft.keep(); // a message that is still being sent belongs here
    location.href = select.dataset.new + encodeURIComponent(agent);
  });
}

// A link from a search leads to the match: to the page that has it, or to the row that contains it, such as the output of a
  // tool.
function lead() {
  const seq = Number(/^#e(\d+)$/.exec(location.hash)?.[1]);
  if (!seq || document.getElementById(`e${seq}`)) return;
  const earlier = document.querySelector(".earlier a");
  if (earlier && seq < Number(new URL(earlier.href).searchParams.get("before"))) {
    location.replace(`?before=${seq + 1}${location.hash}`);
    return;
  }
  [...log.querySelectorAll("[id^=e]")].filter((e) => Number(e.id.slice(1)) < seq).at(-1)?.scrollIntoView();
}

// A button leads a reader who is further up back to the end.
function latest() {
  const button = document.getElementById("latest");
  const look = () => (button.hidden = atEnd());
  (own ? log : document).addEventListener("scroll", look, { passive: true });
  button.addEventListener("click", toEnd);
  look();
}

if (form) {
  const area = form.elements.message;
  attached = attachments(form, conversation);
  draft = drafts(area, `${conversation.dataset.reader ?? ""}:${id}`, written);
  choices();
  otherAgent();
  latest();
  if (area.value) grow(area);
  form.addEventListener("submit", send);
  completion = completions(area, document.getElementById("completions"), form.dataset.commands);
  area.addEventListener("keydown", (e) => {
    if (completion.keys(e)) return;
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      form.requestSubmit(document.getElementById("send"));
    }
    if (e.key === "Escape" && !document.getElementById("stop").hidden) form.requestSubmit(document.getElementById("stop"));
  });
  area.addEventListener("input", () => grow(area));
}
addEventListener("offline", () => toast("You are offline. The agent continues; this page catches up later.", true));
if (form && answers.restore(element, !document.querySelector(".earlier a"))) {
  document.getElementById("hello")?.remove();
  log.querySelectorAll("[data-answer]").forEach(reachable);
}
listen();
const typed = form && take("command"); // into the form for a new conversation
if (typed) command(typed).then((done) => { if (!done) form.elements.message.value = typed; });
if (own || !location.hash) toEnd(); // otherwise the browser scrolls to the anchor
else lead();
