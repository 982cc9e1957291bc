// Small parts of the page. Everything becomes nodes and text: no text of users is parsed as HTML.

export function el(name, props, ...children) {
  const node = Object.assign(document.createElement(name), props);
  node.append(...children.filter((c) => c !== ""));
  return node;
}

// api makes one request as the person; it returns the answer, or {}.
export async function api(token, method, path, body) {
  const answer = await fetch("/api/v10" + path, { method, headers: { Authorization: token, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  return answer.status === 204 ? {} : answer.json();
}

// rich renders chat Markdown as Discord does: fences, quotes, small print, headings, lists, and within a line code, bold, italics,
// mentions, times and links.
export function rich(text, named) {
  const out = [];
  let at = 0;
  for (const fence of text.matchAll(/```(?:\w*\n)?([\s\S]*?)```\n?/g)) {
    out.push(...lines(text.slice(at, fence.index), named), el("pre", {}, fence[1]));
    at = fence.index + fence[0].length;
  }
  return [...out, ...lines(text.slice(at), named)];
}

function lines(text, named) {
  const out = [];
  let loose = ""; // ordinary lines stay together: bold may span several
  const settle = () => { out.push(...inline(loose, named)); loose = ""; };
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const [, mark, rest] = /^(> |-# |#{1,3} |[-*] )(.*)/.exec(line) ?? [];
    if (!mark) { loose += line; continue; }
    settle();
    if (mark === "> " && out.at(-1)?.tagName === "BLOCKQUOTE") out.at(-1).append("\n", ...inline(rest, named));
    else out.push(el(mark === "> " ? "blockquote" : "div", { className: { "-": mark === "-# " ? "small" : "item", "*": "item", "#": "heading" }[mark[0]] ?? "" }, ...inline(rest, named)));
  }
  settle();
  return out;
}

function inline(text, named) {
  const out = [];
  const parts = /`([^`]+)`|\*\*([\s\S]+?)\*\*|\*([^*\n]+)\*|<@!?(\d+)>|<t:(\d+)(?::(\w))?>|<#(\d+)>|<@&(\d+)>|(https?:\/\/[^\s<>]+)/g;
  let at = 0;
  for (const hit of text.matchAll(parts)) {
    out.push(text.slice(at, hit.index));
    at = hit.index + hit[0].length;
    const [, code, bold, italic, user, moment, how, channel, role, link] = hit;
    const name = (list, id) => list.find((one) => one.id === id)?.name ?? id;
    if (code) out.push(el("code", {}, code));
    else if (bold) out.push(el("b", {}, ...inline(bold, named)));
    else if (italic) out.push(el("i", {}, italic));
    else if (user) out.push(el("span", { className: "at" }, "@" + (named(user) ?? user)));
    else if (moment) out.push(el("time", { className: "moment" }, told(Number(moment), how)));
    else if (channel) out.push(el("span", { className: "at" }, "#" + name(guild.channels, channel)));
    else if (role) out.push(el("span", { className: "at" }, "@" + name(guild.roles, role)));
    else out.push(el("a", { href: link, rel: "noreferrer noopener", target: "_blank" }, link));
  }
  out.push(text.slice(at));
  return out.filter((part) => part !== "");
}

// told formats a time as Discord does: relative, or as a date and time.
function told(seconds, how) {
  const at = new Date(seconds * 1000);
  if (how === "R") {
    const away = seconds - Date.now() / 1000;
    const [unit, size] = Object.entries({ day: 86400, hour: 3600, minute: 60 }).find(([, size]) => Math.abs(away) >= size) ?? ["second", 1];
    return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.round(away / size), unit);
  }
  const hour = at.toLocaleTimeString("en", { hour: "numeric", minute: "2-digit" });
  if (how === "t" || how === "T") return hour;
  const day = at.toLocaleDateString("en", { dateStyle: "long" });
  return how === "d" || how === "D" ? day : `${day} ${hour}`;
}

// guild provides the values of menus of people, roles and channels; the page fills it.
export const guild = { members: [], roles: [], channels: [] };
const choices = (type) => ({ 5: guild.members, 6: guild.roles, 7: [...guild.members, ...guild.roles], 8: guild.channels })[type]?.map(({ id, name }) => ({ value: id, label: name })) ?? [];

// components draws buttons, menus and the layout of the second version; use is called with the person's choice.
export function components(list, named, use) {
  return list.map((c) => component(c, named, use)).filter(Boolean);
}

function component(c, named, use) {
  switch (c.type) {
    case 1: return el("div", { className: "row" }, ...components(c.components, named, use));
    case 2: return button(c, use);
    case 3: case 5: case 6: case 7: case 8: return menu(c, use);
    case 9: return el("div", { className: "row section" }, el("div", {}, ...components(c.components, named, use)), c.accessory ? component(c.accessory, named, use) ?? "" : "");
    case 10: return el("div", { className: "content" }, ...rich(c.content, named));
    case 14: return el("hr", {});
    case 17: {
      const box = el("div", { className: "container" }, ...components(c.components, named, use));
      if (c.accent_color) box.style.setProperty("--stripe", "#" + c.accent_color.toString(16).padStart(6, "0"));
      return box;
    }
  }
  return null;
}

function button(c, use) {
  const label = `${c.emoji?.name ?? ""} ${c.label ?? ""}`.trim();
  if (c.style === 5) return el("a", { href: /^https?:/.test(c.url) ? c.url : "#", rel: "noreferrer noopener", target: "_blank" }, label);
  const node = el("button", { type: "button", className: "s" + c.style, disabled: !!c.disabled, onclick: () => use({ component_type: 2, custom_id: c.custom_id }) }, label);
  node.dataset.customId = c.custom_id;
  return node;
}

function menu(c, use) {
  const node = el("select", { disabled: !!c.disabled, multiple: (c.max_values ?? 1) > 1, ariaLabel: c.placeholder ?? c.custom_id });
  if (!node.multiple) node.append(el("option", { value: "", disabled: true, selected: true }, c.placeholder ?? "Choose"));
  node.append(...(c.options ?? choices(c.type)).map((o) => el("option", { value: o.value, selected: !!o.default }, o.label)));
  node.onchange = () => use({ component_type: c.type, custom_id: c.custom_id, values: [...node.selectedOptions].map((o) => o.value) });
  node.dataset.customId = c.custom_id;
  return node;
}

// choice is a menu in a form; an optional one can be cleared again.
function choice(c) {
  const node = menu(c, () => {});
  node.required = c.required !== false;
  node.name = c.custom_id;
  if (!node.multiple) Object.assign(node.options[0], { disabled: node.required, textContent: c.placeholder ?? (node.required ? "Choose" : "Nothing") });
  return node;
}

// modal shows a form and sends its values.
export function modal(dialog, d, send) {
  const fields = [];
  const part = (c, label, about) => {
    if (c.type === 1) return c.components.map((child) => part(child)).flat();
    if (c.type === 18) return part(c.component, c.label, c.description);
    if (c.type === 10) return [el("p", {}, c.content)];
    const input = c.type === 3 ? choice(c) : el(c.style === 2 ? "textarea" : "input", { value: c.value ?? "", required: c.required !== false, placeholder: c.placeholder ?? "", name: c.custom_id, rows: 4 });
    fields.push([c, input]);
    return [el("label", {}, label ?? c.label ?? c.custom_id, about ? el("small", {}, about) : "", input)];
  };
  const filled = (c) => {
    const out = { type: c.type };
    if (c.id !== undefined) out.id = c.id;
    if (c.components) out.components = c.components.map(filled);
    if (c.component) out.component = filled(c.component);
    const field = fields.find(([have]) => have === c)?.[1];
    if (field) out.custom_id = c.custom_id;
    if (field && c.type === 3) out.values = [...field.selectedOptions].map((o) => o.value).filter(Boolean);
    else if (field) out.value = field.value;
    return out;
  };
  dialog.querySelector("h3").textContent = d.title;
  dialog.querySelector("div").replaceChildren(...d.components.map((c) => part(c)).flat());
  dialog.onclose = () => { if (dialog.returnValue === "send") send({ custom_id: d.custom_id, components: d.components.map(filled) }); };
  dialog.returnValue = "";
  dialog.showModal();
}
