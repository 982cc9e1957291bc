package remote

import (
	"encoding/json"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/transport/repl"
)

// back converts the objects of one event number to their event, as far as the terminal
// needs it. Without a body the event only has its number.
func back(group []feed.Item) *chat.Event {
	last := group[len(group)-1].Header()
	return &chat.Event{Seq: last.Seq, At: last.At, Run: last.Run, Body: body(group)}
}

func body(group []feed.Item) chat.Body {
	switch it := group[len(group)-1].(type) {
	case feed.AssistantMessage, feed.ToolCall:
		return said(group)
	case feed.UserMessage:
		return chat.Received{From: it.From, Prompt: it.Prompt, Blocks: chat.TextBlocks(it.Text), ReplyTo: it.ReplyTo, Intake: it.Intake}
	case feed.Steered:
		return chat.Steered{From: it.From, Mode: it.Mode, Blocks: chat.TextBlocks(it.Text)}
	case feed.Refused:
		return chat.Refused{Seq: it.PromptSeq, Why: it.Reason}
	case feed.Cleared:
		return chat.Cleared{UpTo: it.UpTo, By: it.By}
	case feed.Compacted:
		return chat.Compacted{UpTo: it.UpTo, Summary: it.Summary, How: it.How, Read: it.Read, Modified: it.Modified, Tokens: it.Tokens, Usage: usage(it.Usage)}
	case feed.RunStarted:
		return chat.RunStarted{Run: it.Run, Model: joined(it.Provider, it.Model),
			Settings: chat.Settings{Mode: it.Mode, Profile: it.Permissions, MaxSteps: it.MaxIterations}}
	case feed.ToolResult:
		text := it.Result.Stdout
		if !it.Result.OK {
			text = it.Result.Stderr
		}
		return chat.ToolRan{Call: it.CallID, Name: it.Tool, Blocks: chat.TextBlocks(text), Outcome: chat.Outcome(it.Outcome), Exit: it.Result.ExitCode,
			Failed: !it.Result.OK && it.Result.ExitCode == 0 && it.Outcome == string(chat.Ran), TookMS: it.TookMS, Read: it.Read, Changed: it.Changed, Diff: it.Diff}
	case feed.ApprovalRequired:
		return chat.ApprovalAsked{ID: it.ApprovalID, Call: it.CallID, Name: it.Tool, Actions: it.Actions, Rule: it.Rule, Preview: it.Preview, Unbound: it.Unbound, Why: it.Why, Assessment: it.Assessment, Until: it.Until, Fields: it.Fields}
	case feed.ApprovalResolved:
		return chat.ApprovalAnswered{ID: it.ApprovalID, Call: it.CallID, By: it.By, OK: it.Approved, Note: it.Note}
	case feed.Completed:
		return chat.RunEnded{Run: it.Run, Reason: chat.Reason(it.StopReason), Text: it.Text, Steps: it.Iterations, Usage: usage(it.Usage), Cost: int64(it.Cost)}
	case feed.Error:
		return chat.RunEnded{Run: it.Run, Reason: chat.Reason(it.StopReason), Text: it.Message, Steps: it.Iterations, Usage: usage(it.Usage),
			Cost: int64(it.Cost), Error: &chat.Failure{Kind: it.Kind, Message: it.Message, Final: true}}
	case feed.Trace:
		return traced(it)
	default:
		return nil
	}
}

// traced reads an event that has no object of its own.
func traced(it feed.Trace) chat.Body {
	if it.Kind == "error" {
		var failed struct {
			Step    int `json:"step"`
			Attempt int `json:"attempt"`
			chat.Failure
		}
		if json.Unmarshal(it.Data, &failed) != nil {
			return nil
		}
		return chat.Said{Step: failed.Step, Attempt: failed.Attempt, Stop: chat.StopError, Error: &failed.Failure}
	}
	b, err := chat.DecodeBody(chat.Kind(it.Kind), it.Data)
	if err != nil {
		return nil // from a newer Chorus
	}
	return b
}

// said builds an answer from its text and its calls.
func said(group []feed.Item) chat.Body {
	out := chat.Said{Stop: chat.StopTools}
	for _, item := range group {
		switch it := item.(type) {
		case feed.AssistantMessage:
			out.Usage = answerUsage(it.Usage)
			out.Step, out.Attempt, out.Stop, out.Partial = it.Step, it.Attempt, chat.Stop(it.StopReason), it.Partial
			out.Blocks = append(out.Blocks, chat.Text{Text: it.Text})
		case feed.ToolCall:
			out.Step, out.Usage = it.Step, answerUsage(it.Usage)
			out.Blocks = append(out.Blocks, chat.ToolUse{ID: it.CallID, Name: it.Tool, Args: arguments(it.ArgsJSON)})
		}
	}
	return out
}

func answerUsage(u *feed.Usage) chat.Usage {
	if u == nil {
		return chat.Usage{}
	}
	return usage(*u)
}

// arguments returns JSON arguments, or other text as a JSON string.
func arguments(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	data, _ := json.Marshal(text) // a string always encodes
	return data
}

func usage(u feed.Usage) chat.Usage {
	return chat.Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens}
}

func joined(provider, model string) string {
	if provider == "" {
		return model
	}
	return provider + "/" + model
}

// live is an object without a number.
func live(item feed.Item) chat.Live {
	switch it := item.(type) {
	case feed.TextDelta:
		return chat.Delta{Run: it.Run, Step: it.Step, Attempt: it.Attempt, What: chat.DeltaText, Offset: it.Offset, Text: it.Text}
	case feed.ThinkingDelta:
		return chat.Delta{Run: it.Run, Step: it.Step, Attempt: it.Attempt, What: chat.DeltaThinking, Offset: it.Offset, Text: it.Text}
	case feed.ToolProgress:
		return chat.Progress{Run: it.Run, Call: it.CallID, Tool: it.Tool, Text: it.Message}
	default:
		return nil
	}
}

// shown makes an item from objects.
func shown(group []feed.Item) (repl.Item, error) {
	var out repl.Item
	for _, one := range group {
		data, err := feed.Encode(one)
		if err != nil {
			return out, err
		}
		out.Lines = append(out.Lines, data)
	}
	if group[0].Header().Seq == 0 {
		out.Live = live(group[0])
	} else {
		out.Event = back(group)
	}
	return out, nil
}
