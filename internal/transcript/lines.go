package transcript

import (
	"chorus/internal/chat"
	"chorus/internal/model"
)

// Lines is the conversation as the window has it, for another thread to begin with:
// every answer whose calls all have their results, and everything people said, also what
// nobody has taken yet. Notes are left out: whoever goes on makes its own.
func (l *Log) Lines() ([]chat.Line, error) {
	next, err := l.upcoming(l.seq)
	if err != nil {
		return nil, err
	}
	all := append(l.window[:len(l.window):len(l.window)], next...)
	if l.halfDone() {
		all = withoutTurn(all, l.turn.Seq)
	}
	var out []chat.Line
	for _, e := range all {
		if e.kind == note {
			continue
		}
		role := string(e.msg.Role)
		if kindOf(e.kind, e.msg) == results {
			role = "tool"
		}
		out = append(out, chat.Line{Role: role, From: e.msg.From, Blocks: e.msg.Blocks})
	}
	for _, w := range l.waiting {
		out = append(out, chat.Line{Role: string(model.User), From: w.From, Blocks: w.Blocks})
	}
	return out, nil
}

// halfDone reports that some call of the last answer has no result.
func (l *Log) halfDone() bool {
	for _, c := range l.Calls() {
		if !c.Done {
			return true
		}
	}
	return false
}

// withoutTurn leaves out an answer and its results.
func withoutTurn(all []entry, seq int64) []entry {
	var out []entry
	for _, e := range all {
		if e.seq != seq {
			out = append(out, e)
		}
	}
	return out
}
