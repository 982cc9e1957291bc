package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// opening is how every line we write begins: what is torn and begins like it may
// be cut away, anything else is somebody else's and stays.
var opening = []byte(`{"timestamp":`)

func oursTorn(text []byte) bool {
	return bytes.HasPrefix(text, opening) || bytes.HasPrefix(opening, text)
}

// recover reads the log from its beginning, so that the writer knows what waits
// and where to go on, and mends its end.
func (w *Writer) recover() error {
	in := newLines(w.f)
	var group []entry // lines of an event that is not complete yet
	var groupAt int64
	known := false // a line of a session log was seen
	for {
		l, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read it: %w", err)
		}
		if l.blank() {
			continue
		}
		e, err := parseLine(l)
		if !known && err != nil && (l.ended || !oursTorn(l.text)) {
			return ErrNotLog
		}
		known = true
		switch {
		case err == nil && e.Left > 0:
			if len(group) == 0 || group[0].Seq != e.Seq {
				group, groupAt = nil, l.at
			}
			group = append(group, e)
		case err == nil:
			for _, g := range group {
				w.remember(g)
			}
			group = nil
			w.remember(e)
		}
		if !l.ended {
			return w.endTorn(l, err == nil, len(group) > 0, groupAt, in.offset)
		}
	}
	w.size = in.offset
	if len(group) > 0 {
		w.size = groupAt
		return w.cut()
	}
	return nil
}

// endTorn mends a last line that has no newline.
func (w *Writer) endTorn(l line, whole, inGroup bool, groupAt, end int64) error {
	switch {
	case inGroup:
		w.size = groupAt
		return w.cut()
	case !whole && oursTorn(l.text):
		w.size = l.at
		return w.cut()
	default:
		if _, err := w.f.Write([]byte("\n")); err != nil {
			return fmt.Errorf("end its last line: %w", err)
		}
		w.size = end + 1
		return nil
	}
}

// remember takes in a line of the log as if it had just been written.
func (w *Writer) remember(e entry) {
	w.last = max(w.last, e.Seq)
	switch e.kind {
	case "session_start":
		w.belongTo(e.SessionID)
	case "user_prompt":
		if e.PromptSeq != 0 {
			w.edit(e.PromptSeq, e.speech())
		} else if e.Seq != 0 {
			w.waiting[e.Seq] = e.speech()
		}
	case "message":
		w.rememberMessage(e)
	case "event":
		var about struct {
			Seq int64 `json:"seq"`
		}
		if name := strings.ToLower(e.EventType); (name == "refused" || name == "deleted") && json.Unmarshal(e.Data, &about) == nil {
			delete(w.waiting, about.Seq)
		}
	}
}

func (w *Writer) rememberMessage(e entry) {
	switch strings.ToLower(e.Role) {
	case "user":
		delete(w.waiting, e.PromptSeq)
	case "assistant":
		for _, raw := range e.ToolCalls {
			if c, ok := parseCall(raw); ok && isNotesTool(c.Name) {
				w.notes[c.CallID] = []byte(c.ArgsJSON)
			}
		}
	case "tool":
		delete(w.notes, e.CallID)
	}
}

// edit changes a prompt that still waits.
func (w *Writer) edit(seq int64, s speech) {
	if _, ok := w.waiting[seq]; ok {
		s.PromptSeq = 0
		w.waiting[seq] = s
	}
}
