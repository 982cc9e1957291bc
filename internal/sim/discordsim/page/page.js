// The page: one person's view of the guild. It loads the state of one channel and
// reloads it when the stream reports an event.
import { api, el, guild as offered, modal, components, rich } from "./parts.js";
import { Inspector } from "./inspector.js";
import { Menu, parse, used } from "./menu.js";

const $ = (id) => document.getElementById(id);
const view = { token: "", channel: "", state: null, reply: null, unread: new Set(), shown: new Map(), typing: new Map(), proposed: new Map() };
let stream, waiting, reading = Promise.resolve();

// load loads and draws, one load after the other: a late answer would show an outdated state.
const load = () => (reading = reading.then(read, read));

async function read() {
  clearTimeout(waiting);
  waiting = null;
  const query = new URLSearchParams({ token: view.token, channel: view.channel });
  const answer = await fetch("/sim/page?" + query);
  if (!answer.ok) return notice((await answer.json()).message);
  view.state = await answer.json();
  view.token = view.state.me.token;
  view.channel = view.state.channel;
  draw();
}

// soon combines a burst of events into one load.
const soon = () => { waiting ??= setTimeout(load, 40); };

function listen() {
  stream?.close();
  stream = new EventSource("/sim/events?" + new URLSearchParams({ token: view.token }));
  stream.onmessage = ({ data }) => {
    const { t, d } = JSON.parse(data);
    if (t === "TYPING_START") return typing(d);
    if (t === "INTERACTION_FAILURE") return notice("This interaction failed: the application did not respond.");
    if (t === "INTERACTION_SUCCESS") return notice("");
    if (t === "APPLICATION_COMMAND_AUTOCOMPLETE_RESPONSE") return view.proposed.get(d.nonce)?.(d.choices);
    if (t === "INTERACTION_MODAL_CREATE") return modal($("modal"), d, (data) => interact({ type: 5, application_id: d.application.id, channel_id: d.channel_id, data }));
    if (t === "MESSAGE_CREATE") {
      view.typing.delete(d.author.username);
      if (d.channel_id !== view.channel) view.unread.add(d.channel_id);
      showTyping();
    }
    soon();
  };
}

function typing(d) {
  if (d.channel_id !== view.channel || d.user_id === view.state.me.id) return;
  const name = d.member?.user?.username ?? "Somebody";
  clearTimeout(view.typing.get(name));
  view.typing.set(name, setTimeout(() => { view.typing.delete(name); showTyping(); }, 10000));
  showTyping();
}
const showTyping = () => notice(view.typing.size ? [...view.typing.keys()].join(", ") + " is typing…" : "");
function notice(text) { $("notice").textContent = text ?? ""; }

async function tell(promise) {
  const said = await promise;
  if (said?.message && said.code !== undefined) notice(said.message + (said.errors ? " " + JSON.stringify(said.errors) : ""));
  return said;
}
const ask = (method, path, body) => tell(api(view.token, method, path, body));
const interact = (body) => ask("POST", "/interactions", { guild_id: view.state.guild.id, nonce: String(Date.now()), ...body });

function draw() {
  const { guild, channels, people, members, roles, me } = view.state;
  Object.assign(offered, { channels, members, roles });
  $("guild").textContent = guild.name;
  document.title = guild.name;
  $("person").replaceChildren(...people.map((p) => el("option", { value: p.token, selected: p.token === me.token }, p.name)));
  $("channels").replaceChildren(...channels.map(place));
  $("members").replaceChildren(...members.map((m) => el("li", {}, m.name, m.bot ? el("span", { className: "bot" }, m.online ? "BOT" : "OFFLINE") : "")));
  const here = channels.find((c) => c.id === view.channel);
  view.unread.delete(view.channel);
  $("place").textContent = here ? mark(here) + here.name : "";
  $("topic").textContent = here?.topic ?? "";
  $("remove").hidden = here?.type !== 11 && here?.type !== 12;
  messages();
  inspector.refresh();
}

const mark = (c) => ({ 1: "@ ", 11: "↳ ", 12: "🔒 ", 15: "▤ " })[c.type] ?? "# ";

function place(c) {
  if (c.type === 4) return el("li", { className: "category" }, c.name);
  const button = el("button", { type: "button", onclick: () => go(c.id) }, mark(c) + c.name);
  if (c.id === view.channel) button.setAttribute("aria-current", "page");
  const classes = [c.type === 11 || c.type === 12 ? "thread" : "", view.unread.has(c.id) ? "unread" : ""];
  return el("li", { className: classes.join(" ") }, button);
}

function go(id) {
  view.channel = id;
  view.shown.clear();
  $("messages").replaceChildren();
  answerTo(null);
  load();
}

