package repl

import (
	"strings"

	"chorus/internal/markdown"
	"chorus/internal/text"
	"chorus/internal/theme"
)

// message is a past message, shown when a conversation is continued.
type message struct {
	mine bool
	text string
	did  []string // what the agent did after it, one line each
}

// remember collects the past until all of it has arrived; recall shows its last messages, with one line per action.
func (w *window) remember(n news) {
	switch n := n.(type) {
	case heard:
		w.messages = append(w.messages, message{mine: true, text: n.text})
	case wroteAll:
		if strings.TrimSpace(n.text) != "" {
			w.messages = append(w.messages, message{text: n.text})
		}
	case finished:
		w.did(strings.Split(toolLine(n, w.room(), w.look), "\n")...)
	case asked:
		w.approvals = append(w.approvals, n.ApprovalAsked)
	case settled:
		w.settle(n.ID)
	case ended:
		w.approvals = nil
		if words := endWords(n.RunEnded); words != "" {
			w.did(w.look.Paint(theme.Faint, "✗ "+markdown.Truncate(text.OneLine(words), w.room()-2)))
		}
	}
}

// did adds lines to the last message.
func (w *window) did(lines ...string) {
	if n := len(w.messages); n > 0 {
		w.messages[n-1].did = append(w.messages[n-1].did, lines...)
	}
}

// How much of the past is shown: enough to recognize the place.
const (
	pastMessages = 4
	pastLines    = 12
)

func (w *window) recall() {
	all := w.messages
	w.messages = nil
	if len(all) > pastMessages {
		w.say(theme.Faint, "", "… "+text.Count(len(all)-pastMessages, "earlier message"))
		all = all[len(all)-pastMessages:]
	}
	for _, m := range all {
		if m.mine {
			w.put(blank, "")
			lines := say("❯ ", m.text, w.room())
			for i := range lines {
				lines[i] = w.look.Paint(theme.Strong, lines[i])
			}
			w.put(prose, clipLines(lines, false)...)
		} else {
			r := markdown.New(w.room(), w.look)
			w.put(blank, "")
			w.put(prose, clipLines(w.fold(append(r.Write(strings.TrimSpace(m.text)), r.Close()...)), true)...)
		}
		w.put(action, clipLines(m.did, true)...)
	}
	if len(all) > 0 {
		w.put(blank, "", w.look.Paint(theme.Faint, strings.Repeat("─", min(w.room(), 24))))
	}
}

// clipLines keeps the beginning of a message or, for an answer, its end.
func clipLines(lines []string, end bool) []string {
	switch {
	case len(lines) <= pastLines:
		return lines
	case end:
		return append([]string{"…"}, lines[len(lines)-pastLines:]...)
	}
	return append(lines[:pastLines:pastLines], "…")
}
