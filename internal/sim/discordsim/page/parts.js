// Small parts of the page. Everything becomes nodes and text: nothing that anybody wrote is read as HTML.

export function el(name, props, ...children) {
  const node = Object.assign(document.createElement(name), props);
  node.append(...children.filter((c) => c !== ""));
  return node;
}

// api is one request as the person; it returns what was said, or {}.
export async function api(token, method, path, body) {
  const answer = await fetch("/api/v10" + path, { method, headers: { Authorization: token, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  return answer.status === 204 ? {} : answer.json();
}

// rich reads the little of Markdown that chat uses: fences, code, bold, italics, mentions, links.
export function rich(text, named) {
  const out = [];
  const parts = /```(?:\w*\n)?([\s\S]*?)```|`([^`]+)`|\*\*([\s\S]+?)\*\*|\*([^*\n]+)\*|<@!?(\d+)>|<[@#]&?(\d+)>|(https?:\/\/[^\s<>]+)/g;
  let at = 0;
  for (const hit of text.matchAll(parts)) {
    out.push(text.slice(at, hit.index));
    at = hit.index + hit[0].length;
    const [, fence, code, bold, italic, user, other, link] = hit;
    if (fence !== undefined) out.push(el("pre", {}, fence));
    else if (code) out.push(el("code", {}, code));
    else if (bold) out.push(el("b", {}, ...rich(bold, named)));
    else if (italic) out.push(el("i", {}, italic));
    else if (user) out.push(el("span", { className: "at" }, "@" + (named(user) ?? user)));
    else if (other) out.push(el("span", { className: "at" }, hit[0]));
    else out.push(el("a", { href: link, rel: "noreferrer noopener", target: "_blank" }, link));
  }
  out.push(text.slice(at));
  return out.filter((part) => part !== "");
}

// guild is what menus of people, roles and channels offer; the page fills it.
export const guild = { members: [], roles: [], channels: [] };
const choices = (type) => ({ 5: guild.members, 6: guild.roles, 7: [...guild.members, ...guild.roles], 8: guild.channels })[type]?.map(({ id, name }) => ({ value: id, label: name })) ?? [];

// components draws buttons, menus and the layout of the second version; use is called with what a person chose.
export function components(list, named, use) {
  return list.map((c) => component(c, named, use)).filter(Boolean);
}

function component(c, named, use) {
  switch (c.type) {
    case 1: return el("div", { className: "row" }, ...components(c.components, named, use));
    case 2: return button(c, use);
    case 3: case 5: case 6: case 7: case 8: return menu(c, use);
    case 9: return el("div", { className: "row" }, el("div", {}, ...components(c.components, named, use)), c.accessory ? component(c.accessory, named, use) ?? "" : "");
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

// modal shows a form and sends what was written.
export function modal(dialog, d, send) {
  const fields = [];
  const part = (c, label) => {
    if (c.type === 1) return c.components.map((child) => part(child)).flat();
    if (c.type === 18) return part(c.component, c.label);
    if (c.type === 10) return [el("p", {}, c.content)];
    const input = c.type === 3 ? menu(c, () => {}) : el(c.style === 2 ? "textarea" : "input", { value: c.value ?? "", required: c.required !== false, placeholder: c.placeholder ?? "", name: c.custom_id });
    fields.push([c, input]);
    return [el("label", {}, label ?? c.label ?? c.custom_id, input)];
  };
  const filled = (c) => {
    const out = { type: c.type };
    if (c.id !== undefined) out.id = c.id;
    if (c.components) out.components = c.components.map(filled);
    if (c.component) out.component = filled(c.component);
    const field = fields.find(([have]) => have === c)?.[1];
    if (field) out.custom_id = c.custom_id;
    if (field && c.type === 3) out.values = [...field.selectedOptions].map((o) => o.value);
    else if (field) out.value = field.value;
    return out;
  };
  dialog.querySelector("h3").textContent = d.title;
  dialog.querySelector("div").replaceChildren(...d.components.map((c) => part(c)).flat());
  dialog.onclose = () => { if (dialog.returnValue === "send") send({ custom_id: d.custom_id, components: d.components.map(filled) }); };
  dialog.returnValue = "";
  dialog.showModal();
}
