package session

import (
	"encoding/json"
	"strings"

	"chorus/internal/chat"
)

// linesOf returns the lines for an event. It changes no state; absorb does, once the lines are written.
//
// A prompt is a user_prompt line when it arrives and a message line when a run takes it:
// the messages of a log are what the model was given, in that order.
func (w *Writer) linesOf(ev chat.Event) []any {
	switch b := ev.Body.(type) {
	case chat.Received:
		s := speechOf(b.From, b.Blocks)
		if b.Prompt {
			return []any{&promptLine{Type: "user_prompt", speech: s}}
		}
		return []any{&userLine{Type: "message", Role: "user", speech: s}}
	case chat.Steered:
		return []any{
			&promptLine{Type: "user_prompt", speech: speechOf(b.From, b.Blocks)},
			event("Steered", object{"mode": b.Mode}),
		}
	case chat.Edited:
		return w.edited(b)
	case chat.Took:
		return w.taken(b)
	case chat.Asked:
		return asked(b)
	case chat.Said:
		return said(b)
	case chat.ToolRan:
		return w.toolRan(b)
	case chat.ToolBegan:
		return []any{event("ToolExecutionStarted", object{"callId": b.Call, "toolName": b.Name})}
	case chat.Deferred:
		return []any{event("ToolExecutionStarted", object{"callId": b.Call, "toolName": b.Name, "session": b.Thread.Thread()})}
	case chat.Settled:
		return nil // the call's result follows
	case chat.ApprovalAsked:
		return []any{event("ApprovalRequested", object{"callId": b.Call, "toolName": b.Name, "actions": b.Actions, "rule": b.Rule})}
	case chat.ApprovalAnswered:
		return []any{event("ApprovalResult", object{"callId": b.Call, "approved": b.OK, "by": b.By, "note": b.Note})}
	case chat.ApprovalNoted:
		return []any{event("ApprovalNoted", b)}
	case chat.RunStarted:
		return []any{event("RunStarted", object{"run": b.Run, "model": b.Model, "maxIterations": b.Settings.MaxSteps})}
	case chat.RunEnded:
		return []any{runEnded(b)}
	case chat.Refused:
		return []any{event("Refused", b)}
	case chat.Deleted:
		return []any{event("Deleted", b)}
	case chat.Cleared:
		return []any{event("Cleared", b)}
	case chat.Compacted:
		return []any{event("Compacted", b)}
	case chat.Rolled:
		return []any{event("Rolled", b)}
	case chat.Imported:
		return []any{event("Imported", b)}
	case chat.Forked:
		return []any{event("Forked", b)}
	case chat.AbortAsked:
		return []any{event("AbortRequested", b)}
	case chat.Noted:
		return []any{event("Noted", b)}
	default:
		return nil // a reaction has no line in a session log
	}
}

// object is an event's payload. The JSON encoder sorts its keys.
type object map[string]any

func event(name string, data any) *eventLine {
	return &eventLine{Type: "event", EventType: name, Data: data}
}

func speechOf(from chat.Participant, blocks chat.Blocks) speech {
	s := speech{Content: blocks.Text(), UserID: from.ID, UserName: from.Name}
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Image:
			s.Attachments = append(s.Attachments, attachment{Name: b.Name, MediaType: b.MediaType, Blob: b.Blob})
		case chat.File:
			s.Attachments = append(s.Attachments, attachment{Name: b.Name, MediaType: b.MediaType, Path: b.Path, Blob: b.Blob})
		}
	}
	return s
}

// edited changes a waiting prompt. The change of a prompt that a run has taken
// is a note to the model, which has an event of its own.
func (w *Writer) edited(b chat.Edited) []any {
	old, ok := w.waiting[b.Seq]
	if !ok {
		return nil
	}
	s := changed(old, b)
	s.PromptSeq = b.Seq
	return []any{&promptLine{Type: "user_prompt", speech: s}}
}

// changed returns a message after a change of its text or its files.
func changed(old speech, b chat.Edited) speech {
	s := speechOf(chat.Participant{ID: old.UserID, Name: old.UserName}, b.Blocks)
	if b.Files {
		s.Content = old.Content
	} else {
		s.Attachments = old.Attachments
	}
	return s
}

func (w *Writer) taken(b chat.Took) []any {
	var out []any
	for _, seq := range b.Seqs {
		if s, ok := w.waiting[seq]; ok {
			s.PromptSeq = seq
			out = append(out, &userLine{Type: "message", Role: "user", speech: s})
		}
	}
	return out
}

// asked begins an iteration, counted from 0. A repeated request belongs to the same one.
func asked(b chat.Asked) []any {
	if b.Purpose != chat.ForTurn || b.Attempt > 1 {
		return nil
	}
	return []any{event("IterationStarted", object{"iteration": max(b.Step-1, 0)})}
}

