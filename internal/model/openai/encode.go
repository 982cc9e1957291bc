package openai

import (
	"bytes"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// encoder writes messages in the vendor's form.
type encoder struct {
	blob  func(string) ([]byte, error)
	blind bool // the model sees no pictures
}

var resultStart = []byte(`{"role":"tool",`)

// isResult reports whether a message's bytes begin with a tool result.
func isResult(b []byte) bool { return bytes.HasPrefix(b, resultStart) }

// message writes one message as one or more of the vendor's: results each on its
// own, then whatever else it holds. No bytes at all when there is nothing in it.
// MarkAt is not a cache mark here but where the pictures out of results begin.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	if m.Role == model.Assistant {
		return model.Wire{Bytes: assistant(m.Blocks)}, nil
	}
	var out, pictures []byte
	var rest chat.Blocks
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		text, images := e.split(r.Blocks)
		if r.Failed && !strings.HasPrefix(strings.ToLower(text), "error") {
			text = "Error: " + text // there is no other way to say so
		}
		out = wire.AppendString(append(append(out, resultStart...), `"tool_call_id":`...), r.Call)
		out = wire.AppendString(append(out, `,"content":`...), text)
		out = append(out, '}')
		if len(images) == 0 {
			continue
		}
		shown := append(chat.Blocks{chat.Text{Text: "[shown by " + orTool(r.Name) + " in answer to call " + r.Call + "]"}}, images...)
		message, err := e.user(shown)
		if err != nil {
			return model.Wire{}, err
		}
		if len(pictures) > 0 {
			pictures = append(pictures, ',')
		}
		pictures = append(pictures, message...)
	}
	said, err := e.user(rest)
	if err != nil {
		return model.Wire{}, err
	}
	switch {
	case len(pictures) > 0 && len(said) > 0:
		pictures = append(append(pictures, ','), said...)
	case len(pictures) == 0 && len(out) > 0 && len(said) > 0:
		pictures = said // text behind results waits like their pictures
	case len(out) == 0:
		return model.Wire{Bytes: said}, nil
	}
	if len(pictures) == 0 {
		return model.Wire{Bytes: out}, nil
	}
	return model.Wire{Bytes: append(out, pictures...), MarkAt: len(out)}, nil
}

func orTool(name string) string {
	if name == "" {
		return "a tool"
	}
	return name
}

// split parts a result into its text and the pictures that can be shown.
func (e encoder) split(blocks chat.Blocks) (string, chat.Blocks) {
	var text []string
	var images chat.Blocks
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			text = append(text, b.Text)
		case chat.File:
			text = append(text, wire.FileLine(b))
		case chat.Image:
			if e.blind || !wire.Shown(b.MediaType) {
				text = append(text, wire.Unseen(b))
			} else {
				images = append(images, b)
			}
		}
	}
	return strings.Join(text, "\n"), images
}

// user writes what a person said: as a string where that is enough, because some
// servers take nothing else.
func (e encoder) user(blocks chat.Blocks) ([]byte, error) {
	var text []string
	images := false
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			if b.Text != "" {
				text = append(text, b.Text)
			}
		case chat.File:
			text = append(text, wire.FileLine(b))
		case chat.Image:
			if e.blind || !wire.Shown(b.MediaType) {
				text = append(text, wire.Unseen(b))
			} else {
				images = true
			}
		default:
			return nil, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	if !images {
		if strings.TrimSpace(strings.Join(text, "")) == "" {
			return nil, nil
		}
		return append(wire.AppendString([]byte(`{"role":"user","content":`), strings.Join(text, "\n\n")), '}'), nil
	}
	return e.parts(blocks)
}

// parts writes text and pictures as a list.
func (e encoder) parts(blocks chat.Blocks) ([]byte, error) {
	out := []byte(`{"role":"user","content":[`)
	first := true
	comma := func() {
		if !first {
			out = append(out, ',')
		}
		first = false
	}
	say := func(text string) {
		if strings.TrimSpace(text) != "" {
			comma()
			out = append(wire.AppendString(append(out, `{"type":"text","text":`...), text), '}')
		}
	}
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			say(b.Text)
		case chat.File:
			say(wire.FileLine(b))
		case chat.Image:
			if e.blind || !wire.Shown(b.MediaType) {
				say(wire.Unseen(b))
				continue
			}
			data, err := wire.Base64(b, e.blob)
			if err != nil {
				return nil, err
			}
			comma()
			out = append(append(append(out, `{"type":"image_url","image_url":{"url":"data:`...), b.MediaType...), ";base64,"...)
			out = append(append(out, data...), `"}}`...)
		}
	}
	return append(out, "]}"...), nil
}

// assistant writes an answer back: text and calls. Reasoning stays here; the
// vendor does not take it back.
func assistant(blocks chat.Blocks) []byte {
	text, calls := blocks.Text(), blocks.Calls()
	if strings.TrimSpace(text) == "" {
		if len(calls) == 0 {
			return nil
		}
		text = ""
	}
	out := []byte(`{"role":"assistant"`)
	if text != "" {
		out = wire.AppendString(append(out, `,"content":`...), text)
	}
	for i, c := range calls {
		if i == 0 {
			out = append(out, `,"tool_calls":[`...)
		} else {
			out = append(out, ',')
		}
		out = wire.AppendString(append(out, `{"id":`...), c.ID)
		out = wire.AppendString(append(out, `,"type":"function","function":{"name":`...), c.Name)
		out = wire.AppendString(append(out, `,"arguments":`...), string(wire.Args(c.Args)))
		out = append(out, "}}"...)
	}
	if len(calls) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}
