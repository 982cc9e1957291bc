#!/usr/bin/env node
// A client of a Chorus server in one file: it makes or resumes a session, follows its
// events, asks you about approvals and sends what you type. It needs node 18 or newer
// and nothing else.
//
//   chorus serve                                   in another terminal
//   CHORUS_TOKEN=$(cat ~/.chorus/token) node examples/server-client.mjs
//
// --help lists the flags.
//
// While it runs: a line is a prompt, or steers the run that is on; while a question is open it
// waits its turn. /approve [N] [note] and
// /deny [N] [note] answer a question (y and n do, too, where one is open); /questions shows
// them, /abort stops the run, /exit leaves. What is neither is never taken for an answer.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { randomUUID } from "node:crypto";

const help = `node examples/server-client.mjs [flags]

  --base URL        the server (default http://127.0.0.1:8420, or CHORUS_SERVER)
  --session ID      go on with a session, also while it is running
  --workspace DIR   where a new session works, as the server sees it
  --agent NAME  --provider NAME  --model NAME  --permissions PROFILE

The token is read from CHORUS_TOKEN:
  CHORUS_TOKEN=$(cat ~/.chorus/token) node examples/server-client.mjs`;

function readFlags(options) {
  try {
    return parseArgs({ options }).values;
  } catch (err) { // a flag that there is not
    process.stderr.write(`${err.message.split(". ")[0]}\n\n${help}\n`);
    process.exit(2);
  }
}

const flags = readFlags({
  help: { type: "boolean", short: "h" },
  base: { type: "string", default: process.env.CHORUS_SERVER ?? "http://127.0.0.1:8420" },
  session: { type: "string" }, workspace: { type: "string" }, agent: { type: "string" },
  provider: { type: "string" }, model: { type: "string" }, permissions: { type: "string" },
});
if (flags.help) {
  process.stdout.write(help + "\n");
  process.exit(0);
}
const base = flags.base.replace(/\/+$/, "");
const token = process.env.CHORUS_TOKEN ?? "";
const print = (text) => process.stdout.write(text + "\n");

class Problem extends Error {
  constructor(status, body) {
    super(body?.error ?? `the server answered ${status}`);
    this.status = status;
    this.about = body?.about;
  }
}

async function api(method, path, body, key) {
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const res = await fetch(base + path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(60_000) });
  const text = await res.text();
  let data;
  try { data = JSON.parse(text || "{}"); } catch { data = {}; }
  if (!res.ok) throw new Problem(res.status, data);
  return data;
}

// once sends a request with a key, so that it has its effect once however often it is sent.
async function once(path, body) {
  const key = randomUUID();
  for (let tries = 1; ; tries++) {
    try {
      return await api("POST", path, body, key);
    } catch (err) {
      if (err instanceof Problem && err.status !== 503 || tries === 5) throw err;
      await new Promise((go) => setTimeout(go, 200 * 2 ** tries));
    }
  }
}

async function begin() {
  if (flags.session) return api("GET", `/api/sessions/${encodeURIComponent(flags.session)}`);
  const { workspace, agent, provider, model, permissions } = flags;
  const made = await once("/api/sessions", { workspacePath: workspace, agent, provider, model, permissions });
  return made.session;
}

const leaving = new AbortController();
let session, running = false, shown = "", place = "";
const questions = new Map(); // by approval id, the oldest first

// events follows the session and comes back behind the last number after a cut.
async function* events(after) {
  for (let wait = 250; !leaving.signal.aborted; ) {
    try {
      const res = await fetch(`${base}/api/sessions/${session.id}/stream`, {
        headers: { Authorization: `Bearer ${token}`, "Last-Event-ID": String(after) }, signal: leaving.signal,
      });
      if (!res.ok) {
        const err = new Problem(res.status, await res.json().catch(() => ({})));
        if (res.status !== 503 && res.status !== 429) throw err;
        throw new Error(err.message);
      }
      wait = 250;
      let rest = "", group = [];
      for await (const chunk of res.body.pipeThrough(new TextDecoderStream())) {
        const frames = (rest + chunk).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) {
          const data = frame.split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("\n");
          if (!data) continue;
          const event = JSON.parse(data);
          if (!event.seq) { yield event; continue; }
          if (event.seq <= after) continue;
          group.push(event); // several objects may have one number: they count together
          if (event.more) continue;
          after = event.seq;
          yield* group.splice(0);
        }
      }
    } catch (err) {
      if (leaving.signal.aborted) return;
      if (err instanceof Problem) throw err;
    }
    await new Promise((go) => setTimeout(go, wait));
    wait = Math.min(2 * wait, 10_000);
  }
}

function newLine() {
  if (shown) process.stdout.write("\n");
  shown = place = "";
}