func said(b chat.Said) []any {
	if b.Error != nil {
		return []any{
			event("TraceEvent", object{"kind": "error", "data": b.Error.Message, "errorKind": b.Error.Kind, "attempt": b.Attempt}),
			event("ResponseCompleted", object{"stopReason": "error"}),
		}
	}
	out := make([]any, 0, len(b.Unreadable)+2*len(b.Blocks)+2)
	for _, raw := range b.Unreadable {
		out = append(out, event("TraceEvent", object{"kind": "parse_error", "data": raw}))
	}
	// The journal has whole answers, so each text and each call's arguments are one piece.
	for _, block := range b.Blocks {
		switch v := block.(type) {
		case chat.Text:
			if v.Text != "" {
				out = append(out, event("TextDelta", object{"text": v.Text}))
			}
		case chat.ToolUse:
			out = append(out,
				event("ToolCallStarted", object{"callId": v.ID, "toolName": v.Name}),
				event("ToolCallArgsDelta", object{"callId": v.ID, "jsonFragment": argsText(v.Args)}))
		}
	}
	message := &assistantLine{Type: "message", Role: "assistant", Content: b.Blocks.Text(), Partial: b.Partial}
	for _, c := range b.Blocks.Calls() {
		call := toolCall{c.ID, c.Name, argsText(c.Args)}
		message.ToolCalls = append(message.ToolCalls, call)
		out = append(out, event("ToolCallReady", object{"callId": c.ID, "toolName": c.Name, "argsJson": call.ArgsJSON}))
	}
	out = append(out, event("ResponseCompleted", object{
		"stopReason": b.Stop,
		"usage":      object{"inputTokens": b.Usage.Input, "outputTokens": b.Usage.Output},
	}))
	if message.Content != "" || len(message.ToolCalls) > 0 {
		out = append(out, message)
	}
	return out
}

// argsText returns what the model wrote. The journal stores text that is not JSON as a JSON string.
func argsText(args json.RawMessage) string {
	if len(args) == 0 {
		return "{}"
	}
	return plain(args)
}

func (w *Writer) toolRan(b chat.ToolRan) []any {
	r := resultOf(b)
	out := []any{
		&toolLine{Type: "message", Role: "tool", CallID: b.Call, ToolName: b.Name, Result: r},
		&resultLine{Type: "tool_result", CallID: b.Call, Tool: b.Name, OK: r.OK, Diagnostics: r.Diagnostics},
		event("ToolResultEvent", object{"callId": b.Call, "toolName": b.Name, "ok": r.OK}),
	}
	if args, ok := w.notes[b.Call]; ok && r.OK {
		if note := noteOf(args); note != nil {
			out = append(out, note)
		}
	}
	return out
}

func isNotesTool(name string) bool { return name == "work_notes" || name == "WorkNotes" }

// noteOf returns the line for a call that changed a work note, or nil.
func noteOf(args []byte) *noteLine {
	var call struct{ Action, Key, Value string }
	if json.Unmarshal(args, &call) != nil {
		return nil
	}
	switch strings.ToLower(call.Action) {
	case "set":
		return &noteLine{Type: "work_note", Key: call.Key, Value: &call.Value}
	case "clear":
		if call.Key == "" {
			return &noteLine{Type: "work_note_clear_all"}
		}
		return &noteLine{Type: "work_note", Key: call.Key}
	default:
		return nil
	}
}

func runEnded(b chat.RunEnded) *eventLine {
	data := object{
		"reason": b.Reason, "totalIterations": b.Steps, "costNanos": b.Cost,
		"usage": object{"inputTokens": b.Usage.Input, "outputTokens": b.Usage.Output},
	}
	if b.Error != nil {
		data["message"] = b.Error.Message
	} else if b.Text != "" {
		data["message"] = b.Text
	}
	switch b.Reason {
	case chat.EndLimit:
		return event("MaxIterationsReached", data)
	case chat.EndFailed, chat.EndBudget:
		return event("AgentError", data)
	default:
		return event("AgentCompleted", data)
	}
}

// absorb updates the state after the lines of an event are written.
func (w *Writer) absorb(ev chat.Event) {
	switch b := ev.Body.(type) {
	case chat.Received:
		if b.Prompt {
			w.waiting[ev.Seq] = speechOf(b.From, b.Blocks)
		}
	case chat.Steered:
		w.waiting[ev.Seq] = speechOf(b.From, b.Blocks)
	case chat.Edited:
		if old, ok := w.waiting[b.Seq]; ok {
			w.edit(b.Seq, changed(old, b))
		}
	case chat.Took:
		for _, seq := range b.Seqs {
			delete(w.waiting, seq)
		}
	case chat.Refused:
		delete(w.waiting, b.Seq)
	case chat.Deleted:
		delete(w.waiting, b.Seq)
	case chat.Said:
		if b.Error != nil {
			return
		}
		for _, c := range b.Blocks.Calls() {
			if isNotesTool(c.Name) {
				w.notes[c.ID] = []byte(argsText(c.Args))
			}
		}
	case chat.ToolRan:
		delete(w.notes, b.Call)
	}
}
