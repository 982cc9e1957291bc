// Answers to commands are not part of the conversation, so they are not in the journal. They are only for the person who typed the
// command, and are stored in this tab until it is closed or somebody signs out. A reloaded page shows them in the same places.

const most = 30; // per conversation; older ones are dropped

// keeper stores the answers in a conversation's log.
export function keeper(log, session, reader) {
  const place = `answers:${reader}:${session}`;
  let kept = [];
  try {
    kept = JSON.parse(sessionStorage.getItem(place)) ?? [];
  } catch {
    // there is no storage, or somebody else's text in it
  }
  const store = () => {
    kept = kept.slice(-most);
    try {
      sessionStorage.setItem(place, JSON.stringify(kept));
    } catch {
      kept = kept.slice(-1); // storage is full: the newest answer matters most
    }
  };

  // The row of the journal before an element; "": the element is before all rows.
  const rowBefore = (made) => {
    for (let e = made.previousElementSibling; e; e = e.previousElementSibling) if (/^(e\d+$|call-|ask-)/.test(e.id)) return e.id;
    return "";
  };

  return {
    add(made) {
      made.dataset.answer = crypto.randomUUID?.() ?? String(Math.random());
      kept.push({ key: made.dataset.answer, after: rowBefore(made), html: made.outerHTML });
      store();
    },
    changed(made) {
      const one = kept.find((k) => k.key === made?.dataset.answer);
      if (!one) return;
      one.html = made.outerHTML;
      store();
    },
    // restore inserts them again. Those after a row of another page are left for that page.
    restore(element, whole) {
      for (const one of kept) {
        let at = one.after ? document.getElementById(one.after) : null;
        if (one.after ? !at : !whole) continue;
        while ((at ? at.nextElementSibling : log.firstElementChild)?.dataset.answer) at = at ? at.nextElementSibling : log.firstElementChild;
        if (at) at.after(element(one.html));
        else log.prepend(element(one.html));
      }
      return kept.length;
    },
  };
}