function show(e) {
  switch (e.type) {
    case "run_started": running = true; break;
    case "text_delta": {
      const here = `${e.run} ${e.step} ${e.attempt}`;
      if (here !== place) { newLine(); place = here; }
      if (e.offset <= shown.length) {
        const more = e.text.slice(shown.length - e.offset);
        process.stdout.write(more);
        shown += more;
      }
      break;
    }
    case "assistant_message":
      if (!e.text.startsWith(shown)) newLine();
      process.stdout.write(e.text.slice(shown.length) + "\n");
      shown = place = "";
      break;
    case "tool_call": newLine(); print(`→ ${e.label || e.tool}`); break;
    case "tool_result":
      newLine();
      for (const [id, q] of questions) if (q.callId === e.callId) questions.delete(id); // skipped, or answered
      print(`${e.result.ok ? "✓" : "✗"} ${e.tool} ${e.outcome}`);
      break;
    case "approval_required":
      newLine();
      questions.set(e.approvalId, e);
      ask(e);
      break;
    case "approval_resolved":
      questions.delete(e.approvalId);
      print(`  ${e.approved ? "approved" : "denied"} by ${e.by}`);
      break;
    case "refused": newLine(); print(`✗ not taken: ${e.reason}`); break;
    case "completed":
    case "error":
      newLine();
      running = false;
      questions.clear();
      print(e.type === "error" ? `✗ ${e.message}` : `• ${e.stopReason} · ${e.usage.inputTokens} in, ${e.usage.outputTokens} out · $${e.cost}`);
      break;
  }
}

function ask(e) {
  const n = [...questions.keys()].indexOf(e.approvalId) + 1;
  print(`? ${n}. ${e.label || e.tool} ${e.argsJson ?? ""}`);
  for (const line of (e.preview ?? "").split("\n").filter(Boolean)) print(`    ${line}`);
  print(questions.size === 1 ? "  y or n, or /approve and /deny with a note" : `  /approve ${n} or /deny ${n}, with a note if you like`);
}

// verdict reads an answer to a question; undefined: the line is none.
function verdict(line) {
  const short = /^(y|yes|n|no)$/i.exec(line);
  if (short && questions.size > 0) return { ok: /^y/i.test(line), n: questions.size === 1 ? 1 : 0, note: "" };
  const long = /^\/(approve|deny)(?:\s+(\d+))?(?:\s+(.*))?$/.exec(line);
  if (long) return { ok: long[1] === "approve", n: Number(long[2] ?? (questions.size === 1 ? 1 : 0)), note: long[3] ?? "" };
}

async function answer({ ok, n, note }) {
  const e = [...questions.values()][n - 1];
  if (!e) {
    print(questions.size === 0 ? "nothing waits for an answer" : `${questions.size} questions wait; say which: /approve N or /deny N`);
    return;
  }
  try {
    await api("POST", `/api/sessions/${session.id}/approvals/${encodeURIComponent(e.callId)}`, { approved: ok, note });
  } catch (err) {
    if (err.status !== 409) throw err;
    questions.delete(e.approvalId);
    print(`somebody was faster: ${err.about?.state ?? "it is answered"}`);
  }
}

async function take(line) {
  if (line === "") return;
  if (line === "/exit" || line === "/quit") return leave(0);
  if (line === "/questions") {
    if (questions.size === 0) print("nothing waits for an answer");
    for (const e of questions.values()) ask(e);
    return;
  }
  if (line === "/abort") {
    const { aborted } = await api("POST", `/api/sessions/${session.id}/abort`, {});
    if (!aborted) print("nothing is running");
    return;
  }
  const said = verdict(line);
  if (said) return answer(said);
  if (line.startsWith("/")) { print(`there is no ${line.split(" ")[0]}; there are /approve /deny /questions /abort /exit`); return; }
  // Steering would skip the call that is asked about, which is a no. So what is typed meanwhile waits its turn.
  const steers = running && questions.size === 0;
  const { position } = await once(`/api/sessions/${session.id}/${steers ? "steer" : "chat"}`, { message: line });
  if (questions.size > 0) print("noted for later; the question above still waits for an answer");
  if (position) print(`waiting, place ${position}`);
}

function leave(code) {
  if (leaving.signal.aborted) return;
  process.exitCode = code;
  leaving.abort();
  input.close();
}

// Lines are taken one after the other, from the first on, also those typed before we are ready.
const input = createInterface({ input: process.stdin });
let ready, queue = new Promise((go) => { ready = go; });
input.on("line", (line) => {
  queue = queue.then(() => leaving.signal.aborted || take(line.trim())).catch((err) => print(`✗ ${err.message}`));
});
input.on("close", () => { queue = queue.then(() => leave(0)); });

try {
  session = await begin();
  running = session.status === "running" || session.status === "waiting";
  print(`session ${session.id} · ${session.agent} · ${session.provider}/${session.model} · ${session.status}`);
  const open = await api("GET", `/api/sessions/${session.id}/approvals`);
  for (const a of open.items) questions.set(a.id, { ...a, approvalId: a.id });
  for (const e of questions.values()) ask(e);
  ready();
  for await (const e of events(session.seq)) show(e);
} catch (err) {
  console.error(err instanceof Problem ? err.message : `no answer from ${base}: ${err.cause?.message ?? err.message}`);
  leave(1);
}
