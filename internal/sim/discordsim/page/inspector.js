// The inspector: requests of bots to Discord with their answers, about one message or all.
import { el } from "./parts.js";

export class Inspector {
  constructor(box) {
    this.box = box;
    this.message = null;
    box.querySelector("button").onclick = () => this.close();
  }

  close() { this.box.hidden = true; }

  // about shows one message with its requests; null: all requests.
  async about(message) {
    this.message = message;
    this.box.hidden = false;
    await this.refresh();
    this.box.querySelector("button").focus();
  }

  async refresh() {
    if (this.box.hidden) return;
    const answer = await fetch("/sim/calls" + (this.message ? "?message=" + this.message.id : ""));
    const { calls } = await answer.json();
    const open = new Set([...this.box.querySelectorAll("details[open]")].map((d) => d.dataset.call));
    this.box.querySelector("h3").textContent = this.message ? "Requests about this message" : "Requests of bots";
    const parts = calls.toReversed().map((c, i) => call(c, open.size ? open.has(String(c.number)) : i === 0 && !!this.message));
    if (this.message) parts.push(el("h4", {}, "The message as Discord keeps it"), json(this.message));
    if (!parts.length) parts.push(el("p", { className: "note" }, "No bot has sent anything yet."));
    this.box.querySelector("div").replaceChildren(...parts);
  }
}

function call(c, open) {
  const good = c.status >= 200 && c.status < 300;
  const node = el("details", { open }, el("summary", {}, el("code", { className: good ? "good" : "bad" }, String(c.status || "no answer")), " ", el("b", {}, c.method), " ", el("code", {}, c.path),
    el("small", {}, ` ${c.bot}, ${new Date(c.at).toLocaleTimeString()}`)));
  node.dataset.call = c.number;
  node.append(el("h4", {}, "Request"), c.request === undefined ? el("p", { className: "note" }, "without a body") : json(c.request));
  if (c.files) node.append(el("p", { className: "note" }, "Files: " + c.files.join(", ")));
  node.append(el("h4", {}, "Response"), c.response === undefined ? el("p", { className: "note" }, "without a body") : json(c.response));
  return node;
}

const json = (value) => el("pre", { tabIndex: 0 }, JSON.stringify(value, null, 2));
