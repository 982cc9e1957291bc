package feed

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Options adds what is not in the event. The zero value is useful.
type Options struct {
	// Label describes a call in a few words; nil or "": no label.
	Label func(name string, args []byte) string
	// Args returns the arguments of an earlier call, so that approval_required can
	// show them; nil, or no bytes: left out.
	Args func(callID string) []byte
	// Model, as provider/model, is named in session_started.
	Model string
}

// Calls remembers the arguments of open calls for Options.Args: pass it every event
// before translating it. It must be used from one goroutine.
type Calls map[string][]byte

// Note notes the calls of an event and forgets those that have a result.
func (c Calls) Note(ev chat.Event) {
	switch b := ev.Body.(type) {
	case chat.Said:
		if b.Error != nil {
			return
		}
		for _, call := range b.Blocks.Calls() {
			c[call.ID] = call.Args
		}
	case chat.ToolRan:
		delete(c, b.Call)
	}
}

// Args can be used as Options.Args.
func (c Calls) Args(callID string) []byte { return c[callID] }

func (o Options) label(name string, args []byte) string {
	if o.Label == nil {
		return ""
	}
	return o.Label(name, args)
}

// Translate returns the objects of an event, in order. It keeps no state.
func Translate(ev chat.Event, o Options) []Item {
	if ev.Body == nil {
		return nil
	}
	items := translate(ev, o)
	if ev.Seq == 1 {
		items = append([]Item{sessionStarted(ev, o)}, items...)
	}
	return items
}

func head(ev chat.Event, t Type) Head {
	return Head{Type: t, SessionID: ev.Thread.Thread(), Seq: ev.Seq, At: ev.At.UTC(), Run: ev.Run}
}

func translate(ev chat.Event, o Options) []Item {
	switch b := ev.Body.(type) {
	case chat.Received:
		return []Item{UserMessage{head(ev, TypeUserMessage), b.Blocks.Text(), b.From, b.Prompt,
			ev.PlatformID, b.ReplyTo, b.Intake, attachments(b.Blocks)}}
	case chat.Refused:
		return []Item{Refused{head(ev, TypeRefused), b.Seq, b.Why}}
	case chat.RunStarted:
		return []Item{runStarted(ev, b)}
	case chat.Said:
		return said(ev, b, o)
	case chat.ToolRan:
		return []Item{toolResult(ev, b)}
	case chat.ApprovalAsked:
		return []Item{approvalRequired(ev, b, o)}
	case chat.ApprovalAnswered:
		return []Item{ApprovalResolved{head(ev, TypeApprovalResolved), b.Call, b.ID, b.OK, b.By, b.Note}}
	case chat.Steered:
		return []Item{Steered{head(ev, TypeSteered), b.Blocks.Text(), b.From, b.Mode, ev.PlatformID, attachments(b.Blocks)}}
	case chat.Compacted:
		return []Item{Compacted{head(ev, TypeCompacted), b.UpTo, b.Summary, b.How, b.Read, b.Modified, b.Tokens, usage(b.Usage)}}
	case chat.Cleared:
		return []Item{Cleared{head(ev, TypeCleared), b.UpTo, b.By}}
	case chat.RunEnded:
		return []Item{runEnded(ev, b)}
	case chat.Edited, chat.Deleted, chat.Reacted, chat.Imported, chat.Took, chat.Asked,
		chat.ToolBegan, chat.Deferred, chat.Settled, chat.ApprovalNoted, chat.AbortAsked, chat.Noted, chat.Rolled, chat.Forked:
		return []Item{trace(ev, string(b.Kind()), b)}
	default:
		return nil // the set of bodies is closed
	}
}

func sessionStarted(ev chat.Event, o Options) Item {
	item := SessionStarted{Head: head(ev, TypeSessionStarted), Agent: ev.Thread.Agent()}
	item.Run, item.More = "", true // the first event follows
	item.Provider, item.Model = splitModel(o.Model)
	switch b := ev.Body.(type) {
	case chat.Imported:
		item.Resumed = true
	case chat.Forked:
		item.Resumed = true
		item.ForkedFrom = b.From.Thread()
	}
	return item
}

