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

// The contents and their parts. Their fields are in the order in which they are sent,
// which must not change because a prompt cache compares bytes.
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
	signed bool              // the model requires a signature at every first call
	names  map[string]string // of calls whose results do not name their function
}

// unsigned replaces a missing signature if another model made the
// call. The vendor documents it for that purpose.
const unsigned = "skip_thought_signature_validator"

// How a content begins and ends. Parts of several messages are combined into one content.
const (
	userOpen  = `{"role":"user","parts":[`
	modelOpen = `{"role":"model","parts":[`
	closing   = `]}`
)

func isResult(b []byte) bool { return bytes.HasPrefix(b, []byte(`{"functionResponse":`)) }
func isModel(b []byte) bool  { return bytes.HasPrefix(b, []byte(modelOpen)) }

// encode returns a message's bytes. A result must name the function that answered;
// if it does not, the call in one of the messages before does.
func (e encoder) encode(before []*model.Message, m *model.Message) (*model.Wire, error) {
	form := e.form
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok || r.Name != "" {
			continue
		}
		if e.names == nil {
			e.names = map[string]string{}
		}
		e.names[r.Call] = caller(before, r.Call)
		form += "\x00" + r.Call + "\x00" + e.names[r.Call]
	}
	return m.Encoded(form, e.message)
}

// caller returns the name of a call's function.
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

// message writes one message: a content, or for results only the parts, because all results of an answer
// must be in one content. MarkAt is not a cache mark here but the start of what came with the results,
// which has to wait until after them. An empty message yields no bytes.
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

// result returns what is sent for one result, and its pictures, which only the newest models accept there.
func (e encoder) result(r chat.ToolResult) (any, chat.Blocks, string) {
	text, images := wire.ResultText(r.Blocks, e.shows)
	key := "output"
	if r.Failed {
		key = "error"
	}
	name := e.name(r)
	return resultPart{functionResponse{r.Call, name, map[string]string{key: text}}}, images, name
}

// shows reports whether the model can be shown a picture. The vendor does not accept GIF.
func (e encoder) shows(img chat.Image) bool {
	return !e.blind && slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}, img.MediaType)
}

// user adds what a person said or showed, if anything, to a list of contents.
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

// answer writes an answer back: text and calls, each with its signature. Thoughts
// are not sent: the vendor reads nothing from their summary.
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

// appendText drops empty text unless it is signed.
func appendText(parts []any, text, signature string) []any {
	if signature == "" && strings.TrimSpace(text) == "" {
		return parts
	}
	return append(parts, textPart{text, signature})
}
