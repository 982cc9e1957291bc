// A conversation that moves: fragments from the server are put in their place, and
// words are sent without leaving the page. The server is the one who knows; this keeps nothing.
import { post, toast } from "./page.js";

const talk = document.querySelector(".talk");
const log = document.getElementById("log");
const form = document.getElementById("say");
const id = talk.dataset.session;

// Whoever reads further up is left there; whoever is at the end stays at the end.
const scroller = document.scrollingElement;
const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 120;
const toEnd = () => scroller.scrollTo({ top: scroller.scrollHeight });

function element(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // made by the server from its own elements; text in it is escaped there
  return holder.content.firstElementChild;
}

function put({ id, html, replaces, in: inside }) {
  const stay = atEnd();
  const old = document.getElementById(id) ?? (replaces && document.getElementById(replaces));
  if (!html) {
    old?.remove();
  } else if (old) {
    const made = element(html);
    if (old.open) made.open = true;
    old.replaceWith(made);
  } else {
    (inside ? document.getElementById(inside) : log)?.append(element(html));
  }
  if (replaces && id !== replaces) document.getElementById(replaces)?.remove();
  if (id.startsWith("answer-")) document.getElementById(id)?.closest(".ask")?.querySelector("form.verdict")?.remove();
  document.getElementById("hello")?.remove();
  if (stay) toEnd();
}

const words = { idle: "ready", running: "working", waiting: "waiting for an answer" };

function show(now) {
  const text = (name, value) => { const e = document.getElementById(name); if (e && e.textContent !== value) e.textContent = value; };
  text("tokens", now.tokens);
  text("cost", now.cost);
  text("title", now.title);
  if (now.model) text("model", now.model);
  text("status-text", words[now.status] ?? now.status);
  text("queue", now.queue ? ` · ${now.queue} waiting` : "");
  document.title = `${now.status === "running" ? "… " : now.status === "waiting" ? "? " : ""}${now.title} · Chorus`;
  document.querySelectorAll(`#status .dot, [data-session="${CSS.escape(id)}"] .dot`).forEach((d) => (d.className = `dot ${now.status}`));
  document.getElementById("status")?.setAttribute("data-status", now.status);
  const busy = now.status !== "idle";
  const stop = document.getElementById("stop");
  if (stop) stop.hidden = !busy;
  const steer = document.getElementById("steer-mode");
  if (steer) steer.hidden = !busy;
}

let source;
function listen() {
  source = new EventSource(`/s/${encodeURIComponent(id)}/live?after=${talk.dataset.after}`);
  source.addEventListener("put", (e) => put(JSON.parse(e.data)));
  source.addEventListener("state", (e) => show(JSON.parse(e.data)));
  source.addEventListener("seen", (e) => (talk.dataset.after = e.data));
  source.addEventListener("open", () => document.body.classList.remove("away"));
  source.addEventListener("error", () => {
    document.body.classList.add("away");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000); // the browser gave up; we do not
  });
}

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
  body.set("key", crypto.randomUUID?.() ?? String(Math.random())); // sent twice, taken once
  const text = area.value;
  area.value = "";
  const done = await post(form.action, body);
  if (!done) {
    area.value = text + area.value; // what was written is not lost
  } else {
    files.value = "";
    document.getElementById("chosen").replaceChildren();
    toEnd();
  }
  area.focus();
}

if (form) {
  const area = form.elements.message;
  form.addEventListener("submit", send);
  area.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      form.requestSubmit(document.getElementById("send"));
    }
    if (e.key === "Escape" && !document.getElementById("stop").hidden) form.requestSubmit(document.getElementById("stop"));
  });
  const grow = () => { area.style.height = "auto"; area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight / 2)}px`; };
  area.addEventListener("input", grow);
  form.elements.files.addEventListener("change", () => {
    const list = [...form.elements.files.files].map((f) => Object.assign(document.createElement("li"), { textContent: `${f.name} (${Math.ceil(f.size / 1024)} KB)` }));
    document.getElementById("chosen").replaceChildren(...list);
  });
  area.addEventListener("paste", (e) => {
    if (!e.clipboardData?.files.length) return;
    const kept = new DataTransfer();
    for (const f of [...form.elements.files.files, ...e.clipboardData.files]) kept.items.add(f);
    form.elements.files.files = kept.files;
    form.elements.files.dispatchEvent(new Event("change"));
  });
}
addEventListener("offline", () => toast("You are offline. The agent goes on; this page catches up later.", true));
listen();
toEnd();
