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

// If nothing is found, it searches for the closest words, as search.go does.
const leastWord = 5;

function oneSlip(a, b) {
  if (a.length < b.length) [a, b] = [b, a];
  let i = 0;
  while (i < b.length && a[i] === b[i]) i++;
  if (a.length === b.length + 1) return a.slice(i + 1) === b.slice(i);
  if (a.length !== b.length || i === b.length) return false;
  return a.slice(i + 1) === b.slice(i + 1) || (a[i] === b[i + 1] && a[i + 1] === b[i] && a.slice(i + 2) === b.slice(i + 2));
}

function nearest(word, known) {
  if (word.length < leastWord || known.has(word)) return word;
  let best = "";
  for (const [other, n] of known) {
    const most = known.get(best) ?? 0;
    if (other.length >= leastWord && oneSlip(word, other) && (n > most || (n === most && other < best))) best = other;
  }
  if (best) return best;
  for (let n = word.length; n >= leastWord; n--) {
    if ([...known.keys()].some((other) => other.startsWith(word.slice(0, n)))) return word.slice(0, n);
  }
  return word;
}

function nearWords(index, words) {
  const known = new Map();
  for (const e of index) {
    for (const word of `${e.section} ${e.text}`.toLowerCase().match(/\p{L}+/gu) ?? []) known.set(word, (known.get(word) ?? 0) + 1);
  }
  return words.map((word) => nearest(word, known));
}

const find = (index, words) => index.map((e) => [rate(e, words), e]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, 40);

async function search(query) {
  let words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length || !place) return;
  const index = await (await fetch("search.json")).json();
  let hits = find(index, words), meant;
  if (!hits.length) {
    words = nearWords(index, words);
    hits = find(index, words);
    meant = document.createElement("p");
    meant.textContent = `No matches for “${query}”. Showing matches for “${words.join(" ")}”:`;
  }
  const list = document.createElement("ol");
  for (const [, e] of hits) {
    const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
    link.href = e.href;
    link.textContent = e.section === e.page ? e.page : `${e.page} › ${e.section}`;
    text.textContent = excerpt(e.text, words);
    item.append(link, text);
    list.append(item);
  }
  if (!hits.length) place.textContent = `No matches for “${query}”. Try fewer or different words.`;
  else place.replaceChildren(...(meant ? [meant] : []), list);
}

const query = new URLSearchParams(location.search).get("q") ?? "";
if (field && query) field.value = query;
search(query);
