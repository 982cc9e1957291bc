package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"chorus/internal/mirror/jsonl"
)

// opening is how every line of ours begins. An incomplete line that begins like this may
// be removed; any other was written by another program and stays.
var opening = []byte(`{"timestamp":`)

func oursTorn(text []byte) bool {
	return bytes.HasPrefix(text, opening) || bytes.HasPrefix(opening, text)
}

// recover reads the log from its beginning to find out which prompts wait
// and which event comes next, and repairs its end.
func (w *Writer) recover() error {
	in := jsonl.NewReader(w.f, jsonl.MaxLine)
	var group []entry // lines of an incomplete event
	var groupAt int64
	known := false // a line of a session log was seen
	for {
		l, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read it: %w", err)
		}
		if l.Blank() {
			continue
		}
		e, err := parseLine(l)
		if !known && err != nil && (l.Ended || !oursTorn(l.Text)) {
			return ErrNotLog
		}
		known = true
		switch {
		case err == nil && e.Left > 0:
			if len(group) == 0 || group[0].Seq != e.Seq {
				group, groupAt = nil, l.At
			}
			group = append(group, e)
		case err == nil:
			for _, g := range group {
				w.remember(g)
			}
			group = nil
			w.remember(e)
		}
		if !l.Ended {
			return w.endTorn(l, err == nil, len(group) > 0, groupAt, in.Offset)
		}
	}
	w.size = in.Offset
	if len(group) > 0 {
		w.size = groupAt
		return w.cut()
	}
	return nil
}

// endTorn repairs a last line without a newline.
func (w *Writer) endTorn(l jsonl.Line, whole, inGroup bool, groupAt, end int64) error {
	switch {
	case inGroup:
		w.size = groupAt
		return w.cut()
	case !whole && oursTorn(l.Text):
		w.size = l.At
		return w.cut()
	default:
		if _, err := w.f.Write([]byte("\n")); err != nil {
			return fmt.Errorf("end its last line: %w", err)
		}
		w.size = end + 1
		return nil
	}
}

// remember updates the state as if the line had just been written.
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
