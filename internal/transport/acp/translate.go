package acp

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/chat"
)

// translator converts events and live deltas to updates. It tracks which parts of the current answer were sent, so that
// each is sent once. It is for one goroutine.
type translator struct {
	label func(name string, args []byte) string
	dir   string

	run           string
	step, attempt int
	text, thought string // of this attempt, as sent
	closed        bool   // its Said event was handled, or it is not for people
	stop          chat.Stop
	calls         map[sdk.ToolCallId]*call
}

// call is a call without a result so far.
type call struct {
	kind   sdk.ToolKind
	output string  // its last words
	plan   *string // the plan that it writes
	told   time.Time
}

func newTranslator(label func(string, []byte) string, dir string) *translator {
	return &translator{label: label, dir: dir, step: -1, closed: true, calls: map[sdk.ToolCallId]*call{}}
}

// event converts an event for the editor; mine is a prompt that it sent itself.
func (t *translator) event(e chat.Event, mine bool) []sdk.SessionUpdate {
	switch b := e.Body.(type) {
	case chat.Received:
		if !b.Prompt || mine || b.Forgotten {
			return nil
		}
		return said(b.Blocks)
	case chat.Steered:
		return said(b.Blocks)
	case chat.RunStarted:
		t.run = b.Run
		t.begin(-1, 0)
		t.closed = true
	case chat.Asked:
		t.run = cmp.Or(e.Run, t.run)
		out := t.begin(b.Step, b.Attempt)
		t.closed = b.Purpose != chat.ForTurn && b.Purpose != ""
		return out
	case chat.Said:
		t.run = cmp.Or(e.Run, t.run)
		return t.said(b)
	case chat.ToolBegan:
		id := callID(cmp.Or(e.Run, t.run), b.Call)
		return []sdk.SessionUpdate{sdk.UpdateToolCall(id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress))}
	case chat.ToolRan:
		return t.ran(callID(cmp.Or(e.Run, t.run), b.Call), b)
	case chat.Compacted:
		return []sdk.SessionUpdate{sdk.UpdateAgentThoughtText("The conversation so far was summarised to make room.\n")}
	case chat.RunEnded:
		t.begin(-1, 0)
		t.closed = true
		if b.Reason != chat.EndFailed && b.Text != "" {
			return []sdk.SessionUpdate{sdk.UpdateAgentMessageText("\n\n" + b.Text)}
		}
	}
	return nil
}

