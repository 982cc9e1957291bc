// Commands in a conversation: completions are shown while somebody types, and the answer of a command is shown in the page.
// Answers are not part of the conversation; see answers.js.

// isCommand reports whether a text is for Chorus and not for the agent. A path is not: its first word has a second slash.
export const isCommand = (text) => /^\/[^\s/:]*(\s|$)/.test(text.trimStart());

// isPrompt reports whether a text starts with the name of an MCP server's prompt: /server:prompt. It is sent to the agent.
const isPrompt = (text) => /^\/[^\s/:]+:\S*$/.test(text.trimStart());
// fileWord is the start of a file name before the cursor: @src/ma. null: there is none.
const fileWord = (area) => /(?:^|\s)(@\S*)$/.exec(area.value.slice(0, area.selectionStart))?.[1] ?? null;
const isOneLine = (text) => !text.trim().includes("\n");
// asks is the text to complete on the server; null: nothing.
const asks = (area) => fileWord(area) ?? ((isCommand(area.value) || isPrompt(area.value)) && isOneLine(area.value) ? area.value.trimStart() : null);

// completions lists completions of the text area's line below the form. more returns further parameters for the server, and is
// called each time.
export function completions(area, list, url, more = () => ({})) {
  let asked = 0, timer = null, chosen = -1;
  const options = () => [...list.querySelectorAll("[role=option]")];
  const close = () => {
    asked++;
    clearTimeout(timer);
    chosen = -1;
    list.hidden = true;
    list.replaceChildren();
    area.removeAttribute("aria-activedescendant");
  };
  const mark = (at) => {
    const all = options();
    if (!all.length) return;
    chosen = (at + all.length) % all.length;
    all.forEach((o, i) => o.setAttribute("aria-selected", String(i === chosen)));
    area.setAttribute("aria-activedescendant", all[chosen].id);
    all[chosen].scrollIntoView({ block: "nearest" });
  };
  const take = (option) => {
    const word = fileWord(area), line = option.dataset.line;
    if (word !== null && line.startsWith("@")) {
      const from = area.selectionStart - word.length;
      area.setRangeText(line, from, area.selectionStart, "end");
    } else area.value = line;
    area.dispatchEvent(new Event("input"));
    area.focus();
  };
  const ask = async () => {
    const mine = ++asked, line = asks(area);
    if (line === null) return;
    try {
      const answer = await fetch(`${url}?${new URLSearchParams({ line, ...more() })}`, { headers: { "X-Chorus": "1" } });
      const html = answer.ok ? await answer.text() : "";
      if (mine !== asked || asks(area) === null) return; // more was typed meanwhile, or the text was sent
      const kept = options()[chosen]?.dataset.line; // what somebody chose meanwhile, so that Enter does not send instead
      list.innerHTML = html; // rendered by our own server
      chosen = -1;
      list.hidden = !list.children.length;
      area.removeAttribute("aria-activedescendant");
      const again = options().findIndex((o) => o.dataset.line === kept);
      if (again >= 0) mark(again);
    } catch {
      close(); // the server cannot be reached; sending says so
    }
  };
  area.addEventListener("input", () => {
    if (asks(area) === null) {
      close();
      return;
    }
    clearTimeout(timer);
    timer = setTimeout(ask, 80);
  });
  area.addEventListener("blur", () => setTimeout(() => document.activeElement !== area && close(), 200));
  list.addEventListener("pointerdown", (e) => {
    const option = e.target.closest("[role=option]");
    e.preventDefault(); // the text area keeps the focus
    if (option) take(option);
  });
  // keys handles a key of the text area and reports whether it was for the list.
  const keys = (e) => {
    if (list.hidden || e.isComposing) return false;
    if (e.key === "ArrowDown") mark(chosen + 1);
    else if (e.key === "ArrowUp") mark(chosen < 0 ? -1 : chosen - 1);
    else if (e.key === "Escape") close();
    else if (e.key === "Tab" && !e.shiftKey && options().length) take(options()[Math.max(chosen, 0)]);
    else if (e.key === "Enter" && chosen >= 0) take(options()[chosen]);
    else return false;
    e.preventDefault();
    return true;
  };
  return { keys, close };
}
