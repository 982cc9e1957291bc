// The search of the static site: it reads search.json and ranks sections as the server does. Without JavaScript the list of pages remains.
const place = document.getElementById("results");
const field = document.querySelector("input[name=q]");

const count = (text, word) => Math.min(text.split(word).length - 1, 3);

function rate(entry, words) {
  const heading = `${entry.section} ${entry.page}`.toLowerCase(), body = entry.text.toLowerCase();
  let score = 0;
  for (const word of words) {
    const n = count(body, word) + (heading.includes(word) ? 8 : 0);
    if (!n) return 0;
    score += n;
  }
  return score;
}

function excerpt(text, words) {
  const lower = text.toLowerCase();
  let from = Math.max(0, Math.min(...words.map((w) => lower.indexOf(w)).filter((i) => i >= 0), text.length) - 50);
  let to = Math.min(from + 160, text.length);
  if (from) from = text.indexOf(" ", from) + 1 || from; // whole words
  if (to < text.length && text.lastIndexOf(" ", to) > from) to = text.lastIndexOf(" ", to);
  return (from ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
}

async function search(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length || !place) return;
  const index = await (await fetch("search.json")).json();
  const hits = index.map((e) => [rate(e, words), e]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, 40);
  const list = document.createElement("ol");
  for (const [, e] of hits) {
    const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
    link.href = e.href;
    link.textContent = e.section === e.page ? e.page : `${e.page} › ${e.section}`;
    text.textContent = excerpt(e.text, words);
    item.append(link, text);
    list.append(item);
  }
  place.replaceChildren(hits.length ? list : document.createTextNode("Nothing was found. Fewer or other words may help."));
}

const query = new URLSearchParams(location.search).get("q") ?? "";
if (field && query) field.value = query;
search(query);
