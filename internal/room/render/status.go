package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room/split"
	"chorus/internal/text"
)

// The sizes of a status, which is edited about once a second and read at a glance.
const (
	statusLines   = 5    // newest calls shown
	statusLine    = 80   // characters of each
	statusPreview = 1200 // characters of the unfinished answer
	outputLength  = 200  // characters of a call and of its result in a dot message
)

// status shows progress: a line of numbers, the newest calls, and the answer so far.
func (v *View) status(r *run, now time.Time) string {
	lines := []string{v.headline(r, now)}
	calls := r.calls
	if len(calls) > statusLines {
		lines = append(lines, fmt.Sprintf("… %s before", text.Count(len(calls)-statusLines, "call")))
		calls = calls[len(calls)-statusLines:]
	}
	for _, c := range calls {
		lines = append(lines, c.line(now))
	}
	if r.trouble != "" {
		lines = append(lines, "*"+oneLine("trying again: "+r.trouble, 2*statusLine)+"*")
	}
	text := strings.Join(lines, "\n")
	if preview := r.preview(v.o, min(statusPreview, split.DefaultTarget-split.Length(text)-4)); preview != "" {
		text += "\n\n" + preview
	}
	return split.Clip(text, split.DefaultHard)
}

func (v *View) headline(r *run, now time.Time) string {
	doing := "working"
	switch {
	case v.asks(r):
		doing = "waiting for an approval"
	case r.note != "":
		doing = oneLine(r.note, statusLine)
	case r.step <= 1 && len(r.calls) == 0 && r.live == "":
		doing = "thinking"
	}
	parts := []string{"**" + doing + "**"}
	if r.step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", r.step))
	}
	if !v.asks(r) { // nothing changes while a person decides, and the clock alone is not worth an edit every few seconds
		parts = append(parts, elapsed(now.Sub(r.began)))
	}
	if r.usage != (chat.Usage{}) {
		parts = append(parts, tokens(r.usage))
	}
	if v.o.Price != nil {
		if cost := money(v.o.Price(r.model, r.usage)); cost != "" {
			parts = append(parts, cost)
		}
	}
	return strings.Join(parts, " · ")
}

// line describes one call and what became of it.
func (c *call) line(now time.Time) string {
	what := cmp.Or(c.label, c.name)
	state := "…"
	switch {
	case c.done && c.outcome != chat.Ran && c.outcome != "":
		state = string(c.outcome)
	case c.done && c.failed:
		state = "failed"
		if why, _, _ := strings.Cut(strings.TrimSpace(c.result), "\n"); why != "" {
			state += ": " + oneLine(why, statusLine)
		}
	case c.done:
		state = "ok"
	case c.note != "":
		state = oneLine(c.note, statusLine)
	}
	switch {
	case c.done && c.took >= time.Second:
		state += " " + elapsed(c.took)
	case !c.done && !c.began.IsZero() && now.Sub(c.began) >= time.Second:
		state += " " + elapsed(now.Sub(c.began))
	}
	return "- `" + oneLine(what, statusLine) + "` " + state
}

// preview returns the end of the unfinished answer, or what was said before the calls.
func (r *run) preview(o Options, limit int) string {
	text := r.live
	if strings.TrimSpace(text) == "" {
		text = r.aside
	}
	pieces := split.Split(prepared(o, text), split.Options{Target: limit})
	if len(pieces) == 0 || limit < statusLine {
		return ""
	}
	last := pieces[len(pieces)-1].Text
	if len(pieces) > 1 {
		return "…\n" + last
	}
	return last
}

// asides returns the dot messages: what was thought, and calls with their results.
func (v *View) asides(r *run) (out []Message) {
	if v.o.Thinking {
		for i, t := range r.thought {
			m := Message{Key: fmt.Sprintf("%s/thought/%d", r.id, i), Text: thought + t.text, Aside: true, Final: true}
			if split.Length(m.Text) > split.DefaultTarget {
				m.Text, m.File = strings.TrimSpace(thought), &split.File{Name: "thinking.txt", Text: t.text}
			}
			out = append(out, m)
		}
	}
	if !v.o.ToolOutput {
		return out
	}
	for i, c := range r.calls {
		if !c.done {
			continue
		}
		text := fmt.Sprintf(".%s>[%s]: %s\n.%s<[%s]: %s", v.o.Name, c.name, cut(c.args), v.o.Name, c.name, cut(c.result))
		out = append(out, Message{Key: fmt.Sprintf("%s/tool/%d", r.id, i), Text: text, Aside: true, Final: true})
	}
	return out
}

// cut puts a text on one line of 200 characters, and says how long it was.
func cut(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if n := split.Length(s); n > outputLength {
		return fmt.Sprintf("%s (%s characters)", split.Clip(s, outputLength), text.Thousands(n))
	}
	return s
}

// oneLine returns a text on one line, without marks that would break it.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "`", "'")), " ")
	return split.Clip(s, limit)
}
