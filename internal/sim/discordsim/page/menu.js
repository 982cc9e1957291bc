// The menu above the composer: commands, their options, and the possible values of each.
import { el } from "./parts.js";

const groups = [1, 2]; // options that are commands themselves

// parse splits a line into the command as far as it is known, its options, and the part being typed.
export function parse(line, commands) {
  const words = [...line.slice(1).matchAll(/\S+/g)];
  const at = { path: [], command: null, defined: [], given: {}, typing: "", from: 1, option: null, bots: [] };
  const first = words[0]?.[0] ?? "";
  at.bots = commands.filter((c) => c.type === 1 && c.name === first);
  if (!at.bots.length || !/\s/.test(line)) return { ...at, typing: line.slice(1) };
  at.command = at.bots[0];
  at.defined = at.command.options ?? [];
  let used = 1;
  while (at.defined.some((o) => groups.includes(o.type))) {
    const word = words[used]?.[0];
    const sub = at.defined.find((o) => o.name === word);
    const ended = words[used] && words[used].index + 1 + word.length < line.length;
    if (!sub || !ended) return { ...at, typing: word ?? "", from: words[used] ? words[used].index + 1 : line.length };
    at.path.push(sub);
    at.defined = sub.options ?? [];
    used++;
  }
  // Values may contain spaces: one continues until the command's next option.
  const begin = words[used] ? words[used].index + 1 : line.length;
  const names = at.defined.map((o) => o.name).join("|");
  const parts = names ? [...line.slice(begin).matchAll(new RegExp(`(?:^|\\s)(${names}):`, "g"))] : [];
  parts.forEach((part, i) => {
    const from = begin + part.index + part[0].length;
    const to = parts[i + 1] ? begin + parts[i + 1].index : line.length;
    at.given[part[1]] = line.slice(from, to).trim();
    if (i === parts.length - 1) Object.assign(at, { option: at.defined.find((o) => o.name === part[1]), typing: line.slice(from), from });
  });
  if (!parts.length) Object.assign(at, { typing: line.slice(begin), from: begin });
  return at;
}

// used is the command of a line in the form of an interaction.
export function used(at, members) {
  const value = (o, text) => {
    if (o.type === 4 || o.type === 10) return Number(text);
    if (o.type === 5) return text.toLowerCase() === "true";
    if (o.type === 6) return members.find((m) => "@" + m.name === text)?.id ?? text;
    return text;
  };
  let options = at.defined.filter((o) => o.name in at.given && !groups.includes(o.type)).map((o) => ({ name: o.name, type: o.type, value: value(o, at.given[o.name]) }));
  for (const sub of at.path.toReversed()) options = [{ name: sub.name, type: sub.type, options }];
  return { id: at.command.id, name: at.command.name, type: 1, options };
}

