package openai

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

var errEmpty = errors.New("there is nothing to send: every message is empty")

// form is how Chat Completions is written for a server and a model.
type form struct {
	router bool // reasoning goes back in OpenRouter's own field
	parts  bool // text as a list of parts, each of which can carry a cache mark
	blind  bool // the model sees no pictures
}

// name is what the messages remember their bytes by.
func (f form) name() string {
	name := provider
	if f.router {
		name = routerName
	}
	if f.parts {
		name += "/parts"
	}
	if f.blind {
		name += "/blind"
	}
	return name
}

// head writes the tools, with a comma in front, and the system message. A mark
// behind the system prompt covers the tools too.
func (f form) head(h *model.Head) (tools, system []byte, err error) {
	if h == nil {
		return nil, nil, nil
	}
	if tools, err = h.Encoded("openai/tools", encodeTools); err != nil {
		return nil, nil, err
	}
	if f.parts {
		system, err = h.Encoded("openrouter/system/parts", encodeMarkedSystem)
	} else {
		system, err = h.Encoded("openai/system", encodeSystem)
	}
	return tools, system, err
}

// encodeTools writes the tools with a comma in front; nothing when there are none.
func encodeTools(h *model.Head) ([]byte, error) {
	if len(h.Tools) == 0 {
		return nil, nil
	}
	out := []byte(`,"tools":[`)
	for i, t := range h.Tools {
		schema, err := wire.Schema(t)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendString(append(out, `{"type":"function","function":{"name":`...), t.Name)
		out = wire.AppendString(append(out, `,"description":`...), t.Description)
		out = append(append(out, `,"parameters":`...), schema...)
		out = append(out, "}}"...)
	}
	return append(out, ']'), nil
}

func encodeSystem(h *model.Head) ([]byte, error) {
	if h.System == "" {
		return nil, nil
	}
	return append(wire.AppendString([]byte(`{"role":"system","content":`), h.System), '}'), nil
}

func encodeMarkedSystem(h *model.Head) ([]byte, error) {
	if h.System == "" {
		return nil, nil
	}
	out := wire.AppendString([]byte(`{"role":"system","content":[{"type":"text","text":`), h.System)
	return append(out, mark+"}]}"...), nil
}

// encoder writes messages in the vendor's form.
type encoder struct {
	form
	blob func(string) ([]byte, error)
}

var resultStart = []byte(`{"role":"tool",`)

// isResult reports whether a message's bytes begin with a tool result.
func isResult(b []byte) bool { return bytes.HasPrefix(b, resultStart) }

// written is a message in the vendor's form: what goes out at once, what waits for
// the last result of the batch, and where in the first a cache mark may stand.
type written struct {
	now, late []byte
	markAt    int
}

// message writes one message as one or more of the vendor's: results each on its
// own, then whatever else it holds. No bytes at all when there is nothing in it.
// MarkAt is not a cache mark here but where that begins which waits.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	w, err := e.write(m)
	if err != nil || len(w.late) == 0 {
		return model.Wire{Bytes: w.now}, err
	}
	return model.Wire{Bytes: append(w.now, w.late...), MarkAt: len(w.now)}, nil
}

// mark says where the message's cache mark may stand, and nothing else.
func (e encoder) mark(m *model.Message) (model.Wire, error) {
	w, err := e.write(m)
	return model.Wire{MarkAt: w.markAt}, err
}

func (e encoder) write(m *model.Message) (written, error) {
	if m.Role == model.Assistant {
		return e.assistant(m.Blocks), nil
	}
	var w written
	var rest chat.Blocks
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		images := e.result(&w, r)
		if len(images) == 0 {
			continue
		}
		shown := append(chat.Blocks{chat.Text{Text: "[shown by " + orTool(r.Name) + " in answer to call " + r.Call + "]"}}, images...)
		message, _, err := e.user(shown)
		if err != nil {
			return written{}, err
		}
		w.late = appendComma(w.late, message)
	}
	said, markAt, err := e.user(rest)
	if err != nil {
		return written{}, err
	}
	if len(w.now) == 0 {
		return written{now: said, markAt: markAt}, nil
	}
	if len(said) > 0 { // text behind results waits like their pictures
		w.late = appendComma(w.late, said)
	}
	return w, nil
}