func splitModel(name string) (provider, model string) {
	if provider, model, ok := strings.Cut(name, "/"); ok {
		return provider, model
	}
	return "", name
}

func runStarted(ev chat.Event, b chat.RunStarted) Item {
	item := RunStarted{
		Head: head(ev, TypeRunStarted), Mode: b.Settings.Mode,
		Permissions: b.Settings.Profile, MaxIterations: b.Settings.MaxSteps,
	}
	item.Run = cmp.Or(b.Run, ev.Run)
	item.Provider, item.Model = splitModel(b.Model)
	return item
}

// said becomes the text, if there is any, and then each call. A failed attempt becomes a
// trace: the error of a run, if there is one, is its end.
func said(ev chat.Event, b chat.Said, o Options) []Item {
	var items []Item
	for _, data := range b.Unreadable {
		item := trace(ev, "parse_error", data).(Trace)
		item.More = true // what was said, or the failure, follows
		items = append(items, item)
	}
	if b.Error != nil {
		return append(items, trace(ev, "error", failedAttempt{b.Step, b.Attempt, *b.Error}))
	}
	unreadable := len(items)
	calls := b.Blocks.Calls()
	if text := b.Blocks.Text(); text != "" {
		item := AssistantMessage{head(ev, TypeAssistantMessage), b.Step, b.Attempt, text,
			thinking(b.Blocks), string(b.Stop), b.Partial, len(calls), nil}
		if item.More = len(calls) > 0; !item.More {
			item.Usage = spent(b.Usage)
		}
		items = append(items, item)
	}
	for i, c := range calls {
		item := ToolCall{head(ev, TypeToolCall), c.ID, c.Name, argsText(c.Args), o.label(c.Name, c.Args), b.Step, nil}
		if item.More = i < len(calls)-1; !item.More {
			item.Usage = spent(b.Usage)
		}
		items = append(items, item)
	}
	if len(items) == unreadable {
		items = append(items, trace(ev, string(b.Kind()), b)) // its sequence number must appear anyway
	}
	return items
}

// spent returns nil for zero usage.
func spent(u chat.Usage) *Usage {
	if u.Total() == 0 {
		return nil
	}
	out := usage(u)
	return &out
}

type failedAttempt struct {
	Step    int `json:"step"`
	Attempt int `json:"attempt"`
	chat.Failure
}

func thinking(blocks chat.Blocks) string {
	var out strings.Builder
	for _, block := range blocks {
		if t, ok := block.(chat.Thinking); ok {
			out.WriteString(t.Text)
		}
	}
	return out.String()
}

// argsText returns the arguments as the model wrote them. The journal stores text
// that is not JSON as a JSON string, which is decoded here.
func argsText(args []byte) string {
	if len(args) == 0 {
		return "{}"
	}
	var text string
	if args[0] == '"' && json.Unmarshal(args, &text) == nil {
		return text
	}
	return string(args)
}

func attachments(blocks chat.Blocks) []Attachment {
	var list []Attachment
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Image:
			list = append(list, Attachment{Name: b.Name, MediaType: b.MediaType, Blob: b.Blob, Size: b.Size})
		case chat.File:
			list = append(list, Attachment{Name: b.Name, MediaType: b.MediaType, Blob: b.Blob, Path: b.Path, Size: b.Size})
		}
	}
	return list
}

func toolResult(ev chat.Event, b chat.ToolRan) Item {
	outcome := cmp.Or(b.Outcome, chat.Ran)
	text := b.Blocks.Text()
	result := Result{OK: b.Succeeded(), ExitCode: b.Exit}
	if result.OK {
		result.Stdout = text
	} else {
		result.Stderr = text
		result.Diagnostics = []Diagnostic{diagnostic(outcome)}
	}
	if images := attachments(b.Blocks); len(images) > 0 {
		result.Data = &Data{Images: images}
	}
	return ToolResult{head(ev, TypeToolResult), b.Call, b.Name, result, string(outcome), b.TookMS, b.Read, b.Changed, b.Diff}
}

