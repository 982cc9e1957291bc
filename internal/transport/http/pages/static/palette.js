// Keys for all pages: Ctrl+K goes anywhere, ? lists the shortcuts.

const keys = [
  ["Ctrl+K", "go to a page or a conversation"],
  ["/", "write a message, or search"],
  ["n", "new conversation"],
  ["j, k", "next and previous conversation"],
  ["?", "these shortcuts"],
  ["Enter", "send; Shift+Enter adds a line"],
  ["Esc", "stop the agent, or close what is open"],
];

// dialogOf creates a dialog once.
function dialogOf(id, label) {
  const made = Object.assign(document.createElement("dialog"), { id, className: "palette" });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", (e) => { if (e.target === made) made.close(); });
  document.body.append(made);
  return made;
}

function shortcuts() {
  const box = document.getElementById("shortcuts") ?? dialogOf("shortcuts", "Shortcuts");
  const list = document.createElement("dl");
  for (const [key, what] of keys) {
    list.append(Object.assign(document.createElement("dt"), { textContent: key }), Object.assign(document.createElement("dd"), { textContent: what }));
  }
  box.replaceChildren(Object.assign(document.createElement("h2"), { textContent: "Shortcuts" }), list);
  box.showModal();
}

// places are the links around the page: pages and conversations.
function places() {
  const links = [...document.querySelectorAll("header.bar nav a, .sessions a, .sidetop > a.button")];
  return links.map((a) => ({ text: (a.querySelector(".name") ?? a.firstChild).textContent.trim(), about: a.closest(".sessions") ? "conversation" : "page", href: a.href }));
}

function goAnywhere() {
  const box = document.getElementById("go") ?? dialogOf("go", "Go to");
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "Go to a page or a conversation, or search", autocomplete: "off" });
  field.setAttribute("aria-label", "Go to");
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-expanded", "true");
  field.setAttribute("aria-controls", "go-list");
  const list = Object.assign(document.createElement("ul"), { id: "go-list" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Places");
  const all = places();
  let chosen = 0, found = [];
  const draw = () => {
    const was = chosen ? found[chosen]?.href : ""; // the first one is selected until somebody selects another
    const words = field.value.trim().toLowerCase();
    found = all.filter((p) => words.split(/\s+/).every((w) => p.text.toLowerCase().includes(w))).slice(0, 12);
    if (words) found.push({ text: `Search all conversations for “${field.value.trim()}”`, about: "", href: `/search?q=${encodeURIComponent(field.value.trim())}` });
    chosen = Math.max(found.findIndex((p) => p.href === was), 0);
    list.replaceChildren(...found.map((p, i) => {
      const item = document.createElement("li");
      item.id = `go-${i}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(i === chosen));
      item.append(p.text, " ", Object.assign(document.createElement("small"), { textContent: p.about }));
      item.addEventListener("click", () => (location.href = p.href));
      return item;
    }));
    field.setAttribute("aria-activedescendant", found.length ? `go-${chosen}` : "");
  };
  // Conversations that are not in the sidebar are searched by title.
  let asked = 0, timer = null;
  const ask = async () => {
    const mine = ++asked, words = field.value.trim();
    try {
      const answer = await fetch(`/api/sessions?${new URLSearchParams({ search: words, listing: "all", limit: "8" })}`);
      const list = answer.ok ? (await answer.json()).items : [];
      if (mine !== asked) return; // more was typed meanwhile
      for (const s of list) {
        const href = new URL(`/s/${encodeURIComponent(s.id)}`, location).href;
        if (!all.some((p) => p.href === href)) all.push({ text: s.title, about: "conversation", href });
      }
      draw();
    } catch {
      // the server cannot be reached: only this page's places are listed
    }
  };
  field.addEventListener("input", () => {
    chosen = 0;
    draw();
    clearTimeout(timer);
    if (field.value.trim().length > 1) timer = setTimeout(ask, 120);
  });
  field.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      chosen = (chosen + (e.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(found.length, 1);
      draw();
    } else if (e.key === "Enter" && found[chosen]) location.href = found[chosen].href;
    else if (e.key === "Escape") box.close(); // and does not only empty the field
    else return;
    e.preventDefault();
  });
  box.replaceChildren(field, list);
  box.showModal();
  draw();
  field.focus();
}

// neighbour goes to the next or previous conversation in the sidebar.
function neighbour(step) {
  const links = [...document.querySelectorAll(".sessions a")];
  const at = links.findIndex((a) => a.hasAttribute("aria-current"));
  const next = links[at < 0 ? 0 : at + step];
  if (next) location.href = next.href;
}

function key(e) {
  if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") {
    e.preventDefault();
    goAnywhere();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog, [contenteditable]")) return;
  const write = document.querySelector("#say textarea, textarea[autofocus]") ?? document.querySelector("form.search input");
  if (e.key === "?") shortcuts();
  else if (e.key === "/" && write) write.focus();
  else if (e.key === "n") location.href = "/new";
  else if (e.key === "j") neighbour(1);
  else if (e.key === "k") neighbour(-1);
  else return;
  e.preventDefault();
}

export function palette() {
  document.addEventListener("keydown", key);
}