// appendComma adds b, behind a comma if it is not the first.
func appendComma(out, b []byte) []byte {
	if len(out) > 0 {
		out = append(out, ',')
	}
	return append(out, b...)
}

// result writes a tool's result, and gives the pictures in it.
func (e encoder) result(w *written, r chat.ToolResult) chat.Blocks {
	text, images := e.split(r.Blocks)
	text = failedText(text, r.Failed)
	w.now = wire.AppendString(append(appendComma(w.now, resultStart), `"tool_call_id":`...), r.Call)
	w.now = append(w.now, `,"content":`...)
	if e.parts && strings.TrimSpace(text) != "" {
		w.now, w.markAt = appendPart(append(w.now, '['), text)
		w.now = append(w.now, ']')
	} else {
		w.now = wire.AppendString(w.now, text)
	}
	w.now = append(w.now, '}')
	return images
}

// failedText says that a tool failed: there is no other way to.
func failedText(text string, failed bool) string {
	if failed && !strings.HasPrefix(strings.ToLower(text), "error") {
		return "Error: " + text
	}
	return text
}

// appendPart writes text as a part, and says where in it a cache mark may stand.
func appendPart(out []byte, text string) ([]byte, int) {
	out = wire.AppendString(append(out, `{"type":"text","text":`...), text)
	return append(out, '}'), len(out)
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
func (e encoder) user(blocks chat.Blocks) ([]byte, int, error) {
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
			return nil, 0, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	if !images && strings.TrimSpace(strings.Join(text, "")) == "" {
		return nil, 0, nil
	}
	if images || e.parts {
		return e.list(blocks)
	}
	return append(wire.AppendString([]byte(`{"role":"user","content":`), strings.Join(text, "\n\n")), '}'), 0, nil
}

// list writes text and pictures as a list of parts.
func (e encoder) list(blocks chat.Blocks) (out []byte, markAt int, err error) {
	out = []byte(`{"role":"user","content":[`)
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
			out, markAt = appendPart(out, text)
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
				return nil, 0, err
			}
			comma()
			out = append(append(append(out, `{"type":"image_url","image_url":{"url":"data:`...), b.MediaType...), ";base64,"...)
			out = append(append(out, data...), `"}}`...)
		}
	}
	return append(out, "]}"...), markAt, nil
}

// assistant writes an answer back: text and calls. Reasoning goes back to a router
// only; Chat Completions does not take it.
func (e encoder) assistant(blocks chat.Blocks) written {
	text, calls := blocks.Text(), blocks.Calls()
	if strings.TrimSpace(text) == "" {
		if len(calls) == 0 {
			return written{}
		}
		text = ""
	}
	w := written{now: []byte(`{"role":"assistant"`)}
	switch {
	case text != "" && e.parts:
		w.now, w.markAt = appendPart(append(w.now, `,"content":[`...), text)
		w.now = append(w.now, ']')
	case text != "":
		w.now = wire.AppendString(append(w.now, `,"content":`...), text)
	}
	if e.router {
		if details := format.Details(blocks); details != nil {
			w.now = append(append(w.now, `,"reasoning_details":`...), details...)
		}
	}
	for i, c := range calls {
		if i == 0 {
			w.now = append(w.now, `,"tool_calls":[`...)
		} else {
			w.now = append(w.now, ',')
		}
		w.now = wire.AppendString(append(w.now, `{"id":`...), c.ID)
		w.now = wire.AppendString(append(w.now, `,"type":"function","function":{"name":`...), c.Name)
		w.now = wire.AppendString(append(w.now, `,"arguments":`...), string(wire.Args(c.Args)))
		w.now = append(w.now, "}}"...)
	}
	if len(calls) > 0 {
		w.now = append(w.now, ']')
	}
	w.now = append(w.now, '}')
	return w
}