function messages() {
  const box = $("messages");
  const low = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  const seen = new Set();
  let before = null;
  for (const m of view.state.messages) {
    seen.add(m.id);
    const json = JSON.stringify(m);
    let have = view.shown.get(m.id);
    if (have?.json !== json) {
      const node = message(m);
      have?.node.replaceWith(node);
      have = { json, node };
      view.shown.set(m.id, have);
    }
    const next = before ? before.nextSibling : box.firstChild;
    if (next !== have.node) box.insertBefore(have.node, next);
    before = have.node;
  }
  for (const [id, { node }] of view.shown) if (!seen.has(id)) { node.remove(); view.shown.delete(id); }
  if (low) box.scrollTop = box.scrollHeight;
}

const named = (id) => view.state.members.find((m) => m.id === id)?.name;

// excerpt is the first line of a message, whichever way its words are shown.
function excerpt(m) {
  const words = (list) => list.flatMap((c) => [c.content ?? "", ...words(c.components ?? [])]);
  const line = [m.content, ...words(m.components ?? [])].join("\n").trim().split("\n")[0];
  return rich(line.length > 90 ? line.slice(0, 90) + "…" : line, named);
}

function message(m) {
  const path = `/channels/${m.channel_id}/messages/${m.id}`;
  const mine = m.author.id === view.state.me.id;
  const art = el("article", { id: "m" + m.id });
  art.dataset.author = m.author.username;
  if (m.mentions.some((u) => u.id === view.state.me.id) || m.mention_everyone) art.classList.add("mention");
  if (m.flags & 64) art.classList.add("ephemeral");
  if (m.type === 6) return art.append(el("p", { className: "system" }, m.author.username + " pinned a message.")), art;
  if (m.type === 18) return art.append(el("p", { className: "system" }, m.author.username + " started a thread: " + m.content)), art;
  const first = m.referenced_message;
  if (m.message_reference) art.append(el("div", { className: "reply" }, ...(first ? [`↩ ${first.author.username}: `, ...excerpt(first)] : ["↩ a message that was deleted"])));
  if (m.type === 21) return art;
  if (m.interaction_metadata?.name) art.append(el("div", { className: "reply" }, `${m.interaction_metadata.user.username} used /${m.interaction_metadata.name}`));
  art.append(el("div", { className: "by" }, el("b", {}, m.author.username), m.author.bot ? el("span", { className: "bot" }, "BOT") : "",
    el("time", { dateTime: m.timestamp }, new Date(m.timestamp).toLocaleTimeString()), m.pinned ? el("span", { className: "note" }, "📌") : "", m.edited_timestamp ? el("span", { className: "edited" }, "(edited)") : ""));
  const content = el("div", { className: "content" }, ...rich(m.flags & 128 ? "*is thinking…*" : m.content, named));
  if (content.hasChildNodes()) art.append(content);
  art.append(...m.attachments.map(file), ...m.embeds.map(embed));
  art.append(...components(m.components, named, (data) => interact({ type: 3, application_id: m.application_id ?? m.author.id, channel_id: m.channel_id, message_id: m.id, message_flags: m.flags, data })));
  if (m.thread) art.append(el("div", { className: "row" }, el("button", { type: "button", onclick: () => go(m.thread.id) }, "↳ " + m.thread.name)));
  if (m.reactions?.length) art.append(el("div", { className: "reactions" }, ...m.reactions.map((r) => el("button", {
    type: "button", className: r.me ? "me" : "", onclick: () => ask(r.me ? "DELETE" : "PUT", `${path}/reactions/${emoji(r.emoji)}/@me`) }, `${r.emoji.name} ${r.count}`))));
  if (m.flags & 64) art.append(el("div", { className: "note" }, "Only you can see this"), el("div", { className: "tools" }, el("button", { type: "button", title: "Inspect what the bot sent", onclick: () => inspector.about(m) }, "{ }")));
  else art.append(tools(m, path, mine));
  return art;
}

const emoji = (e) => encodeURIComponent(e.id ? `${e.name}:${e.id}` : e.name);

