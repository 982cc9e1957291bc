package ollama

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// encoder writes messages in Ollama's form.
type encoder struct {
	blob func(string) ([]byte, error)
}

var resultStart = []byte(`{"role":"tool",`)

// isResult reports whether a message's bytes begin with a tool result.
func isResult(b []byte) bool { return bytes.HasPrefix(b, resultStart) }

// message writes one message as one or more of Ollama's: results each on its own,
// then whatever else it holds. No bytes at all when there is nothing in it. MarkAt
// is not a cache mark here but where what came beside results begins: it waits
// until after the last of them, as the models' templates expect.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	if m.Role == model.Assistant {
		return model.Wire{Bytes: assistant(m.Blocks)}, nil
	}
	var results, late []byte
	var rest chat.Blocks
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		var images chat.Blocks
		if results, images = result(comma(results), r); len(images) == 0 {
			continue
		}
		name := r.Name
		if name == "" {
			name = "a tool"
		}
		shown := append(chat.Blocks{chat.Text{Text: "[shown by " + name + " in answer to call " + r.Call + "]"}}, images...)
		message, err := e.user(shown)
		if err != nil {
			return model.Wire{}, err
		}
		late = append(comma(late), message...)
	}
	said, err := e.user(rest)
	if err != nil {
		return model.Wire{}, err
	}
	if len(results) == 0 {
		return model.Wire{Bytes: said}, nil
	}
	if len(said) > 0 {
		late = append(comma(late), said...)
	}
	if len(late) == 0 {
		return model.Wire{Bytes: results}, nil
	}
	return model.Wire{Bytes: append(results, late...), MarkAt: len(results)}, nil
}

func comma(b []byte) []byte {
	if len(b) > 0 {
		return append(b, ',')
	}
	return b
}

// shows reports whether the server can read a picture: it knows these formats.
func shows(img chat.Image) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, img.MediaType)
}

// result writes one result and gives the pictures in it.
func result(out []byte, r chat.ToolResult) ([]byte, chat.Blocks) {
	var text []string
	var images chat.Blocks
	for _, block := range r.Blocks {
		switch b := block.(type) {
		case chat.Text:
			text = append(text, b.Text)
		case chat.File:
			text = append(text, wire.FileLine(b))
		case chat.Image:
			if shows(b) {
				images = append(images, b)
			} else {
				text = append(text, wire.Unseen(b))
			}
		}
	}
	said := strings.Join(text, "\n")
	if r.Failed && !strings.HasPrefix(strings.ToLower(said), "error") {
		said = "Error: " + said // there is no other way to say so
	}
	out = append(out, resultStart...)
	if r.Name != "" {
		out = append(wire.AppendString(append(out, `"tool_name":`...), r.Name), ',')
	}
	out = wire.AppendString(append(out, `"tool_call_id":`...), r.Call)
	out = wire.AppendString(append(out, `,"content":`...), said)
	return append(out, '}'), images
}

// user writes what a person said; pictures stand beside the text, not in it.
func (e encoder) user(blocks chat.Blocks) ([]byte, error) {
	var text []string
	var images []byte
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
			data, err := wire.Base64(b, e.blob)
			if err != nil {
				return nil, err
			}
			images = append(append(append(comma(images), '"'), data...), '"')
		default:
			return nil, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	if len(text) == 0 && len(images) == 0 {
		return nil, nil
	}
	out := wire.AppendString([]byte(`{"role":"user","content":`), strings.Join(text, "\n\n"))
	if len(images) > 0 {
		out = append(append(append(out, `,"images":[`...), images...), ']')
	}
	return append(out, '}'), nil
}

// assistant writes an answer back: text and calls. Reasoning stays here: the
// templates drop it, and it would only fill the window.
func assistant(blocks chat.Blocks) []byte {
	text, calls := blocks.Text(), blocks.Calls()
	if strings.TrimSpace(text) == "" {
		if len(calls) == 0 {
			return nil
		}
		text = ""
	}
	out := wire.AppendString([]byte(`{"role":"assistant","content":`), text)
	for i, c := range calls {
		if i == 0 {
			out = append(out, `,"tool_calls":[`...)
		} else {
			out = append(out, ',')
		}
		out = wire.AppendString(append(out, `{"id":`...), c.ID)
		out = wire.AppendString(append(out, `,"function":{"name":`...), c.Name)
		out = append(append(out, `,"arguments":`...), wire.Args(c.Args)...)
		out = append(out, "}}"...)
	}
	if len(calls) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}
