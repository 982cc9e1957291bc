package repl

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// search searches backwards through earlier input, of this and earlier sessions.
type search struct {
	query editor
	hits  []string // matches, newest first, without repetitions
	at    int
}

const searchMark = "search: "

// beginSearch opens the search with the text of the input.
func (w *window) beginSearch() {
	w.search = &search{query: newEditor(nil)}
	w.menu = menu{}
	if !w.input.empty() && !strings.Contains(w.input.value(), "\n") {
		w.search.query.insert(w.input.value())
	}
	w.find()
}

// find searches for the query.
func (w *window) find() {
	q := strings.ToLower(w.search.query.value())
	w.search.hits, w.search.at = nil, 0
	seen := map[string]bool{}
	all := append(append([]string(nil), w.everywhere...), w.input.past...)
	for i := len(all) - 1; i >= 0; i-- {
		if text := all[i]; !seen[text] && strings.Contains(strings.ToLower(text), q) {
			seen[text] = true
			w.search.hits = append(w.search.hits, text)
		}
	}
}

// searchKey handles a key while the search is open.
func (w *window) searchKey(msg tea.KeyPressMsg) {
	s := w.search
	switch name := msg.String(); name {
	case "ctrl+r", "up", "ctrl+p":
		s.at = min(s.at+1, max(len(s.hits)-1, 0))
	case "ctrl+s", "down", "ctrl+n":
		s.at = max(s.at-1, 0)
	case "enter", "tab", "right", "ctrl+e":
		w.search = nil
		if len(s.hits) > 0 {
			w.input.set(s.hits[s.at])
		}
	case "esc", "ctrl+g":
		w.search = nil
	default:
		if s.query.key(name) || msg.Text != "" {
			if msg.Text != "" {
				s.query.insert(msg.Text)
			}
			w.find()
		}
	}
}

// searchLines are the query and its match, in place of the input.
func (w *window) searchLines() []string {
	s := w.search
	query := markdown.Truncate(s.query.value(), max(w.inputWidth()-len(searchMark), 4))
	out := []string{w.look.Paint(theme.Accent, searchMark) + query}
	if len(s.hits) == 0 {
		return append(out, w.look.Paint(theme.Faint, "  no earlier input matches"))
	}
	rows := markdown.Wrap(s.hits[s.at], w.inputWidth())
	if limit := max(w.tallest()/2-1, 1); len(rows) > limit {
		rows = append(rows[:limit-1:limit-1], "…")
	}
	for _, row := range rows {
		out = append(out, "  "+row)
	}
	return out
}
