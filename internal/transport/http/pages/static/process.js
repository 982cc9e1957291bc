// Live output of a process. A hidden page keeps no connection, because browsers limit them; it continues from where it was.
const place = document.querySelector("[data-process]");
const out = document.getElementById("output");
const longest = 400_000; // maximum characters in the page
let next = out.dataset.next;
let over = false;
let source;

// A reader at the end stays at the end; one further up is not moved.
const atEnd = () => out.scrollHeight - out.scrollTop - out.clientHeight < 40;
const toEnd = () => { out.scrollTop = out.scrollHeight; };

function append({ text, lost }) {
  const stay = atEnd();
  if (lost) out.append("\n[some of the output is no longer available]\n");
  out.append(text);
  if (out.textContent.length > longest) {
    const rest = out.textContent.slice(-longest / 2);
    out.textContent = rest.slice(rest.indexOf("\n") + 1);
  }
  if (stay) toEnd();
}

function put({ id, html }) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // rendered by the server, which escapes all text
  document.getElementById(id)?.replaceWith(holder.content.firstElementChild);
}

function listen() {
  source?.close();
  if (document.hidden || over) return;
  const mine = new EventSource(`/processes/${encodeURIComponent(place.dataset.process)}/live?from=${next}`);
  source = mine;
  mine.addEventListener("output", (e) => { next = e.lastEventId; append(JSON.parse(e.data)); });
  mine.addEventListener("put", (e) => put(JSON.parse(e.data)));
  mine.addEventListener("end", () => { over = true; mine.close(); document.getElementById("process-say")?.remove(); });
  mine.addEventListener("error", () => {
    if (mine.readyState !== EventSource.CLOSED || source !== mine) return; // the browser reconnects by itself
    again();
  });
}

// The browser gave up reconnecting: find out whether we are signed out or the process is gone.
async function again() {
  try {
    const page = await fetch(location.pathname, { method: "HEAD" });
    if (page.redirected || page.status === 401 || page.status === 404) return location.reload();
  } catch { /* the server is away */ }
  setTimeout(listen, 2000);
}

toEnd();
listen();
document.addEventListener("visibilitychange", listen);
