// The form for a new conversation: it shows errors itself, so that no text or choice is lost.
import { completions, isCommand } from "./commands.js";
import { attachments, drafts, grow, leave, take } from "./composer.js";

const form = document.getElementById("new");
const area = form.elements.message, button = document.getElementById("send"), problem = document.getElementById("problem");

function say(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

async function begin(event) {
  event.preventDefault();
  if (button.disabled) return;
  if (!area.value.trim() && !form.elements.files.files.length && !event.submitter) return;
  button.disabled = true;
  say("");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new FormData(form), headers: { "X-Chorus": "1" } });
    const text = (await answer.text()).trim();
    if (answer.ok) {
      if (isCommand(area.value)) leave("command", area.value);
      draft.drop();
      location.href = text;
      return; // the button stays disabled until the page has loaded
    }
    say(text || answer.statusText);
    if (form.elements.workspacePath.value) form.querySelector(".where").open = true;
  } catch {
    say("The server cannot be reached. Your text is kept. Try again.");
  }
  button.disabled = false;
}

const draft = drafts(area, "new"), brought = take("draft");
if (brought) area.value = brought;
draft.keep();
grow(area);
area.addEventListener("input", () => grow(area));
const { agent, workspacePath } = form.elements;
const completion = completions(area, document.getElementById("completions"), "/new/commands", () => ({ agent: agent.value, workspacePath: workspacePath.value }));
// Before Enter sends: it may choose what the list shows.
area.addEventListener("keydown", (e) => { if (completion.keys(e)) e.stopPropagation(); });
attachments(form, document.getElementById("main"));
form.addEventListener("submit", begin);
addEventListener("pageshow", (event) => { if (event.persisted) button.disabled = false; });
