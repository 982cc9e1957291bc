package bedrock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"chorus/internal/model/anthropic"
)

// converseEvent is any event of ConverseStream, with the fields that are used.
type converseEvent struct {
	Index int `json:"contentBlockIndex"`
	Start *struct {
		ToolUse *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta *struct {
		Text    string `json:"text"`
		ToolUse *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Reasoning *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
			Redacted  string `json:"redactedContent"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	StopReason string         `json:"stopReason"`
	Usage      *converseUsage `json:"usage"`
}

type converseUsage struct {
	Input      int `json:"inputTokens"`
	Output     int `json:"outputTokens"`
	CacheRead  int `json:"cacheReadInputTokens"`
	CacheWrite int `json:"cacheWriteInputTokens"`
}

// event translates one event of ConverseStream into those of Anthropic's stream. The two formats
// differ only in names, and in that a text block has no start event here.
func (in *incoming) event(f frame) bool {
	var ev converseEvent
	if err := json.Unmarshal(f.payload, &ev); err != nil {
		in.answer.Broken(fmt.Errorf("%w: %w", errBroken, err))
		return false
	}
	switch f.event {
	case "contentBlockStart":
		if ev.Start == nil || ev.Start.ToolUse == nil {
			return true
		}
		return in.begin(ev.Index, anthropic.Block{Type: "tool_use", ID: ev.Start.ToolUse.ID, Name: ev.Start.ToolUse.Name})
	case "contentBlockDelta":
		return in.delta(ev)
	case "messageStop":
		in.stopped = true
		return in.stop(ev.StopReason)
	case "metadata":
		in.count(ev.Usage)
		if in.stopped {
			in.answer.Finish()
			return false
		}
	}
	return true // starts and ends of blocks, and unknown events
}

// begin starts a block, once for each index.
func (in *incoming) begin(index int, b anthropic.Block) bool {
	if in.open[index] {
		return true
	}
	in.open[index] = true
	return in.answer.Take(anthropic.Event{Type: "content_block_start", Index: index, ContentBlock: &b})
}

func (in *incoming) delta(ev converseEvent) bool {
	d := ev.Delta
	more := func(delta anthropic.Delta) bool {
		return in.answer.Take(anthropic.Event{Type: "content_block_delta", Index: ev.Index, Delta: &delta})
	}
	switch {
	case d == nil:
		return true
	case d.ToolUse != nil:
		return more(anthropic.Delta{Type: "input_json_delta", Partial: d.ToolUse.Input})
	case d.Reasoning != nil && d.Reasoning.Redacted != "":
		return in.begin(ev.Index, anthropic.Block{Type: "redacted_thinking", Data: d.Reasoning.Redacted})
	case d.Reasoning != nil:
		return in.begin(ev.Index, anthropic.Block{Type: "thinking"}) &&
			more(anthropic.Delta{Type: "thinking_delta", Thinking: d.Reasoning.Text}) &&
			more(anthropic.Delta{Type: "signature_delta", Signature: d.Reasoning.Signature})
	default:
		return in.begin(ev.Index, anthropic.Block{Type: "text"}) && more(anthropic.Delta{Type: "text_delta", Text: d.Text})
	}
}

// stop records why the answer ended. If a guardrail or filter stopped it, that is a refusal.
func (in *incoming) stop(reason string) bool {
	switch reason {
	case "guardrail_intervened", "content_filtered":
		reason = "refusal"
	}
	return in.answer.Take(anthropic.Event{Type: "message_delta", Delta: &anthropic.Delta{StopReason: reason}})
}

func (in *incoming) count(u *converseUsage) {
	if u == nil {
		return
	}
	in.answer.Take(anthropic.Event{Type: "message_delta", Usage: &anthropic.Usage{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
	}})
}

// wholeAnswer is an answer of Converse, which does not stream.
type wholeAnswer struct {
	Output struct {
		Message struct {
			Content []wholeBlock `json:"content"`
		} `json:"message"`
	} `json:"output"`
	StopReason string         `json:"stopReason"`
	Usage      *converseUsage `json:"usage"`
}

type wholeBlock struct {
	Text    string `json:"text"`
	ToolUse *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
	Reasoning *struct {
		Text *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoningText"`
		Redacted string `json:"redactedContent"`
	} `json:"reasoningContent"`
}

// whole reads an answer that is not streamed and passes it on block by block.
func (in *incoming) whole(body io.Reader) {
	in.open = map[int]bool{}
	data, err := io.ReadAll(body)
	var a wholeAnswer
	if err == nil {
		if err = json.Unmarshal(data, &a); err != nil {
			err = errors.Join(errBroken, err)
		}
	}
	if err == nil && a.StopReason == "" {
		err = errBroken
	}
	if err != nil {
		in.answer.Broken(err)
		return
	}
	for i, b := range a.Output.Message.Content {
		if !in.block(i, b) {
			return
		}
	}
	in.stop(a.StopReason)
	in.count(a.Usage)
	in.answer.Finish()
}

func (in *incoming) block(i int, b wholeBlock) bool {
	more := func(delta anthropic.Delta) bool {
		return in.answer.Take(anthropic.Event{Type: "content_block_delta", Index: i, Delta: &delta})
	}
	switch r := b.Reasoning; {
	case b.ToolUse != nil:
		return in.begin(i, anthropic.Block{Type: "tool_use", ID: b.ToolUse.ID, Name: b.ToolUse.Name}) &&
			more(anthropic.Delta{Type: "input_json_delta", Partial: string(b.ToolUse.Input)})
	case r != nil && r.Text != nil:
		return in.begin(i, anthropic.Block{Type: "thinking", Thinking: r.Text.Text, Signature: r.Text.Signature})
	case r != nil:
		return in.begin(i, anthropic.Block{Type: "redacted_thinking", Data: r.Redacted})
	default:
		return in.begin(i, anthropic.Block{Type: "text", Text: b.Text})
	}
}
