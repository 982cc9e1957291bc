// Parts of a page that change on the server are renewed in place, without losing what somebody does in them.
import { reachable } from "./copy.js";

// writing reports whether a field in a part of the page is focused and has text, or has text that was not sent.
function writing(part) {
  const field = document.activeElement?.closest?.("input, textarea, select");
  if (field && part.contains(field) && field.value) return true;
  const typed = (f) => f.value !== f.defaultValue;
  const chosen = (s) => [...s.options].some((o) => o.defaultSelected) && !s.selectedOptions[0]?.defaultSelected;
  return [...part.querySelectorAll("textarea, input:not([type=checkbox], [type=radio], [type=hidden])")].some(typed) || [...part.querySelectorAll("select")].some(chosen);
}

// renewFrame reloads the changing parts around every page: the list of conversations and the number of pending approvals.
export async function renewFrame() {
  if (document.hidden) return; // loaded when the page is visible again
  try {
    const answer = await fetch(`/frame?at=${encodeURIComponent(location.pathname)}`, { headers: { "X-Chorus": "1" } });
    if (!answer.ok || answer.redirected) return;
    const fresh = await answer.json();
    await released;
    for (const [selector, html] of Object.entries(fresh)) {
      const part = document.querySelector(selector);
      if (!part) continue;
      const made = part.cloneNode(false);
      made.innerHTML = html; // rendered by our own server
      renew(part, made);
    }
  } catch {
    // the server cannot be reached; tried again with the next change
  }
}

let reloads = 0;

// released resolves when no mouse button and no finger is down: an element must still exist when it is released, or the click is
// lost. It does not wait for a release outside the window.
export let released = Promise.resolve();
addEventListener("pointerdown", () => {
  released = new Promise((done) => {
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(done), { once: true, capture: true }); // the click comes first
    setTimeout(done, 10000);
  });
}, true);

// Overview pages reload their content while they are visible and nobody is typing or dragging.
export async function reloadParts() {
  const parts = document.querySelectorAll("[data-renew]");
  if (!parts.length) return renewFrame();
  if (document.hidden || document.body.dataset.busy) return;
  const mine = ++reloads;
  let page;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return; // tried again later
  }
  await released;
  if (mine !== reloads || document.body.dataset.busy) return; // a later reload is newer
  const fresh = page.querySelectorAll("[data-renew]");
  parts.forEach((old, i) => renew(old, fresh[i]));
  for (const part of [".recent", ".bar nav", ".places", ".asked-place"]) renew(document.querySelector(part), page.querySelector(part));
}

// renew replaces the content of a part of the page, unless somebody has started typing in it. Unfolded parts stay unfolded, and the
// focus stays on the same link or button.
export function renew(old, made) {
  if (!old || !made) return;
  reachable(made);
  if (old.dataset.renew === "each") return renewEach(old, made);
  if (old.innerHTML === made.innerHTML || writing(old)) return;
  const key = (d, i) => d.id || i;
  const open = new Map([...old.querySelectorAll("details")].map((d, i) => [key(d, i), d.open]));
  const places = [...old.querySelectorAll("[data-scrolls]")].map((e) => [e.scrollLeft, e.scrollTop]);
  const at = document.activeElement;
  const holder = old.contains(at) && at.closest("[id]");
  const path = old.contains(at) && at.getAttribute("href");
  const menu = old.contains(at) && at.matches(".row-menu") && at.closest("li").querySelector("a").getAttribute("href");
  const inside = holder && old.contains(holder) && (holder !== old || old.parentElement.dataset.renew === "each") && [holder.id, [...holder.querySelectorAll(at.localName)].indexOf(at), at.localName];
  old.innerHTML = made.innerHTML; // rendered by our own server
  old.querySelectorAll("details").forEach((d, i) => (d.open = open.get(key(d, i)) ?? d.open));
  old.querySelectorAll("[data-scrolls]").forEach((e, i) => places[i] && e.scrollTo(...places[i]));
  if (path) old.querySelector(`[href="${CSS.escape(path)}"]`)?.focus();
  else if (menu) old.querySelector(`[href="${CSS.escape(menu)}"] + .row-menu`)?.focus();
  else if (inside) document.getElementById(inside[0])?.querySelectorAll(inside[2])[inside[1]]?.focus();
}

// renewEach renews the children of a part one by one, matched by id: a child that somebody types in does not change, and additions or
// removals around it do not affect what is unfolded or focused.
function renewEach(old, made) {
  const gone = new Map([...old.children].filter((c) => c.id).map((c) => [c.id, c]));
  let before = [...old.children].findLast((c) => !c.id);
  for (const child of [...made.children].filter((c) => c.id)) {
    const there = gone.get(child.id);
    gone.delete(child.id);
    if (there) renew(there, child);
    else if (before) before.after(child);
    else old.prepend(child);
    before = there ?? child;
  }
  for (const child of gone.values()) if (!writing(child)) child.remove();
}

export function autoReload() {
  // The board has its own stream, and so does a conversation, which fills its page.
  if (document.querySelector(".board") || document.querySelector("[data-after]") && !document.querySelector("[data-renew]")) return;
  // The server reports changes of its own process at once; the timer finds those of other processes. A hidden
  // page keeps no connection, because browsers limit them.
  let moves;
  const listen = () => {
    moves?.close();
    if (document.hidden) return;
    moves = new EventSource("/moves");
    moves.addEventListener("open", reloadParts); // something may have changed before
    moves.addEventListener("message", reloadParts);
  };
  listen();
  setInterval(reloadParts, 30000);
  document.addEventListener("visibilitychange", listen);
}
