package ollama

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// The messages. Their fields are in the order in which they are sent, which must
// not change because the server's cache compares bytes.
type (
	toolMessage struct {
		Role     string `json:"role"`
		ToolName string `json:"tool_name,omitempty"`
		ToolCall string `json:"tool_call_id"`
		Content  string `json:"content"`
	}
	userMessage struct {
		Role    string   `json:"role"`
		Content string   `json:"content"`
		Images  []string `json:"images,omitempty"`
	}
	assistantMessage struct {
		Role      string     `json:"role"`
		Content   string     `json:"content"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
)

// encoder writes messages in Ollama's form.
type encoder struct {
	blob func(string) ([]byte, error)
}

// isResult reports whether a message's bytes begin with a tool result.
func isResult(b []byte) bool { return bytes.HasPrefix(b, []byte(`{"role":"tool",`)) }

// message writes one message as one or more of Ollama's: each result separately, then everything else. An
// empty message yields no bytes. MarkAt is not a cache mark here but the start of what came with results,
// which waits until after the last of them, as the models' templates expect.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	if m.Role == model.Assistant {
		out, err := assistant(m.Blocks)
		return model.Wire{Bytes: out}, err
	}
	return wire.Results(m.Blocks, result, e.user)
}

// shows reports whether the server can read a picture: it knows these formats.
func shows(img chat.Image) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, img.MediaType)
}

// result returns what is sent for one result, and its pictures.
func result(r chat.ToolResult) (any, chat.Blocks, string) {
	said, images := wire.ResultText(r.Blocks, shows)
	if r.Failed && !strings.HasPrefix(strings.ToLower(said), "error") {
		said = "Error: " + said // there is no other way to say so
	}
	return toolMessage{"tool", r.Name, r.Call, said}, images, cmp.Or(r.Name, "a tool")
}

// user adds what a person said, if anything, to a list of messages.
// Pictures are sent beside the text, not in it.
func (e encoder) user(list []byte, blocks chat.Blocks) ([]byte, error) {
	var text, images []string
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			if strings.TrimSpace(b.Text) != "" {
				text = append(text, b.Text)
			}
		case chat.File:
			text = append(text, wire.FileLine(b))
		case chat.Image:
			if !shows(b) {
				text = append(text, wire.Unseen(b))
				continue
			}
			data, lost, err := wire.EncodeImage(b, e.blob)
			if err != nil {
				return nil, err
			}
			if lost != "" {
				text = append(text, lost)
				continue
			}
			images = append(images, data)
		default:
			return nil, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	if len(text) == 0 && len(images) == 0 {
		return list, nil
	}
	return wire.AppendNext(list, userMessage{"user", strings.Join(text, "\n\n"), images})
}

// assistant writes an answer back: text and calls. Reasoning is not sent: the
// templates drop it, and it would only fill the window.
func assistant(blocks chat.Blocks) ([]byte, error) {
	out := assistantMessage{Role: "assistant"}
	if text := blocks.Text(); strings.TrimSpace(text) != "" {
		out.Content = text
	}
	for _, c := range blocks.Calls() {
		out.ToolCalls = append(out.ToolCalls, toolCall{c.ID, function{wire.ToolName(c.Name), wire.Args(c.Args)}})
	}
	if out.Content == "" && len(out.ToolCalls) == 0 {
		return nil, nil
	}
	return wire.Append(nil, out)
}
