// Answers to commands are no part of the conversation, so the journal does not have them. They are for whoever typed the command,
// and are kept where it was typed: in this tab, until it is closed or somebody signs out. A page that is loaded anew shows them
// where they stood.

const most = 30; // in a conversation; older ones go

// keeper keeps the answers that stand in a conversation's log.
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
      kept = kept.slice(-1); // it is full: the newest is worth most
    }
  };

  // Behind which row of the journal an element stands; "": it stands before all of them.
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
    // restore puts them back. Those behind a row that is on another page are left for that page.
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
