// Buttons that copy.
import { toast } from "./request.js";

// reachable makes code focusable, so that its copy button can be reached with the keyboard.
export function reachable(root) {
  root?.querySelectorAll("figure.code, pre.command").forEach((f) => (f.tabIndex = 0));
}

// copy copies a text, or the text of a promise, to the clipboard and confirms it on the pressed button.
async function copy(text, button, instead = "select the text and copy it yourself") {
  try {
    // A promise is given to the browser at once: some forget the press of the button while they wait.
    if (text instanceof Promise) await navigator.clipboard.write([new ClipboardItem({ "text/plain": text.then((t) => new Blob([t], { type: "text/plain" })) })]);
    else await navigator.clipboard.writeText(text);
  } catch {
    toast(`The browser blocked copying: ${instead}.`, true);
    return;
  }
  const before = button.textContent;
  button.textContent = "Copied";
  if (before !== "Copied") setTimeout(() => (button.textContent = before), 1500);
}

const copyButton = (className) => Object.assign(document.createElement("button"), { type: "button", className, textContent: "Copy" });

// written is a message as it was written, which is Markdown. Where it cannot be read, it is the text that is shown.
async function written(said) {
  const shown = said.querySelector(":scope > .text")?.innerText ?? "";
  const session = said.closest("[data-session]")?.dataset.session, seq = /^e(\d+)$/.exec(said.id)?.[1];
  if (!session || !seq) return shown;
  try {
    const answer = await fetch(`/s/${encodeURIComponent(session)}/text/${seq}`, { headers: { "X-Chorus": "1" } });
    return answer.ok && !answer.redirected ? await answer.text() : shown;
  } catch {
    return shown;
  }
}

// A message's copy button is created when the message is first hovered or focused.
function offerMessage(said) {
  const tools = said?.querySelector(":scope > header .tools");
  if (!tools || tools.querySelector(".copy-text")) return;
  const button = copyButton("quiet copy-text");
  button.addEventListener("click", () => copy(written(said), button));
  tools.prepend(button);
}

// Copy buttons are created when code is hovered or focused, so that pages stay small.
export function copyButtons() {
  const offer = (event) => {
    offerMessage(event.target.closest?.(".said"));
    const figure = event.target.closest?.("figure.code, pre.command, .out pre");
    if (!figure || figure.querySelector(":scope > .copy")) return;
    const button = copyButton("copy");
    button.addEventListener("click", () => {
      const code = (figure.querySelector("code") ?? figure).cloneNode(true);
      code.querySelectorAll(".copy").forEach((b) => b.remove());
      copy(code.textContent, button);
    });
    figure.append(button);
  };
  document.addEventListener("pointerover", offer);
  document.addEventListener("focusin", offer);
  reachable(document);
}

// A button next to a field copies the field's text.
export function copyFields() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const field = document.getElementById(button.dataset.copy);
    field.select();
    copy(field.value, button, "the link is selected, copy it yourself");
  });
}
