// The list of conversations: a filter, and a menu for each row. Without scripts, the search page and a conversation's own menu do
// the same.
import { renewFrame } from "./renew.js";
import { post, toast } from "./request.js";

// filter shows the rows whose titles contain all words, and their days.
function filter(words) {
  const wanted = words.trim().toLowerCase().split(/\s+/);
  document.querySelectorAll(".recent .sessions").forEach((list) => {
    const rows = [...list.children];
    rows.forEach((row) => { row.hidden = !wanted.every((w) => row.querySelector(".name").textContent.toLowerCase().includes(w)); });
    list.hidden = rows.every((row) => row.hidden);
    if (list.previousElementSibling?.matches(".day")) list.previousElementSibling.hidden = list.hidden;
  });
}

function filterField() {
  const button = document.getElementById("find"), form = document.getElementById("filter");
  if (!button || !form) return;
  const field = form.elements.q;
  const close = () => {
    field.value = "";
    form.hidden = true;
    filter("");
  };
  button.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in another tab it is the search
    event.preventDefault();
    if (!form.hidden) return close();
    form.hidden = false;
    field.focus();
  });
  field.addEventListener("input", () => filter(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
    button.focus();
  });
  new MutationObserver(() => { if (!form.hidden) filter(field.value); }).observe(document.querySelector(".recent"), { childList: true });
}

const made = (name, props, ...inside) => {
  const e = Object.assign(document.createElement(name), props);
  e.append(...inside);
  return e;
};

// change changes a conversation, and updates the list and, if it is open, its page.
async function change(row, what) {
  const done = await post(`/s/${encodeURIComponent(row.id)}/change`, new URLSearchParams(what));
  if (!done) return false;
  toast(done.text);
  await renewFrame();
  const open = document.querySelector(".talk[data-session]");
  if (open?.dataset.session === row.id) {
    if (what.title) document.getElementById("title").textContent = what.title;
    else if (!document.querySelector("#say textarea")?.value) location.reload(); // its own menu has changed
  }
  return true;
}

function menu(button) {
  const link = button.parentElement.querySelector("a[data-session]");
  const row = { id: link.dataset.session, listing: link.dataset.listing, title: link.querySelector(".name").textContent };
  document.getElementById("row-menu")?.remove();
  const box = made("dialog", { id: "row-menu" });
  box.setAttribute("aria-labelledby", "row-menu-title");
  const title = made("input", { name: "title", value: row.title, required: true, maxLength: 200, autocomplete: "off" });
  const rename = made("form", { className: "rename" }, made("label", {}, "Title ", title), made("button", { className: "button quiet", textContent: "Rename" }));
  const act = (text, listing) => {
    const b = made("button", { type: "button", className: "button quiet", textContent: text });
    b.addEventListener("click", async () => { if (await change(row, { listing })) box.close(); });
    return b;
  };
  const path = `/s/${encodeURIComponent(row.id)}`;
  box.append(made("h2", { id: "row-menu-title", textContent: row.title }), rename,
    made("div", { className: "row" },
      row.listing === "pinned" ? act("Unpin", "normal") : act("Pin", "pinned"), act("Archive", "archived"),
      made("a", { className: "button quiet", href: `${path}/share`, textContent: "Share…" }),
      made("a", { className: "button no", href: `${path}/delete`, textContent: "Delete…" })));
  rename.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await change(row, { title: title.value })) box.close();
  });
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  box.addEventListener("close", () => {
    box.remove();
    document.querySelector(`.sessions a[data-session="${CSS.escape(row.id)}"]`)?.focus();
  });
  document.body.append(box);
  box.showModal();
  title.select();
}

export function sidebar() {
  filterField();
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".row-menu");
    if (button) menu(button);
  });
}
