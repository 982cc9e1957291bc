package google

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// encoder writes messages in the vendor's form.
type encoder struct {
	form   string // the name of the wire form
	blob   func(string) ([]byte, error)
	blind  bool              // the model sees no pictures
	signed bool              // the model wants a signature at every first call
	names  map[string]string // of calls whose results do not say what answered
}

const (
	userOpen  = `{"role":"user","parts":[`
	modelOpen = `{"role":"model","parts":[`
	closing   = `]}`
	resultKey = `{"functionResponse":`
	// unsigned stands where a signature must be and there is none, because another
	// model made the call. The vendor documents it for that.
	unsigned = "skip_thought_signature_validator"
)

func isResult(b []byte) bool { return bytes.HasPrefix(b, []byte(resultKey)) }
func isModel(b []byte) bool  { return bytes.HasPrefix(b, []byte(modelOpen)) }

// encode gives the i-th message's bytes. A result must say which function
// answered; where it does not, the call before it does.
func (e encoder) encode(messages []*model.Message, i int) (model.Wire, error) {
	m, form := messages[i], e.form
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok || r.Name != "" {
			continue
		}
		if e.names == nil {
			e.names = map[string]string{}
		}
		e.names[r.Call] = caller(messages[:i], r.Call)
		form += "\x00" + r.Call + "\x00" + e.names[r.Call]
	}
	return m.Encoded(form, e.message)
}

// caller is the name of a call's function.
func caller(messages []*model.Message, call string) string {
	for _, m := range slices.Backward(messages) {
		for _, use := range m.Blocks.Calls() {
			if use.ID == call {
				return use.Name
			}
		}
	}
	return "tool"
}

// message writes one message: a content, or, of results, only the parts, because
// all results of an answer must stand in one content. MarkAt is not a cache mark
// here but where what came beside the results begins: it waits until after them. No
// bytes at all when there is nothing in it.
func (e encoder) message(m *model.Message) (model.Wire, error) {
	if m.Role == model.Assistant {
		return model.Wire{Bytes: e.answer(m.Blocks)}, nil
	}
	var results, late []byte
	var rest chat.Blocks
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		if len(results) > 0 {
			results = append(results, ',')
		}
		var images chat.Blocks
		results, images = e.result(results, r)
		if len(images) == 0 {
			continue
		}
		shown := append(chat.Blocks{chat.Text{Text: "[shown by " + e.name(r) + " in answer to call " + r.Call + "]"}}, images...)
		content, err := e.user(shown)
		if err != nil {
			return model.Wire{}, err
		}
		late = append(comma(late), content...)
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

func (e encoder) name(r chat.ToolResult) string {
	if r.Name != "" {
		return r.Name
	}
	return e.names[r.Call]
}

// result writes one result and gives the pictures in it, which only the newest
// models take there.
func (e encoder) result(out []byte, r chat.ToolResult) ([]byte, chat.Blocks) {
	var text []string
	var images chat.Blocks
	for _, block := range r.Blocks {
		switch b := block.(type) {
		case chat.Text:
			text = append(text, b.Text)
		case chat.File:
			text = append(text, wire.FileLine(b))
		case chat.Image:
			if e.shows(b) {
				images = append(images, b)
			} else {
				text = append(text, wire.Unseen(b))
			}
		}
	}
	out = wire.AppendString(append(out, resultKey+`{"id":`...), r.Call)
	out = wire.AppendString(append(out, `,"name":`...), e.name(r))
	key := "output"
	if r.Failed {
		key = "error"
	}
	out = wire.AppendString(append(out, `,"response":{"`+key+`":`...), strings.Join(text, "\n"))
	return append(out, "}}}"...), images
}

// shows reports whether the model can be shown a picture. The vendor takes no GIF.
func (e encoder) shows(img chat.Image) bool {
	return !e.blind && slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}, img.MediaType)
}

// user writes what a person said or showed.
func (e encoder) user(blocks chat.Blocks) ([]byte, error) {
	var parts []byte
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			parts = appendText(parts, b.Text, "")
		case chat.File:
			parts = appendText(parts, wire.FileLine(b), "")
		case chat.Image:
			if !e.shows(b) {
				parts = appendText(parts, wire.Unseen(b), "")
				continue
			}
			data, err := wire.Base64(b, e.blob)
			if err != nil {
				return nil, err
			}
			parts = append(comma(parts), `{"inlineData":{"mimeType":"`+b.MediaType+`","data":"`...)
			parts = append(append(parts, data...), `"}}`...)
		default:
			return nil, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	return content(userOpen, parts), nil
}

// answer writes an answer back: text and calls, each with its signature. The
// thoughts themselves stay here: the vendor reads nothing from their summary.
func (e encoder) answer(blocks chat.Blocks) []byte {
	var parts []byte
	calls := 0
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			parts = appendText(parts, b.Text, b.Signature)
		case chat.ToolUse:
			if calls++; calls == 1 && b.Signature == "" && e.signed {
				b.Signature = unsigned
			}
			parts = wire.AppendString(append(comma(parts), `{"functionCall":{"id":`...), b.ID)
			parts = wire.AppendString(append(parts, `,"name":`...), b.Name)
			parts = append(append(parts, `,"args":`...), wire.Args(b.Args)...)
			parts = appendSignature(append(parts, '}'), b.Signature)
			parts = append(parts, '}')
		}
	}
	return content(modelOpen, parts)
}

func content(open string, parts []byte) []byte {
	if len(parts) == 0 {
		return nil
	}
	return append(append([]byte(open), parts...), closing...)
}

// appendText leaves out text that says nothing, unless it is signed.
func appendText(parts []byte, text, signature string) []byte {
	if signature == "" && strings.TrimSpace(text) == "" {
		return parts
	}
	parts = wire.AppendString(append(comma(parts), `{"text":`...), text)
	return append(appendSignature(parts, signature), '}')
}

func appendSignature(parts []byte, signature string) []byte {
	if signature == "" {
		return parts
	}
	return wire.AppendString(append(parts, `,"thoughtSignature":`...), signature)
}
