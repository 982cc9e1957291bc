// Browser notifications, for somebody who enabled them and looks at something else: a hidden conversation tells that its run is over
// (live.js), and one of all open pages tells of every approval that is asked for.

const enabled = () => "Notification" in window && Notification.permission === "granted";

// tell shows a notification while the page is hidden. It leads to an address of this server, and replaces an earlier one of the
// same tag.
export function tell(text, path = location.pathname, tag = path) {
  if (!document.hidden || !enabled()) return;
  const note = new Notification("Chorus", { body: text, tag });
  note.addEventListener("click", () => {
    if (path === location.pathname) focus();
    else open(path);
    note.close();
  });
}

const wants = { task_result: "a result is waiting for your approval", pull_request: "a result is waiting for your approval", task_plan: "a plan is waiting for your approval" };

async function read(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.json();
}

async function announce(asked) {
  if (asked.taskId) return tell(`${asked.taskId}: ${wants[asked.kind] ?? "waiting for you"}`, `/work/${encodeURIComponent(asked.taskId)}`, asked.id);
  const path = `/s/${encodeURIComponent(asked.session)}`;
  let title = asked.agent;
  try {
    title = (await read(`/api/sessions/${encodeURIComponent(asked.session)}`)).title || title;
  } catch {
    // its agent's name is enough
  }
  tell(`${title}: waiting for your ${asked.actions?.[0]?.startsWith("question:") ? "answer" : "approval"}`, path, asked.id);
}

// Every open page could tell. The one that was looked at last does: while it is hidden, nobody looks at Chorus. When it is closed,
// the next one takes over.
let holds = false, queued = null;

function take(options) {
  const until = () => {
    holds = true;
    watch();
    return new Promise(() => {}); // until the page is closed, or another one takes it
  };
  navigator.locks.request("chorus-notices", options, until).catch(() => {
    if (!holds) return; // it was only queued
    holds = false;
    watch();
    queue();
  });
}

function queue() {
  queued = new AbortController();
  take({ signal: queued.signal });
}

let moves = null, timer = 0, known = null, checks = 0;

async function check() {
  const mine = ++checks;
  try {
    const list = (await read("/api/approvals?limit=200")).items;
    if (mine !== checks || !moves) return; // a later check is newer
    const before = known;
    known = new Set(list.map((a) => a.id));
    if (before) for (const asked of list) if (asked.mayAnswer && !before.has(asked.id)) announce(asked);
  } catch {
    // the server cannot be reached; tried again with the next change
  }
}

// watch follows what changes on the server while this page is the one that tells. What was asked before it was hidden could be seen on it.
function watch() {
  const on = holds && document.hidden && enabled();
  if (on === Boolean(moves)) return;
  moves?.close();
  clearInterval(timer);
  moves = null;
  if (!on) return;
  known = null;
  moves = new EventSource("/moves");
  moves.addEventListener("open", check);
  moves.addEventListener("message", check);
  timer = setInterval(check, 30000); // for what other processes do
}

function begin() {
  if (!enabled() || !navigator.locks) return;
  if (document.hidden) queue();
  else take({ steal: true });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !holds) {
      queued?.abort();
      take({ steal: true });
    }
    watch();
  });
}

// notices offers to enable notifications, and shows them.
export function notices() {
  const button = document.getElementById("notify");
  if (!button || !("Notification" in window)) return;
  button.hidden = Notification.permission !== "default";
  button.addEventListener("click", async () => {
    await Notification.requestPermission();
    button.hidden = true;
    begin();
  });
  begin();
}
