package pages

import (
	"net/http"

	"chorus/internal/transport/http/diffview"
)

// foldedLines is the longest diff in a conversation that is not folded at first.
const foldedLines = 40

// editsView is what a call changed, as shown.
type editsView struct {
	Files []diffview.File
	Text  string // of a preview: what to show if it is not a diff
	Split bool
	At    string // the element that the switch between the two views leads back to; "": there is no switch

	// The page that the switch stays on.
	Before int64
	State  string
}

// edits returns the files that a diff changes. Long ones are folded.
func edits(text string) editsView {
	files, _ := diffview.Parse(text)
	for i := range files {
		files[i].Folded = files[i].Shown > foldedLines
	}
	return editsView{Files: files}
}

// callEdits returns the files that a call changed, in the chosen view.
func callEdits(text string, v view, call string) editsView {
	out := edits(text)
	if len(out.Files) == 1 {
		out.Files[0].Folded = false // the call is folded
	}
	out.Split, out.At, out.Before = v.Split, "call-"+call, v.Before
	return out
}

// changedLines returns how many lines a diff adds and removes.
func changedLines(text string) (sum struct{ Added, Removed int }) {
	if text == "" {
		return sum
	}
	files, _ := diffview.Parse(text)
	for _, f := range files {
		sum.Added += f.Added
		sum.Removed += f.Removed
	}
	return sum
}

// previewOf returns what a call would change, in the chosen view. It is approved by what is shown, so nothing is folded or
// left out: a text that is not a diff from beginning to end is shown as it is.
func previewOf(text string, v view, approval string) editsView {
	files, whole := diffview.ParseWhole(text)
	if !whole {
		return editsView{Text: text}
	}
	return editsView{Files: files, Split: v.Split, At: "ask-" + approval, Before: v.Before, State: v.State}
}

// diffCookie stores the chosen view of changes.
const diffCookie = "chorus_diff"

// splitDiffs reports whether changes are shown side by side: as the address says, which is stored for the next page, or as chosen before.
func splitDiffs(w http.ResponseWriter, r *http.Request) bool {
	switch want := r.URL.Query().Get("diff"); want {
	case "split", "unified":
		http.SetCookie(w, &http.Cookie{Name: diffCookie, Value: want, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode})
		return want == "split"
	}
	kept, err := r.Cookie(diffCookie)
	return err == nil && kept.Value == "split"
}
