package toollog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/text"
)

func (b *batch) take(ev chat.Event) error {
	b.st.Seq = ev.Seq
	switch body := ev.Body.(type) {
	case chat.Received:
		if body.Prompt {
			b.st.Waiting[ev.Seq] = idOf(ev)
		}
	case chat.Steered:
		b.st.Waiting[ev.Seq] = idOf(ev)
	case chat.Refused:
		delete(b.st.Waiting, body.Seq)
	case chat.RunStarted:
		b.st.Run, b.st.Spoke, b.st.Hours, b.st.Trigger, b.st.Calls = body.Run, nil, nil, "", map[string]Call{}
	case chat.Took:
		for _, seq := range body.Seqs {
			if id := b.st.Waiting[seq]; id != "" {
				b.st.Trigger = id
			}
			delete(b.st.Waiting, seq)
		}
	case chat.Said:
		b.said(ev, body)
	case chat.ToolRan:
		return b.ran(ev, body)
	case chat.RunEnded:
		return b.ended(ev, body)
	case chat.Deleted:
		return b.deleted(body.Seq)
	case chat.Rolled:
		return b.prune(body.KeepFrom)
	case chat.Compacted:
		return b.prune(body.UpTo + 1)
	case chat.Cleared:
		return b.prune(body.UpTo + 1)
	}
	return nil
}

// idOf returns a message's id in the files: the platform's, or else the one in log.jsonl.
func idOf(ev chat.Event) string {
	if ev.PlatformID != "" {
		return ev.PlatformID
	}
	return placeID(ev.Seq)
}

func placeID(seq int64) string { return fmt.Sprintf("evt-%d", seq) }

// said remembers the calls of an answer, and that people could see its text.
func (b *batch) said(ev chat.Event, said chat.Said) {
	if said.Error != nil {
		return
	}
	words := said.Blocks.Text()
	if strings.TrimSpace(words) != "" {
		b.st.Spoke = text.AddNew(b.st.Spoke, placeID(ev.Seq), ev.PlatformID)
	}
	for _, use := range said.Blocks.Calls() {
		b.st.Calls[use.ID] = Call{ID: use.ID, Name: use.Name, Input: input(use.Args), MessageID: b.st.Trigger, Text: words}
	}
}

// input stores what the model wrote: text that is not JSON becomes a JSON string.
func input(args json.RawMessage) json.RawMessage {
	switch {
	case len(strings.TrimSpace(string(args))) == 0:
		return json.RawMessage(`{}`)
	case json.Valid(args):
		return args
	default:
		return quote(string(args))
	}
}

func quote(text string) json.RawMessage {
	line, err := encode(text)
	if err != nil { // a string always has a JSON form
		return json.RawMessage(`""`)
	}
	return bytes.TrimSuffix(line, []byte("\n"))
}

// ran writes the line of a call into the file of the hour in which its result arrived.
func (b *batch) ran(ev chat.Event, ran chat.ToolRan) error {
	call, ok := b.st.Calls[ran.Call]
	if !ok {
		call = Call{ID: ran.Call, Name: ran.Name, Input: json.RawMessage(`{}`), MessageID: b.st.Trigger}
	}
	delete(b.st.Calls, ran.Call)
	entry := Entry{Call: call, Result: resultOf(ran), At: ev.At.UTC(), Run: cmp.Or(ev.Run, b.st.Run), Seq: ev.Seq}
	if hour := hourOf(ev.At); !slices.Contains(b.st.Hours, hour) {
		b.st.Hours = append(b.st.Hours, hour)
	}
	return b.add(entry)
}

func resultOf(ran chat.ToolRan) Result {
	text := ran.Blocks.Text()
	var r Result
	if ran.Failed || ran.Outcome != chat.Ran && ran.Outcome != "" {
		if r.Error = text; strings.TrimSpace(text) == "" {
			r.Error = "failed: " + string(ran.Outcome)
		}
		text = ""
	}
	r.Output = quote(text)
	for _, block := range ran.Blocks {
		if img, ok := block.(chat.Image); ok {
			r.Images = append(r.Images, Image{Blob: img.Blob, MimeType: img.MediaType, Name: img.Name})
		}
	}
	return r
}

// ended adds to the run's lines which messages they led to. A run without visible messages adds none.
func (b *batch) ended(ev chat.Event, ended chat.RunEnded) error {
	if len(b.st.Spoke) > 0 || ended.Text != "" {
		b.st.Spoke = text.AddNew(b.st.Spoke, placeID(ev.Seq), ev.PlatformID)
	}
	ids, run, hours := b.st.Spoke, cmp.Or(ended.Run, b.st.Run), b.st.Hours
	b.st.Spoke, b.st.Hours, b.st.Trigger, b.st.Calls = nil, nil, "", map[string]Call{}
	if len(ids) == 0 || len(hours) == 0 {
		return nil
	}
	return b.edit(hours, func(e *Entry) bool {
		if e.Run == run && e.Seq > 0 {
			e.Call.BotMessageIDs = text.AddNew(e.Call.BotMessageIDs, ids...)
		}
		return true
	})
}

// deleted forgets a waiting message, or the calls that led to an answer.
func (b *batch) deleted(seq int64) error {
	if _, ok := b.st.Waiting[seq]; ok {
		delete(b.st.Waiting, seq)
		return nil
	}
	return b.edit(nil, func(e *Entry) bool { return !e.ledTo(placeID(seq)) }, placeID(seq))
}

func (b *batch) prune(oldest int64) error {
	return b.edit(nil, func(e *Entry) bool { return !e.before(oldest) })
}

// ledTo reports whether the call led to one of these messages.
func (e *Entry) ledTo(ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(e.Call.BotMessageIDs, id) })
}

// before reports whether the result is before a place. Lines that are not ours have none.
func (e *Entry) before(oldest int64) bool { return e.Seq > 0 && e.Seq < oldest }