func diagnostic(outcome chat.Outcome) Diagnostic {
	switch outcome {
	case chat.Denied:
		return Diagnostic{"denied", "the call was not allowed; nothing ran"}
	case chat.Skipped:
		return Diagnostic{"skipped", "the call was skipped; nothing ran"}
	case chat.Interrupted:
		return Diagnostic{"interrupted", "the call was cut off; its effects are unknown"}
	case chat.Invalid:
		return Diagnostic{"invalid", "unknown tool or wrong arguments; nothing ran"}
	default:
		return Diagnostic{"failed", "the call ran and failed"}
	}
}

func approvalRequired(ev chat.Event, b chat.ApprovalAsked, o Options) Item {
	item := ApprovalRequired{
		Head: head(ev, TypeApprovalRequired), CallID: b.Call, Tool: b.Name, Reason: "RequiresApproval",
		ApprovalID: b.ID, Actions: b.Actions, Rule: b.Rule, Preview: b.Preview, Unbound: b.Unbound, Why: b.Why, Assessment: b.Assessment, Until: b.Until.UTC(), Fields: b.Fields,
	}
	args := b.Args
	if len(args) == 0 && o.Args != nil {
		args = o.Args(b.Call)
	}
	if len(args) > 0 {
		item.ArgsJSON = argsText(args)
		item.Label = o.label(b.Name, args)
	}
	return item
}

func usage(u chat.Usage) Usage { return Usage{u.Input, u.Output, u.CacheRead, u.CacheWrite} }

func runEnded(ev chat.Event, b chat.RunEnded) Item {
	switch b.Reason {
	case chat.EndFailed, chat.EndBudget:
		item := Error{Head: head(ev, TypeError), Message: b.Text, StopReason: string(b.Reason),
			Iterations: b.Steps, Usage: usage(b.Usage), Cost: USD(b.Cost)}
		item.Run = cmp.Or(b.Run, ev.Run)
		if b.Error != nil {
			item.Kind = b.Error.Kind
			if item.Message == "" {
				item.Message = b.Error.Message
			}
		}
		item.Message = cmp.Or(item.Message, "the run ended: "+string(b.Reason))
		return item
	default:
		item := Completed{head(ev, TypeCompleted), string(b.Reason), b.Text, b.Steps, usage(b.Usage), USD(b.Cost)}
		item.Run = cmp.Or(b.Run, ev.Run)
		return item
	}
}

func trace(ev chat.Event, kind string, data any) Item {
	var raw json.RawMessage
	if body, ok := data.(chat.Body); ok {
		raw, _ = chat.EncodeBody(body) // a body that was decoded can be encoded
	} else {
		raw, _ = json.Marshal(data)
	}
	if raw == nil {
		raw = json.RawMessage("null")
	}
	return Trace{head(ev, TypeTrace), kind, raw}
}

// Live returns the object of a live piece, which is not in the journal; never nil. Pieces of
// a call's arguments, which are complete in tool_call, and progress of the run itself are
// traces.
func Live(thread chat.ThreadID, live chat.Live) Item {
	return liveAt(thread, live, time.Now().UTC())
}

func liveAt(thread chat.ThreadID, live chat.Live, at time.Time) Item {
	h := func(t Type, run string) Head {
		return Head{Type: t, SessionID: thread.Thread(), At: at, Run: run}
	}
	side := func(kind, run string, data any) Item {
		raw, _ := json.Marshal(data) // text and numbers only
		return Trace{h(TypeTrace, run), kind, raw}
	}
	switch l := live.(type) {
	case chat.Delta:
		switch l.What {
		case chat.DeltaText:
			return TextDelta{h(TypeTextDelta, l.Run), l.Step, l.Attempt, l.Offset, l.Text}
		case chat.DeltaThinking:
			return ThinkingDelta{h(TypeThinkingDelta, l.Run), l.Step, l.Attempt, l.Offset, l.Text}
		default:
			return side("args_delta", l.Run, argsDelta{l.Step, l.Attempt, l.Call, l.Offset, l.Text})
		}
	case chat.Progress:
		if l.Call != "" {
			return ToolProgress{h(TypeToolProgress, l.Run), l.Call, l.Tool, l.Text}
		}
		return side("progress", l.Run, l.Text)
	default: // the set of live pieces is closed
		return side("live", "", nil)
	}
}

type argsDelta struct {
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	CallID  string `json:"callId"`
	Offset  int    `json:"offset"`
	Text    string `json:"text"`
}