// Menu suggests completions while somebody types. page provides commands, members and channels, and asks bots.
export class Menu {
  constructor(box, input, page) {
    Object.assign(this, { box, input, page, entries: [], chosen: 0, waiting: null, last: "" });
    input.setAttribute("aria-controls", box.id);
    input.setAttribute("aria-autocomplete", "list");
    box.setAttribute("role", "listbox");
    input.addEventListener("input", () => this.look());
    input.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== input) this.close(); }, 150));
  }

  get open() { return !this.box.hidden && this.entries.length > 0; }

  close() { this.box.hidden = true; this.entries = []; this.input.removeAttribute("aria-activedescendant"); }

  // look suggests what matches the input.
  look() {
    const line = this.input.value;
    if (!line.startsWith("/") || line.includes("\n")) return this.close();
    const at = parse(line, this.page.commands());
    const starts = (name) => name.toLowerCase().startsWith(at.typing.toLowerCase());
    if (!at.command) return this.show(this.commandEntries(starts), "No bot here has such a command.");
    if (at.defined.some((o) => groups.includes(o.type))) return this.show(at.defined.filter((o) => starts(o.name)).map((o) => this.entry(o.name, o.description, line.slice(0, at.from) + o.name + " ")), "There is no such command.");
    if (at.option && this.proposes(at, line)) return;
    const left = at.defined.filter((o) => !(o.name in at.given));
    const begun = at.option ? "" : at.typing;
    const before = at.option ? line.trimEnd() + " " : line.slice(0, at.from);
    this.show(left.filter((o) => o.name.startsWith(begun)).map((o) => this.entry(o.name + (o.required ? " *" : ""), o.description, before + o.name + ":")), "", at);
  }

  commandEntries(starts) {
    const list = [];
    for (const c of this.page.commands().filter((c) => c.type === 1 && starts(c.name)).toSorted((a, b) => a.name.localeCompare(b.name))) {
      list.push(this.entry("/" + c.name, c.description, "/" + c.name + " ", this.page.named(c.application_id)));
    }
    return list;
  }

  // proposes lists the possible values of the option being typed; false: any value is possible.
  proposes(at, line) {
    const o = at.option, before = line.slice(0, at.from);
    const fixed = o.choices ?? ({ 5: [{ name: "True", value: "true" }, { name: "False", value: "false" }], 6: this.page.members().map((m) => ({ name: "@" + m.name, value: "@" + m.name })),
      7: this.page.channels().map((c) => ({ name: "#" + c.name, value: c.id })) })[o.type];
    const entries = (list) => list.map((c) => this.entry(String(c.name), c.value !== c.name ? String(c.value) : "", before + c.value + " "));
    if (fixed) {
      const typed = at.typing.trim().toLowerCase();
      const list = fixed.filter((c) => String(c.name).toLowerCase().includes(typed));
      if (list.length === 1 && String(list[0].value).toLowerCase() === typed) return false;
      this.show(entries(list), "No such choice.", at);
      return true;
    }
    if (!o.autocomplete || line === this.settled && at.typing.trim()) return false;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(async () => {
      const data = used(at, this.page.members());
      let inner = data.options;
      while (inner.length && groups.includes(inner[0].type)) inner = inner[0].options;
      inner.find((one) => one.name === o.name).focused = true;
      const list = await this.page.complete(at.command, data);
      if (this.input.value === line) this.show(entries(list), "The bot proposes nothing.", at);
    }, 120);
    this.show([], "…", at);
    return true;
  }

  entry(label, about, line, from) { return { label, about, line, from }; }

  show(entries, none, at) {
    this.entries = entries;
    this.chosen = 0;
    const rows = entries.map((e, i) => {
      const row = el("li", { id: "menu-" + i, role: "option", onmousedown: (ev) => { ev.preventDefault(); this.choose(i); } }, el("b", {}, e.label), el("span", {}, e.about ?? ""), e.from ? el("small", {}, e.from) : "");
      row.setAttribute("aria-selected", i === 0);
      return row;
    });
    const head = at?.command ? [el("li", { className: "head" }, el("b", {}, ["/" + at.command.name, ...at.path.map((p) => p.name)].join(" ")), el("span", {}, (at.path.at(-1) ?? at.command).description))] : [];
    if (!rows.length && none) rows.push(el("li", { className: "head" }, none));
    this.box.replaceChildren(...head, ...rows);
    this.box.hidden = !this.box.children.length;
    this.mark();
  }

  mark() {
    for (const [i, row] of [...this.box.querySelectorAll("[role=option]")].entries()) {
      row.setAttribute("aria-selected", i === this.chosen);
      if (i === this.chosen) { row.scrollIntoView({ block: "nearest" }); this.input.setAttribute("aria-activedescendant", row.id); }
    }
  }

  choose(i) {
    const one = this.entries[i];
    if (!one) return;
    this.input.value = one.line;
    this.settled = one.line;
    this.input.focus();
    this.look();
  }

  // key handles a key of the input; true: it was for the menu.
  key(e) {
    if (!this.open) return false;
    const n = this.entries.length;
    switch (e.key) {
      case "ArrowDown": this.chosen = (this.chosen + 1) % n; break;
      case "ArrowUp": this.chosen = (this.chosen + n - 1) % n; break;
      case "Escape": this.close(); return true;
      case "Tab": this.choose(this.chosen); return true;
      case "Enter": {
        const at = parse(this.input.value + " ", this.page.commands()); // the input may already be a complete command
        const whole = at.command && !at.defined.some((o) => groups.includes(o.type) || o.required && !at.given[o.name]);
        if (whole && (!at.option || at.typing.trim() !== "")) { this.close(); return false; }
        this.choose(this.chosen);
        return true;
      }
      default: return false;
    }
    this.mark();
    return true;
  }
}
