package toollog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
)

// sink is where entries go: the files, or memory.
type sink interface {
	add(Entry) error
	// edit gives entries to change, which says whether they stay: those in these files, or
	// with none named all. Only entries that hold one of the needles need be looked at.
	edit(files []string, change func(*Entry) bool, needles ...string) error
}

// fold makes entries of events.
type fold struct {
	st  state
	out sink
}

// Entries gives the calls of a thread as the files would have them after these
// events, in the order of the journal: for a context, which reads no files. Where the
// events begin in the middle of a thread, calls may lack what was said before.
func Entries(events []chat.Event) []Entry {
	var m memory
	f := &fold{state{}.clone(), &m}
	for _, ev := range events {
		_ = f.take(ev) // memory does not fail
	}
	return m.entries
}

// memory is a sink without files.
type memory struct{ entries []Entry }

var _ sink = (*memory)(nil)

func (m *memory) add(e Entry) error {
	m.entries = append(m.entries, e)
	return nil
}

func (m *memory) edit(_ []string, change func(*Entry) bool, _ ...string) error {
	kept := m.entries[:0]
	for _, e := range m.entries {
		if change(&e) {
			kept = append(kept, e)
		}
	}
	m.entries = kept
	return nil
}

func (f *fold) take(ev chat.Event) error {
	f.st.Seq = ev.Seq
	switch body := ev.Body.(type) {
	case chat.Received:
		if body.Prompt {
			f.st.Waiting[ev.Seq] = idOf(ev)
		}
	case chat.Steered:
		f.st.Waiting[ev.Seq] = idOf(ev)
	case chat.Refused:
		delete(f.st.Waiting, body.Seq)
	case chat.RunStarted:
		f.st.Run, f.st.Spoke, f.st.Hours, f.st.Trigger, f.st.Calls = body.Run, nil, nil, "", map[string]Call{}
	case chat.Took:
		for _, seq := range body.Seqs {
			if id := f.st.Waiting[seq]; id != "" {
				f.st.Trigger = id
			}
			delete(f.st.Waiting, seq)
		}
	case chat.Said:
		f.said(ev, body)
	case chat.ToolRan:
		return f.ran(ev, body)
	case chat.RunEnded:
		return f.ended(ev, body)
	case chat.Deleted:
		return f.deleted(body.Seq)
	case chat.Rolled:
		return f.prune(body.KeepFrom)
	case chat.Compacted:
		return f.prune(body.UpTo + 1)
	case chat.Cleared:
		return f.prune(body.UpTo + 1)
	}
	return nil
}

// idOf is what a message is called in the files: as on its platform, else as in log.jsonl.
func idOf(ev chat.Event) string {
	if ev.PlatformID != "" {
		return ev.PlatformID
	}
	return placeID(ev.Seq)
}

func placeID(seq int64) string { return fmt.Sprintf("evt-%d", seq) }

// said remembers the calls of an answer, and that people could see its text.
func (f *fold) said(ev chat.Event, said chat.Said) {
	if said.Error != nil {
		return
	}
	text := said.Blocks.Text()
	if strings.TrimSpace(text) != "" {
		f.st.Spoke = union(f.st.Spoke, []string{placeID(ev.Seq), ev.PlatformID})
	}
	for _, use := range said.Blocks.Calls() {
		f.st.Calls[use.ID] = Call{ID: use.ID, Name: use.Name, Input: input(use.Args), MessageID: f.st.Trigger, Text: text}
	}
}

// input keeps what the model wrote: text that is not JSON becomes a JSON string.
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

// ran writes the line of a call, into the file of the hour it was answered in.
func (f *fold) ran(ev chat.Event, ran chat.ToolRan) error {
	call, ok := f.st.Calls[ran.Call]
	if !ok {
		call = Call{ID: ran.Call, Name: ran.Name, Input: json.RawMessage(`{}`), MessageID: f.st.Trigger}
	}
	delete(f.st.Calls, ran.Call)
	entry := Entry{Call: call, Result: resultOf(ran), At: ev.At.UTC(), Run: cmp.Or(ev.Run, f.st.Run), Seq: ev.Seq}
	if hour := hourOf(ev.At); !slices.Contains(f.st.Hours, hour) {
		f.st.Hours = append(f.st.Hours, hour)
	}
	return f.out.add(entry)
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

// ended adds to the run's lines which messages it led to. A run that nobody heard of adds none.
func (f *fold) ended(ev chat.Event, ended chat.RunEnded) error {
	if len(f.st.Spoke) > 0 || ended.Text != "" {
		f.st.Spoke = union(f.st.Spoke, []string{placeID(ev.Seq), ev.PlatformID})
	}
	ids, run, hours := f.st.Spoke, cmp.Or(ended.Run, f.st.Run), f.st.Hours
	f.st.Spoke, f.st.Hours, f.st.Trigger, f.st.Calls = nil, nil, "", map[string]Call{}
	if len(ids) == 0 || len(hours) == 0 {
		return nil
	}
	return f.out.edit(hours, func(e *Entry) bool {
		if e.Run == run && e.Seq > 0 {
			e.Call.BotMessageIDs = union(e.Call.BotMessageIDs, ids)
		}
		return true
	})
}

// deleted forgets a message that waits, or the calls that led to an answer.
func (f *fold) deleted(seq int64) error {
	if _, ok := f.st.Waiting[seq]; ok {
		delete(f.st.Waiting, seq)
		return nil
	}
	return f.out.edit(nil, func(e *Entry) bool { return !e.ledTo(placeID(seq)) }, placeID(seq))
}

func (f *fold) prune(oldest int64) error {
	return f.out.edit(nil, func(e *Entry) bool { return !e.before(oldest) })
}

// ledTo reports whether one of these messages came of the call.
func (e *Entry) ledTo(ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(e.Call.BotMessageIDs, id) })
}

// before reports whether the result stands before a place. Lines that are not ours have none.
func (e *Entry) before(oldest int64) bool { return e.Seq > 0 && e.Seq < oldest }
