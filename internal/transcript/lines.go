package transcript

import (
	"chorus/internal/chat"
	"chorus/internal/model"
	"slices"
)

// Lines returns the conversation in the window, for another thread to begin with: every answer
// whose calls all have results, and everything people said, including what nobody has taken yet.
// Notes are left out, because the other thread makes its own.
func (l *Log) Lines() ([]chat.Line, error) {
	placed, err := l.PlacedLines()
	out := make([]chat.Line, 0, len(placed))
	for _, p := range placed {
		out = append(out, p.Line)
	}
	return out, err
}

// PlacedLine is a line and the event that brought it.
type PlacedLine struct {
	chat.Line
	Seq int64
}

// PlacedLines is like Lines, but says where each line comes from.
func (l *Log) PlacedLines() ([]PlacedLine, error) {
	next, err := l.upcoming(l.seq)
	if err != nil {
		return nil, err
	}
	all := append(l.window[:len(l.window):len(l.window)], next...)
	if l.halfDone() {
		all = withoutTurn(all, l.turn.Seq)
	}
	var out []PlacedLine
	for _, e := range all {
		if e.kind == note {
			continue
		}
		role := string(e.msg.Role)
		if kindOf(e.kind, e.msg) == results {
			role = "tool"
		}
		out = append(out, PlacedLine{chat.Line{Role: role, From: e.msg.From, Blocks: e.msg.Blocks}, e.seq})
	}
	for _, w := range l.waiting {
		if w.Silent {
			continue
		}
		out = append(out, PlacedLine{chat.Line{Role: string(model.User), From: w.From, Blocks: w.Blocks}, w.Seq})
	}
	return out, nil
}

// halfDone reports whether some call of the last answer has no result.
func (l *Log) halfDone() bool {
	return slices.ContainsFunc(l.Calls(), func(c Call) bool { return !c.Done })
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
