package bedrock

import (
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/wire"
)

// encoder writes messages in Converse's form.
type encoder struct {
	blob  func(string) ([]byte, error)
	takes takes
}

// turn is what one side said without the other's speaking in between: Converse
// takes no two messages of one role in a row.
type turn struct {
	role model.Role
	said []placed
}

// placed is a message's bytes and where it stood in the request.
type placed struct {
	model.Wire
	index int
}

// turns gives the messages that have something to say, and the bytes they need.
func (e encoder) turns(messages []*model.Message) ([]turn, int, error) {
	form := e.takes.form()
	out := make([]turn, 0, len(messages))
	all := make([]placed, 0, len(messages)) // never grows: the turns are parts of it
	size := 0
	for i, m := range messages {
		w, err := m.Encoded(form, e.message)
		if err != nil {
			return nil, 0, err
		}
		if len(w.Bytes) == 0 {
			continue
		}
		all = append(all, placed{Wire: w, index: i})
		size += len(w.Bytes) + 2
		if n := len(out); n > 0 && out[n-1].role == m.Role {
			said := &out[n-1].said
			*said = (*said)[:len(*said)+1] // it is the next one in all
			continue
		}
		out = append(out, turn{role: m.Role, said: all[len(all)-1:]})
		size += len(`,{"role":"assistant","content":[]}`)
	}
	return out, size, nil
}

// message writes the blocks of one message, without the brackets around them; no
// bytes at all when there is nothing in it. Up to MarkAt stand results, which come
// first in their turn, with a comma only between blocks of the same part.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	blocks := m.Blocks
	if m.Role == model.Assistant {
		blocks = anthropic.Untailed(blocks)
	}
	var parts [2][]byte
	for _, block := range blocks {
		part := &parts[1]
		if _, is := block.(chat.ToolResult); is {
			part = &parts[0]
		}
		before := len(*part)
		if before > 0 {
			*part = append(*part, ',')
		}
		begin := len(*part)
		out, err := e.block(*part, block)
		if err != nil {
			return model.Wire{}, err
		}
		if len(out) == begin { // nothing came of it
			out = out[:before]
		}
		*part = out
	}
	return model.Wire{Bytes: append(parts[0], parts[1]...), MarkAt: len(parts[0])}, nil
}

func (e encoder) block(out []byte, block chat.Block) ([]byte, error) {
	switch b := block.(type) {
	case chat.Text:
		return appendText(out, b.Text), nil
	case chat.Image:
		return e.image(out, b)
	case chat.File:
		return appendText(out, wire.FileLine(b)), nil
	case chat.Thinking:
		return e.thinking(out, b), nil
	case chat.ToolUse:
		out = wire.AppendString(append(out, `{"toolUse":{"toolUseId":`...), anthropic.CallID(b.ID))
		out = wire.AppendString(append(out, `,"name":`...), b.Name)
		out = append(append(out, `,"input":`...), wire.Args(b.Args)...)
		return append(out, "}}"...), nil
	case chat.ToolResult:
		return e.result(out, b)
	default:
		return nil, fmt.Errorf("bedrock cannot take a %T", block)
	}
}

// appendText leaves out what is refused: text of nothing but white space.
func appendText(out []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return out
	}
	return append(wire.AppendString(append(out, `{"text":`...), text), '}')
}

// thinking gives reasoning back as it came. Without a signature nobody checks it,
// and nobody wants it back.
func (e encoder) thinking(out []byte, t chat.Thinking) []byte {
	switch {
	case !e.takes.thinking, wire.Foreign(t):
		return out
	case t.Redacted != "":
		out = wire.AppendString(append(out, `{"reasoningContent":{"redactedContent":`...), t.Redacted)
		return append(out, "}}"...)
	case t.Signature != "":
		out = wire.AppendString(append(out, `{"reasoningContent":{"reasoningText":{"text":`...), t.Text)
		out = wire.AppendString(append(out, `,"signature":`...), t.Signature)
		return append(out, "}}}"...)
	default:
		return out
	}
}

func (e encoder) image(out []byte, img chat.Image) ([]byte, error) {
	if !e.takes.images || !wire.Shown(img.MediaType) {
		return appendText(out, wire.Unseen(img)), nil
	}
	data, err := wire.Base64(img, e.blob)
	if err != nil {
		return nil, err
	}
	out = append(out, `{"image":{"format":"`+strings.TrimPrefix(img.MediaType, "image/")+`","source":{"bytes":"`...)
	return append(append(out, data...), `"}}}`...), nil
}

func (e encoder) result(out []byte, r chat.ToolResult) ([]byte, error) {
	out = wire.AppendString(append(out, `{"toolResult":{"toolUseId":`...), anthropic.CallID(r.Call))
	var inner []byte
	if r.Failed && !e.takes.failures {
		inner = appendText(inner, "Error:") // there is no other way to say so
	}
	for _, block := range r.Blocks {
		before := len(inner)
		if before > 0 {
			inner = append(inner, ',')
		}
		begin := len(inner)
		var err error
		switch b := block.(type) {
		case chat.Text:
			inner = appendText(inner, b.Text)
		case chat.Image:
			inner, err = e.image(inner, b)
		case chat.File:
			inner = appendText(inner, wire.FileLine(b))
		default:
			err = fmt.Errorf("a tool result cannot hold a %T", block)
		}
		if err != nil {
			return nil, err
		}
		if len(inner) == begin {
			inner = inner[:before]
		}
	}
	if len(inner) == 0 {
		inner = appendText(nil, "(nothing)") // an empty result is refused
	}
	out = append(append(append(out, `,"content":[`...), inner...), ']')
	if e.takes.failures {
		status := "success"
		if r.Failed {
			status = "error"
		}
		out = append(out, `,"status":"`+status+`"`...)
	}
	return append(out, "}}"...), nil
}
