package google

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// The contents and their parts, with their fields in the order in which they are sent:
// it must not change, since a prompt cache knows them byte for byte.
type (
	contentOf struct {
		Role  string `json:"role"`
		Parts []any  `json:"parts"`
	}
	textPart struct {
		Text      string `json:"text"`
		Signature string `json:"thoughtSignature,omitempty"`
	}
	imagePart struct {
		Data inlineData `json:"inlineData"`
	}
	inlineData struct {
		MimeType string `json:"mimeType"`
		Data     string `json:"data"`
	}
	callPart struct {
		Call      functionCall `json:"functionCall"`
		Signature string       `json:"thoughtSignature,omitempty"`
	}
	functionCall struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	resultPart struct {
		Response functionResponse `json:"functionResponse"`
	}
	functionResponse struct {
		ID       string            `json:"id"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"` // under output or error
	}
)

// encoder writes messages in the vendor's form.
type encoder struct {
	form   string // the name of the wire form
	blob   func(string) ([]byte, error)
	blind  bool              // the model sees no pictures
	signed bool              // the model wants a signature at every first call
	names  map[string]string // of calls whose results do not say what answered
}

// unsigned stands where a signature must be and there is none, because another
// model made the call. The vendor documents it for that.
const unsigned = "skip_thought_signature_validator"

// What a content begins and ends with: parts of several messages are put into one.
const (
	userOpen  = `{"role":"user","parts":[`
	modelOpen = `{"role":"model","parts":[`
	closing   = `]}`
)

func isResult(b []byte) bool { return bytes.HasPrefix(b, []byte(`{"functionResponse":`)) }
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
		out, err := e.answer(m.Blocks)
		return model.Wire{Bytes: out}, err
	}
	return wire.Results(m.Blocks, e.result, e.user)
}

func (e encoder) name(r chat.ToolResult) string {
	return wire.ToolName(cmp.Or(r.Name, e.names[r.Call]))
}

// result is what is sent for one result, and the pictures in it, which only the newest
// models take there.
func (e encoder) result(r chat.ToolResult) (any, chat.Blocks, string) {
	text, images := wire.ResultText(r.Blocks, e.shows)
	key := "output"
	if r.Failed {
		key = "error"
	}
	name := e.name(r)
	return resultPart{functionResponse{r.Call, name, map[string]string{key: text}}}, images, name
}

// shows reports whether the model can be shown a picture. The vendor takes no GIF.
func (e encoder) shows(img chat.Image) bool {
	return !e.blind && slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}, img.MediaType)
}

// user adds what a person said or showed, if it is anything, to a list of contents.
func (e encoder) user(list []byte, blocks chat.Blocks) ([]byte, error) {
	var parts []any
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
			data, lost, err := wire.EncodeImage(b, e.blob)
			if err != nil {
				return nil, err
			}
			if lost != "" {
				parts = appendText(parts, lost, "")
				continue
			}
			parts = append(parts, imagePart{inlineData{b.MediaType, data}})
		default:
			return nil, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	return appendContent(list, "user", parts)
}

// answer writes an answer back: text and calls, each with its signature. The
// thoughts themselves stay here: the vendor reads nothing from their summary.
func (e encoder) answer(blocks chat.Blocks) ([]byte, error) {
	var parts []any
	calls := 0
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			parts = appendText(parts, b.Text, b.Signature)
		case chat.ToolUse:
			if calls++; calls == 1 && b.Signature == "" && e.signed {
				b.Signature = unsigned
			}
			parts = append(parts, callPart{functionCall{b.ID, wire.ToolName(b.Name), wire.Args(b.Args)}, b.Signature})
		}
	}
	return appendContent(nil, "model", parts)
}

func appendContent(list []byte, role string, parts []any) ([]byte, error) {
	if len(parts) == 0 {
		return list, nil
	}
	return wire.AppendNext(list, contentOf{role, parts})
}

// appendText leaves out text that says nothing, unless it is signed.
func appendText(parts []any, text, signature string) []any {
	if signature == "" && strings.TrimSpace(text) == "" {
		return parts
	}
	return append(parts, textPart{text, signature})
}
