package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

// leastOutput is the smallest limit that Responses accepts.
const leastOutput = 16

// prepareResponses makes the body for the Responses API.
func (p *Provider) prepareResponses(r model.Request, entry catalog.Entry, known bool) (_ []byte, dropped []string, _ error) {
	enc, name := itemEncoder{form: form{blind: known && !entry.Images}, blob: r.Blob}, "openai/responses"
	if enc.blind {
		name += "/blind"
	}
	wires, size, err := wire.EncodeAll(r.Messages, wire.As(name, enc.message))
	if err != nil {
		return nil, nil, err
	}
	var head []byte
	if r.Head != nil {
		if head, err = r.Head.Encoded("openai/responses", encodeInstructions); err != nil {
			return nil, nil, err
		}
	}
	body := p.begin(r, len(head)+size)
	body.Raw("store", "false")
	if limit := r.Settings.MaxTokens; limit > 0 {
		if known {
			limit = min(limit, entry.MaxOutput)
		}
		body.Int("max_output_tokens", max(limit, leastOutput))
	}
	appendReasoning(&body, r.Settings.ThinkingBudget, entry, known)
	if !entry.NoSampling {
		body.Float("temperature", r.Settings.Temperature, 0, 2)
		body.Float("top_p", r.Settings.TopP, 0, 1)
	}
	out := body.Extra.Append(body.Bytes)
	dropped = wire.Dropped(r.Settings, out, wire.Unthinking)
	out = append(out, head...)
	out = append(out, `,"input":[`...)
	for i, w := range wires {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, w.Bytes...)
	}
	return append(out, "]}"...), dropped, nil
}

// appendReasoning requests reasoning, and what is needed to send it back. It requests a summary only
// with a budget: OpenAI gives none to unverified accounts and fails the call.
func appendReasoning(body *format.Body, budget int, entry catalog.Entry, known bool) {
	thinks := entry.Thinking || !known && budget > 0
	if !thinks {
		return
	}
	body.Raw("include", `["reasoning.encrypted_content"]`)
	if budget > 0 {
		body.Raw("reasoning", `{"effort":"`+effort(budget, entry)+`","summary":"auto"}`)
	}
}

// The items of Responses. Their fields are in the order in which they are sent.
type (
	toolItem struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}
	messageItem struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	inputImage struct {
		Type     string `json:"type"`
		Detail   string `json:"detail"`
		ImageURL string `json:"image_url"`
	}
	outputText struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Annotations []any  `json:"annotations"` // required, and never any of ours
	}
	callItem struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	outputItem struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output any    `json:"output"` // a string, or a list of parts
	}
	reasoningItem struct {
		Type      string     `json:"type"`
		ID        string     `json:"id"`
		Summary   []textPart `json:"summary"`
		Encrypted string     `json:"encrypted_content"`
	}
)

// encodeInstructions writes system prompt and tools as fields of the body, each preceded by a comma.
func encodeInstructions(h *model.Head) ([]byte, error) {
	var out []byte
	if h.System != "" {
		out = wire.AppendString(append(out, `,"instructions":`...), h.System)
	}
	if len(h.Tools) == 0 {
		return out, nil
	}
	var tools []toolItem
	for _, t := range h.Tools {
		schema, err := wire.Schema(t)
		if err != nil {
			return nil, err
		}
		tools = append(tools, toolItem{"function", t.Name, t.Description, schema, false})
	}
	return wire.Append(append(out, `,"tools":`...), tools)
}

// itemEncoder writes messages as items of Responses.
type itemEncoder struct {
	form
	blob func(string) ([]byte, error)
}

// message writes one message as its items. An empty message yields no bytes.
func (e itemEncoder) message(m *model.Message) (model.Wire, error) {
	items, err := e.items(m)
	var out []byte
	for _, item := range items {
		if err == nil {
			out, err = wire.AppendNext(out, item)
		}
	}
	return model.Wire{Bytes: out}, err
}

func (e itemEncoder) items(m *model.Message) ([]any, error) {
	if m.Role == model.Assistant {
		return answerItems(m.Blocks), nil
	}
	var out []any
	var rest chat.Blocks
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		result, err := e.result(r)
		if err != nil {
			return nil, err
		}
		out = append(out, result)
	}
	parts, err := e.parts(rest)
	if len(parts) > 0 {
		out = append(out, messageItem{"message", "user", parts})
	}
	return out, err
}

// result returns what is sent for a tool's result: a string if possible.
func (e itemEncoder) result(r chat.ToolResult) (outputItem, error) {
	text, images := wire.ResultText(r.Blocks, e.shows)
	text = failedText(text, r.Failed)
	if len(images) == 0 {
		return outputItem{"function_call_output", wire.ShortID(r.Call, maxResponsesID), text}, nil
	}
	parts, err := e.parts(append(chat.Blocks{chat.Text{Text: text}}, images...))
	return outputItem{"function_call_output", wire.ShortID(r.Call, maxResponsesID), parts}, err
}

// parts returns what is sent for text and pictures.
func (e itemEncoder) parts(blocks chat.Blocks) ([]any, error) {
	var out []any
	say := func(text string) {
		if strings.TrimSpace(text) != "" {
			out = append(out, textPart{Type: "input_text", Text: text})
		}
	}
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			say(b.Text)
		case chat.File:
			say(wire.FileLine(b))
		case chat.Image:
			if !e.shows(b) {
				say(wire.Unseen(b))
				continue
			}
			url, lost, err := dataURL(b, e.blob)
			if err != nil {
				return nil, err
			}
			if lost != "" {
				say(lost)
				continue
			}
			out = append(out, inputImage{"input_image", "auto", url})
		default:
			return nil, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	return out, nil
}

// answerItems returns an answer item by item, in its original order: the vendor requires reasoning right
// before its result. It drops reasoning without a result and reasoning of other vendors.
func answerItems(blocks chat.Blocks) []any {
	var out, reasoned []any
	add := func(item any) {
		out = append(append(out, reasoned...), item)
		reasoned = nil
	}
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Thinking:
			if sealed, ok := strings.CutPrefix(b.Signature+b.Redacted, format.ResponsesTag); ok {
				id, sealed := format.CutReasoning(sealed)
				item := reasoningItem{"reasoning", id, []textPart{}, sealed}
				if b.Text != "" {
					item.Summary = append(item.Summary, textPart{Type: "summary_text", Text: b.Text})
				}
				reasoned = append(reasoned, item)
			}
		case chat.Text:
			if strings.TrimSpace(b.Text) != "" {
				add(messageItem{"message", "assistant", []any{outputText{"output_text", b.Text, []any{}}}})
			}
		case chat.ToolUse:
			add(callItem{"function_call", wire.ShortID(b.ID, maxResponsesID), wire.ToolName(b.Name), string(wire.Args(b.Args))})
		}
	}
	return out
}