// said converts a person's message.
func said(blocks chat.Blocks) []sdk.SessionUpdate {
	text := blocks.Text()
	for _, b := range blocks {
		if image, ok := b.(chat.Image); ok {
			text += fmt.Sprintf("\n[picture %s]", cmp.Or(image.Name, image.MediaType))
		}
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return []sdk.SessionUpdate{sdk.UpdateUserMessageText(text)}
}

// begin starts another attempt at an answer. Parts of a lost attempt cannot be taken back.
func (t *translator) begin(step, attempt int) []sdk.SessionUpdate {
	if step == t.step && attempt == t.attempt {
		return nil
	}
	var out []sdk.SessionUpdate
	if t.text != "" && !t.closed {
		out = append(out, sdk.UpdateAgentMessageText("…\n\n"))
	}
	t.step, t.attempt, t.text, t.thought, t.closed = step, attempt, "", "", false
	return out
}

func (t *translator) said(b chat.Said) []sdk.SessionUpdate {
	out := t.begin(b.Step, b.Attempt)
	if t.closed {
		return out // a summary for the model
	}
	t.closed, t.stop = true, b.Stop
	if b.Error != nil {
		if t.text != "" {
			out = append(out, sdk.UpdateAgentMessageText("…\n\n"))
		}
		if !b.Error.Final {
			out = append(out, sdk.UpdateAgentThoughtText(cmp.Or(b.Error.Message, b.Error.Kind)+"; trying again\n"))
		}
		return out
	}
	var thought strings.Builder
	for _, block := range b.Blocks {
		if th, ok := block.(chat.Thinking); ok {
			thought.WriteString(th.Text)
		}
	}
	if rest := strings.TrimPrefix(thought.String(), t.thought); rest != "" && strings.HasPrefix(thought.String(), t.thought) {
		out = append(out, sdk.UpdateAgentThoughtText(rest))
	}
	text := b.Blocks.Text()
	if chat.IsSilent(text) {
		text = "" // it has nothing to say
	}
	rest, ok := strings.CutPrefix(text, t.text)
	if !ok {
		rest = "…\n\n" + text
	}
	if rest != "" {
		out = append(out, sdk.UpdateAgentMessageText(rest))
	}
	for _, use := range b.Blocks.Calls() {
		id, kind := callID(t.run, use.ID), kindOf(use.Name)
		t.calls[id] = &call{kind: kind, plan: planOf(use)}
		update := sdk.StartToolCall(id, cmp.Or(t.label(use.Name, use.Args), use.Name), sdk.WithStartKind(kind), sdk.WithStartStatus(sdk.ToolCallStatusPending), sdk.WithStartRawInput(rawInput(use.Args)))
		update.ToolCall.Locations = locations(use.Args, t.dir)
		out = append(out, update)
	}
	return out
}

// ran converts the result of a call: changes to diffs, anything else to text.
func (t *translator) ran(id sdk.ToolCallId, b chat.ToolRan) []sdk.SessionUpdate {
	var plan *string
	if c := t.calls[id]; c != nil && b.Succeeded() {
		plan = c.plan
	}
	delete(t.calls, id)
	status := sdk.ToolCallStatusCompleted
	if !b.Succeeded() {
		status = sdk.ToolCallStatusFailed
	}
	content := diffs(b.Diff, t.dir)
	if text := b.Blocks.Text(); text != "" && len(content) == 0 {
		content = append(content, sdk.ToolContent(sdk.TextBlock(fence(head(text, maxResult)))))
	}
	options := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(status), sdk.WithUpdateContent(content)}
	var at []sdk.ToolCallLocation
	for _, name := range append(b.Changed, b.Read...) {
		if path, ok := absolute(name, t.dir); ok {
			at = append(at, sdk.ToolCallLocation{Path: path})
		}
	}
	if len(at) > 0 && len(at) <= maxLocations {
		options = append(options, sdk.WithUpdateLocations(at))
	}
	out := []sdk.SessionUpdate{sdk.UpdateToolCall(id, options...)}
	if plan != nil {
		out = append(out, sdk.UpdatePlan(steps(*plan)...))
	}
	return out
}

// live returns the part of a delta that was not sent.
func (t *translator) live(l chat.Live) []sdk.SessionUpdate {
	switch l := l.(type) {
	case chat.Delta:
		return t.delta(l)
	case chat.Progress:
		return t.progress(l)
	}
	return nil
}

func (t *translator) delta(d chat.Delta) []sdk.SessionUpdate {
	if d.Run != t.run && t.run != "" || d.Step < t.step || d.Step == t.step && d.Attempt < t.attempt {
		return nil // of something that has ended
	}
	t.run = d.Run
	out := t.begin(d.Step, d.Attempt)
	have := &t.text
	if d.What == chat.DeltaThinking {
		have = &t.thought
	}
	if t.closed || d.What == chat.DeltaArgs || d.Offset < 0 || d.Offset > len(*have) || d.Offset+len(d.Text) <= len(*have) {
		return out // not for people, after a gap that the whole answer will fill, or already sent
	}
	more := d.Text[len(*have)-d.Offset:]
	*have += more
	if d.What == chat.DeltaThinking {
		return append(out, sdk.UpdateAgentThoughtText(more))
	}
	return append(out, sdk.UpdateAgentMessageText(more))
}

// Limits for the output of a running command.
const (
	maxProgress  = 4 << 10
	progressTime = 250 * time.Millisecond
)

func (t *translator) progress(p chat.Progress) []sdk.SessionUpdate {
	id := callID(p.Run, p.Call)
	c := t.calls[id]
	if c == nil || p.Text == "" {
		return nil
	}
	c.output += p.Text
	if over := len(c.output) - maxProgress; over > 0 {
		c.output = strings.ToValidUTF8(c.output[over:], "")
	}
	if time.Since(c.told) < progressTime {
		return nil // the result contains all of it
	}
	c.told = time.Now()
	return []sdk.SessionUpdate{sdk.UpdateToolCall(id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress),
		sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(fence(c.output)))}))}
}
