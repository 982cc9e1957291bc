// Package eventline says in words what a journal event records: a short title for its kind, and one line about this event.
// It is for people who read a journal; programs read the event itself.
package eventline

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// maxLine is the longest line in characters. It fits a desktop page; the event has the rest.
const maxLine = 160

var titles = map[chat.Kind]string{
	chat.KindReceived:         "Message",
	chat.KindRefused:          "Message refused",
	chat.KindEdited:           "Message edited",
	chat.KindDeleted:          "Message deleted",
	chat.KindReacted:          "Reaction",
	chat.KindImported:         "Messages imported",
	chat.KindRunStarted:       "Run started",
	chat.KindTook:             "Messages taken up",
	chat.KindAsked:            "Request to the model",
	chat.KindSaid:             "Answer of the model",
	chat.KindToolBegan:        "Tool call started",
	chat.KindToolRan:          "Tool call finished",
	chat.KindDeferred:         "Tool call handed to another agent",
	chat.KindSettled:          "Other agent answered",
	chat.KindApprovalAsked:    "Approval requested",
	chat.KindApprovalAnswered: "Approval answered",
	chat.KindApprovalNoted:    "Approval still open",
	chat.KindSteered:          "Message to the running agent",
	chat.KindAbortAsked:       "Stop requested",
	chat.KindNoted:            "Note for the model",
	chat.KindRolled:           "Older messages left the window",
	chat.KindCompacted:        "Older messages summarized",
	chat.KindCleared:          "Context cleared",
	chat.KindRunEnded:         "Run ended",
	chat.KindForked:           "Fork created",
}

// Title names a kind of event. A kind that is not known is its own title.
func Title(kind string) string { return cmp.Or(titles[chat.Kind(kind)], kind) }

// Line says what this event records, without who did it and when. It is empty where the title says it all.
func Line(body chat.Body) string { return text.Clip(text.OneLine(line(body)), maxLine) }

func line(body chat.Body) string {
	switch b := body.(type) {
	case chat.Received:
		return words(b.Blocks)
	case chat.Refused:
		return join(message(b.Seq), b.Why)
	case chat.Edited:
		if b.Files {
			return join(message(b.Seq), "attached files fetched")
		}
		return join(message(b.Seq), words(b.Blocks))
	case chat.Deleted:
		return message(b.Seq)
	case chat.Reacted:
		if !b.Added {
			return join(b.Emoji+" removed", message(b.Seq))
		}
		return join(b.Emoji, message(b.Seq))
	case chat.Imported:
		return text.Count(b.Count, "message") + " from " + b.Source
	case chat.RunStarted:
		return b.Model
	case chat.Took:
		seqs := make([]string, len(b.Seqs))
		for i, seq := range b.Seqs {
			seqs[i] = message(seq)
		}
		return strings.Join(seqs, ", ")
	case chat.Asked:
		return asked(b)
	case chat.Said:
		return said(b)
	case chat.ToolBegan:
		return b.Name
	case chat.ToolRan:
		return toolRan(b)
	case chat.Deferred:
		return b.Name
	case chat.Settled:
		return words(b.Blocks)
	case chat.ApprovalAsked:
		return join(b.Name, risk(b.Risk), b.RiskWhy)
	case chat.ApprovalAnswered:
		if b.OK {
			return join("allowed", b.Note)
		}
		return join("denied", b.Note)
	case chat.ApprovalNoted:
		if b.What == chat.FirstYes {
			return "one of two people approved"
		}
		return "nobody has answered yet"
	case chat.Steered:
		return words(b.Blocks)
	case chat.AbortAsked:
		if b.All {
			return "the run and everything that waits"
		}
	case chat.Noted:
		return join(b.What, b.Text)
	case chat.Rolled:
		return b.Because
	case chat.Compacted:
		return b.Summary
	case chat.Cleared:
		return "everything up to " + message(b.UpTo)
	case chat.RunEnded:
		return runEnded(b)
	case chat.Forked:
		return fmt.Sprintf("from event %d of another conversation", b.AtSeq)
	}
	return ""
}

func message(seq int64) string {
	if seq == 0 {
		return ""
	}
	return fmt.Sprintf("message %d", seq)
}

func asked(b chat.Asked) string {
	tokens, purpose, attempt := "", "", ""
	if b.Tokens > 0 {
		tokens = fmt.Sprintf("about %d tokens", b.Tokens)
	}
	if b.Purpose == chat.ForCompaction || b.Purpose == chat.ForExcerpt {
		purpose = "for a summary"
	}
	if b.Attempt > 1 {
		attempt = fmt.Sprintf("attempt %d", b.Attempt)
	}
	return join(b.Model, purpose, attempt, tokens)
}

func said(b chat.Said) string {
	if b.Error != nil {
		return join("failed", b.Error.Message)
	}
	var calls []string
	for _, c := range b.Blocks.Calls() {
		calls = append(calls, c.Name)
	}
	if len(calls) > 0 { // the calls must fit too
		return join(text.Clip(text.OneLine(words(b.Blocks)), maxLine/2), "calls "+strings.Join(calls, ", "))
	}
	return words(b.Blocks)
}

func toolRan(b chat.ToolRan) string {
	end, took, changed := "", "", ""
	switch {
	case b.Outcome != "" && b.Outcome != chat.Ran:
		end = string(b.Outcome)
	case b.Exit != 0:
		end = fmt.Sprintf("exit code %d", b.Exit)
	case b.Failed:
		end = "failed"
	}
	if b.TookMS > 0 {
		took = fmt.Sprintf("%d ms", b.TookMS)
	}
	if n := len(b.Changed); n == 1 {
		changed = "changed " + path.Base(b.Changed[0])
	} else if n > 1 {
		changed = fmt.Sprintf("changed %d files", n)
	}
	return join(b.Name, end, took, changed)
}

func runEnded(b chat.RunEnded) string {
	why := ""
	if b.Error != nil {
		why = b.Error.Message
	}
	return join(endings[b.Reason], why, text.Count(b.Steps, "step"), text.Count(b.Usage.Total(), "token"))
}

var endings = map[chat.Reason]string{
	chat.EndDone: "done", chat.EndAborted: "stopped", chat.EndFailed: "failed", chat.EndLimit: "reached its step limit",
	chat.EndBudget: "reached its budget", chat.EndDenied: "denied",
}

func risk(grade string) string {
	if grade == "" {
		return ""
	}
	return grade + " risk"
}

func words(b chat.Blocks) string {
	files := 0
	for _, block := range b {
		switch block.(type) {
		case chat.Image, chat.File:
			files++
		}
	}
	attached := ""
	if files > 0 {
		attached = text.Count(files, "attachment")
	}
	return join(b.Text(), attached)
}

// join puts a dot between what is there.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}
