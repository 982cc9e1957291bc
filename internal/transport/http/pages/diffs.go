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
	Split bool
	Call  string // the id of the call that the switch leads back to; "": there is no switch
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
func callEdits(text string, split bool, call string) editsView {
	out := edits(text)
	out.Split, out.Call = split, call
	return out
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
