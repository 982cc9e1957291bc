package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// The blocks of a message. Their fields are in the order in which they are sent,
// which must not change because a prompt cache compares bytes.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	imageBlock struct {
		Type   string      `json:"type"`
		Source imageSource `json:"source"`
	}
	imageSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	thinkingBlock struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	redactedBlock struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	toolUseBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	toolResultBlock struct {
		Type      string `json:"type"`
		ToolUseID string `json:"tool_use_id"`
		Content   []any  `json:"content,omitempty"`
		IsError   bool   `json:"is_error,omitempty"`
	}
)

// encoder writes messages in the vendor's form.
type encoder struct {
	blob  func(string) ([]byte, error)
	blind bool // the model sees no pictures
}

// message writes one message, or no bytes if the message contains nothing that the vendor
// accepts. The cache mark may be at the end of its last block that can carry one.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	blocks := m.Blocks
	if m.Role == model.Assistant {
		blocks = Untailed(blocks)
	}
	start := `{"role":"` + string(m.Role) + `","content":[`
	var content []byte
	markAt := 0
	// The vendor requires results to come first in their message.
	for _, results := range []bool{true, false} {
		for _, block := range blocks {
			if _, is := block.(chat.ToolResult); is != results {
				continue
			}
			sent, err := e.block(block)
			if err != nil {
				return model.Wire{}, err
			}
			if sent == nil {
				continue
			}
			if content, err = wire.AppendNext(content, sent); err != nil {
				return model.Wire{}, err
			}
			if _, thinking := block.(chat.Thinking); !thinking {
				markAt = len(start) + len(content) - 1
			}
		}
	}
	if len(content) == 0 {
		return model.Wire{}, nil
	}
	return model.Wire{Bytes: slices.Concat([]byte(start), content, []byte("]}")), MarkAt: markAt}, nil
}

// Untailed removes thinking from the end of an answer that was cut before it
// said anything, because the vendor rejects it there.
func Untailed(blocks chat.Blocks) chat.Blocks {
	for n := len(blocks); n > 0; n-- {
		switch b := blocks[n-1].(type) {
		case chat.Thinking:
		case chat.Text:
			if strings.TrimSpace(b.Text) != "" {
				return blocks[:n]
			}
		default:
			return blocks[:n]
		}
	}
	return nil
}

// MaxID is the longest call id that every host accepts.
const MaxID = 64

// block returns what is sent for a block, or nil for nothing.
func (e encoder) block(block chat.Block) (any, error) {
	switch b := block.(type) {
	case chat.Text:
		return text(b.Text), nil
	case chat.Image:
		return e.image(b)
	case chat.File:
		return text(wire.FileLine(b)), nil
	case chat.Thinking:
		return thinking(b), nil
	case chat.ToolUse:
		return toolUseBlock{"tool_use", wire.FitID(b.ID, MaxID), wire.ToolName(b.Name), wire.Args(b.Args)}, nil
	case chat.ToolResult:
		return e.result(b)
	default:
		return nil, fmt.Errorf("anthropic cannot take a %T", block)
	}
}

// text drops text that is only white space, which the vendor rejects.
func text(s string) any {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return textBlock{"text", s}
}

// thinking returns reasoning as it came. Without a signature it is not the vendor's, and is dropped.
func thinking(t chat.Thinking) any {
	switch {
	case wire.ForOtherVendor(t): // it comes from a model of another vendor
		return nil
	case t.Redacted != "":
		return redactedBlock{"redacted_thinking", t.Redacted}
	case t.Signature != "":
		return thinkingBlock{"thinking", t.Text, t.Signature}
	default:
		return nil
	}
}

func (e encoder) image(img chat.Image) (any, error) {
	if e.blind || !wire.Shown(img.MediaType) {
		return text(wire.Unseen(img)), nil
	}
	data, lost, err := wire.EncodeImage(img, e.blob)
	if err != nil || lost != "" {
		return text(lost), err
	}
	return imageBlock{"image", imageSource{"base64", img.MediaType, data}}, nil
}

func (e encoder) result(r chat.ToolResult) (any, error) {
	out := toolResultBlock{Type: "tool_result", ToolUseID: wire.FitID(r.Call, MaxID), IsError: r.Failed}
	for _, block := range r.Blocks {
		switch block.(type) {
		case chat.Text, chat.Image, chat.File:
		default:
			return nil, fmt.Errorf("a tool result cannot hold a %T", block)
		}
		sent, err := e.block(block)
		if err != nil {
			return nil, err
		}
		if sent != nil {
			out.Content = append(out.Content, sent)
		}
	}
	return out, nil
}