function tools(m, path, mine) {
  const tool = (label, title, onclick) => el("button", { type: "button", title, onclick }, label);
  const list = ["👍", "👀", "✅", "❌"].map((e) => tool(e, "React with " + e, () => ask("PUT", `${path}/reactions/${encodeURIComponent(e)}/@me`)));
  if (m.author.bot) list.push(tool("{ }", "Inspect what the bot sent", () => inspector.about(m)));
  list.push(tool("Reply", "Reply", () => answerTo(m)));
  list.push(tool("Thread", "Open a thread", async () => {
    const name = prompt("Name of the thread");
    if (name) { const t = await ask("POST", path + "/threads", { name }); if (t.id) go(t.id); }
  }));
  for (const bot of view.state.commands.filter((c) => c.type === 3)) list.push(tool(bot.name, "Use " + bot.name, () => interact({ type: 2, application_id: bot.application_id, channel_id: m.channel_id, data: { id: bot.id, name: bot.name, type: 3, target_id: m.id } })));
  if (mine) list.push(tool("Edit", "Edit", () => { const text = prompt("Edit", m.content); if (text) ask("PATCH", path, { content: text }); }));
  if (mine) list.push(tool("Delete", "Delete", () => ask("DELETE", path)));
  return el("div", { className: "tools" }, ...list);
}

function file(a) {
  if (a.content_type?.startsWith("image/")) return el("img", { src: new URL(a.url).pathname, alt: a.description || a.filename });
  return el("div", {}, el("a", { href: new URL(a.url).pathname, download: a.filename }, `📎 ${a.filename} (${a.size} bytes)`));
}

function embed(e) {
  const box = el("div", { className: "embed" });
  if (e.color) box.style.setProperty("--stripe", "#" + e.color.toString(16).padStart(6, "0"));
  if (e.author) box.append(el("div", { className: "note" }, e.author.name));
  if (e.title) box.append(el("b", {}, e.title));
  if (e.description) box.append(el("div", { className: "content" }, ...rich(e.description, named)));
  if (e.fields) box.append(el("div", { className: "fields" }, ...e.fields.map((f) => el("div", {}, el("b", {}, f.name), el("div", { className: "content" }, ...rich(f.value, named))))));
  if (e.footer) box.append(el("div", { className: "note" }, e.footer.text));
  return box;
}

function answerTo(m) {
  view.reply = m;
  $("replying").hidden = !m;
  $("replying").firstElementChild.textContent = m ? `Replying to ${m.author.username}` : "";
  $("text").focus();
}

// command gives the command of a line.
function command(text) {
  const at = parse(text + " ", view.state.commands);
  if (!at.command) return notice("No bot here has a command " + text.split(/\s/)[0]);
  const lacks = at.defined.filter((o) => o.required && !at.given[o.name]).map((o) => o.name);
  if (lacks.length) { $("text").value = text; return notice("It needs " + lacks.join(", ") + "."); }
  interact({ type: 2, application_id: at.command.application_id, channel_id: view.channel, data: used(at, view.state.members) });
}

// complete asks a bot for completions of the focused option.
function complete(known, data) {
  const nonce = "c" + Math.random().toString(36).slice(2);
  return new Promise((resolve) => {
    const end = (list) => { view.proposed.delete(nonce); clearTimeout(late); resolve(list); };
    const late = setTimeout(end, 3000, []);
    view.proposed.set(nonce, end);
    interact({ type: 4, application_id: known.application_id, channel_id: view.channel, data, nonce });
  });
}

async function send() {
  const text = $("text").value;
  if (!text.trim()) return;
  $("text").value = "";
  menu.close();
  notice("");
  if (text.startsWith("/")) return command(text);
  const here = view.state.channels.find((c) => c.id === view.channel);
  const people = text.replace(/@([\w-]+)/g, (all, name) => { const m = view.state.members.find((m) => m.name === name); return m ? `<@${m.id}>` : all; });
  if (here?.type === 15) return ask("POST", `/channels/${view.channel}/threads`, { name: text.slice(0, 80), message: { content: people } });
  const body = { content: people };
  if (view.reply) body.message_reference = { message_id: view.reply.id };
  answerTo(null);
  ask("POST", `/channels/${view.channel}/messages`, body);
}

$("composer").onsubmit = (e) => { e.preventDefault(); send(); };
const inspector = new Inspector($("inspector"));
const menu = new Menu($("menu"), $("text"), { commands: () => view.state.commands, members: () => view.state.members, channels: () => view.state.channels, named, complete });
$("inspect").onclick = () => ($("inspector").hidden ? inspector.about(null) : inspector.close());
$("text").onkeydown = (e) => { if (menu.key(e)) return e.preventDefault(); if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); } };
$("remove").onclick = async () => {
  if (!confirm("Delete this thread with everything in it?")) return;
  const said = await ask("DELETE", "/channels/" + view.channel);
  if (said.id) go(said.parent_id ?? "");
};
$("replying").querySelector("button").onclick = () => answerTo(null);
$("person").onchange = async (e) => { view.token = e.target.value; view.channel = ""; view.shown.clear(); $("messages").replaceChildren(); await load(); listen(); };
await load();
listen();
