// Shared parts of the message forms: files that are chosen, dropped, pasted and removed, and a field that grows.

export function grow(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight / 2)}px`;
}

// attachments lists the files to send, each with a button to remove it. Files can be dropped anywhere on a part of the page, and
// pasted into the message field.
export function attachments(form, part) {
  const field = form.elements.files, area = form.elements.message, list = document.getElementById("chosen");
  const set = (files) => {
    const kept = new DataTransfer();
    for (const f of files) kept.items.add(f);
    field.files = kept.files;
    show();
  };
  const add = (more) => set([...field.files, ...more]);
  const show = () => list.replaceChildren(...[...field.files].map((f, i) => {
    const item = Object.assign(document.createElement("li"), { textContent: `${f.name} (${Math.ceil(f.size / 1024)} KB) ` });
    const off = Object.assign(document.createElement("button"), { type: "button", textContent: "×", className: "remove" });
    off.setAttribute("aria-label", `Do not send ${f.name}`);
    off.addEventListener("click", () => {
      set([...field.files].filter((_, n) => n !== i));
      area.focus();
    });
    item.append(off);
    return item;
  }));

  const carries = (e) => e.dataTransfer?.types.includes("Files");
  part.addEventListener("dragover", (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    form.classList.add("drop");
  });
  part.addEventListener("dragleave", (e) => { if (!part.contains(e.relatedTarget)) form.classList.remove("drop"); });
  part.addEventListener("drop", (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    form.classList.remove("drop");
    add(e.dataTransfer.files);
  });
  field.addEventListener("change", show);
  area.addEventListener("paste", (e) => {
    if (!e.clipboardData?.files.length) return;
    e.preventDefault();
    add(e.clipboardData.files);
  });
  return { add, clear: () => set([]) };
}

// An unsent text moves along to a new conversation, and a command typed there moves to its page. Both are stored in this tab.
export function leave(name, text) {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    // there is no storage
  }
}

export function take(name) {
  try {
    const text = sessionStorage.getItem(name) ?? "";
    sessionStorage.removeItem(name);
    return text;
  } catch {
    return "";
  }
}

// drafts stores the text of a field in this tab: it survives visits to other pages, reloads and server outages. Call keep if the text
// changed without typing, and drop when it is sent. whole returns more than the field, if there is more to keep.
export function drafts(area, of, whole = () => area.value) {
  const name = `draft:${of}`;
  const keep = () => (whole().trim() ? leave(name, whole()) : drop());
  const drop = () => take(name);
  const kept = take(name);
  if (kept) area.value = kept;
  area.setSelectionRange(area.value.length, area.value.length); // the person continues after it
  keep();
  area.addEventListener("input", keep);
  return { keep, drop };
}
