package bedrock

import (
	"encoding/json"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/wire"
)

// The blocks of Converse: each has one of the fields. Their order must
// not change because a prompt cache compares bytes.
type (
	block struct {
		Text       string      `json:"text,omitempty"`
		Image      *image      `json:"image,omitempty"`
		ToolUse    *toolUse    `json:"toolUse,omitempty"`
		ToolResult *toolResult `json:"toolResult,omitempty"`
		Reasoning  *reasoning  `json:"reasoningContent,omitempty"`
	}
	image struct {
		Format string      `json:"format"`
		Source imageSource `json:"source"`
	}
	imageSource struct {
		Bytes string `json:"bytes"`
	}
	toolUse struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	toolResult struct {
		ID      string  `json:"toolUseId"`
		Content []block `json:"content"`
		Status  string  `json:"status,omitempty"`
	}
	reasoning struct {
		Redacted string         `json:"redactedContent,omitempty"`
		Text     *reasoningText `json:"reasoningText,omitempty"`
	}
	reasoningText struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
	}
)

// encoder writes messages in Converse's form.
type encoder struct {
	blob  func(string) ([]byte, error)
	takes takes
}

// turn is successive messages of one role: Converse does not accept two messages of one role in a row.
type turn struct {
	role model.Role
	said []wire.Placed
}

// turns returns the messages that are not empty, and their total size in bytes.
func (e encoder) turns(messages []*model.Message) ([]turn, int, error) {
	all, size, err := wire.EncodeAll(messages, wire.As(e.takes.form(), e.message))
	out := make([]turn, 0, len(all))
	for i, w := range all {
		size++ // for a comma between its parts
		role := messages[w.Index].Role
		if n := len(out); n > 0 && out[n-1].role == role {
			said := &out[n-1].said
			*said = (*said)[:len(*said)+1] // the next element of all
			continue
		}
		out = append(out, turn{role: role, said: all[i : i+1]})
		size += len(`,{"role":"assistant","content":[]}`)
	}
	return out, size, err
}

// message encodes the blocks of one message without the surrounding brackets. It returns no
// bytes if the message is empty. The results are before MarkAt, because they come first in a
// turn. Only blocks of the same part are separated by commas.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	blocks := m.Blocks
	if m.Role == model.Assistant {
		blocks = anthropic.Untailed(blocks)
	}
	var results, rest []byte
	for _, b := range blocks {
		part := &rest
		if _, is := b.(chat.ToolResult); is {
			part = &results
		}
		sent, err := e.block(b)
		if err == nil && sent != (block{}) {
			*part, err = wire.AppendNext(*part, sent)
		}
		if err != nil {
			return model.Wire{}, err
		}
	}
	return model.Wire{Bytes: append(results, rest...), MarkAt: len(results)}, nil
}

// block returns what is sent for a block; empty for nothing.
func (e encoder) block(b chat.Block) (block, error) {
	switch b := b.(type) {
	case chat.Text:
		return text(b.Text), nil
	case chat.Image:
		return e.image(b)
	case chat.File:
		return text(wire.FileLine(b)), nil
	case chat.Thinking:
		return e.thinking(b), nil
	case chat.ToolUse:
		return block{ToolUse: &toolUse{wire.FitID(b.ID, anthropic.MaxID), wire.ToolName(b.Name), wire.Args(b.Args)}}, nil
	case chat.ToolResult:
		return e.result(b)
	default:
		return block{}, fmt.Errorf("bedrock cannot take a %T", b)
	}
}

// text drops text that is only white space, which is rejected.
func text(s string) block {
	if strings.TrimSpace(s) == "" {
		return block{}
	}
	return block{Text: s}
}

// thinking returns reasoning as it came. No model accepts it without a signature.
func (e encoder) thinking(t chat.Thinking) block {
	switch {
	case !e.takes.thinking, wire.ForOtherVendor(t):
		return block{}
	case t.Redacted != "":
		return block{Reasoning: &reasoning{Redacted: t.Redacted}}
	case t.Signature != "":
		return block{Reasoning: &reasoning{Text: &reasoningText{t.Text, t.Signature}}}
	default:
		return block{}
	}
}

func (e encoder) image(img chat.Image) (block, error) {
	if !e.takes.images || !wire.Shown(img.MediaType) {
		return text(wire.Unseen(img)), nil
	}
	data, lost, err := wire.EncodeImage(img, e.blob)
	if err != nil || lost != "" {
		return text(lost), err
	}
	return block{Image: &image{strings.TrimPrefix(img.MediaType, "image/"), imageSource{data}}}, nil
}

func (e encoder) result(r chat.ToolResult) (block, error) {
	out := &toolResult{ID: wire.FitID(r.Call, anthropic.MaxID)}
	if r.Failed && !e.takes.failures {
		out.Content = append(out.Content, text("Error:")) // these models have no field for it
	}
	for _, b := range r.Blocks {
		switch b.(type) {
		case chat.Text, chat.Image, chat.File:
		default:
			return block{}, fmt.Errorf("a tool result cannot hold a %T", b)
		}
		sent, err := e.block(b)
		if err != nil {
			return block{}, err
		}
		if sent != (block{}) {
			out.Content = append(out.Content, sent)
		}
	}
	if len(out.Content) == 0 {
		out.Content = []block{text("(nothing)")} // an empty result is rejected
	}
	if e.takes.failures {
		out.Status = "success"
		if r.Failed {
			out.Status = "error"
		}
	}
	return block{ToolResult: out}, nil
}
