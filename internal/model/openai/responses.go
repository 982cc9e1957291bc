package openai

import (
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

// leastOutput is the smallest limit that Responses takes.
const leastOutput = 16

// prepareResponses makes the body for the Responses API.
func (p *Provider) prepareResponses(r model.Request, entry catalog.Entry, known bool) ([]byte, error) {
	enc, name := itemEncoder{blob: r.Blob, blind: known && !entry.Images}, "openai/responses"
	if enc.blind {
		name += "/blind"
	}
	wires, size, err := encodeAll(r, name, enc.message)
	if err != nil {
		return nil, err
	}
	var head []byte
	if r.Head != nil {
		if head, err = r.Head.Encoded("openai/responses", encodeInstructions); err != nil {
			return nil, err
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
	out := append(body.Extra.Append(body.Bytes), head...)
	out = append(out, `,"input":[`...)
	for i, w := range wires {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, w.Bytes...)
	}
	return append(out, "]}"...), nil
}

// appendReasoning asks for reasoning, and for what is needed to send it back. A
// summary is asked for only with a budget: OpenAI gives none to accounts that it has
// not verified, and fails the call.
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

// encodeInstructions writes system prompt and tools, each with a comma in front.
func encodeInstructions(h *model.Head) ([]byte, error) {
	var out []byte
	if h.System != "" {
		out = wire.AppendString(append(out, `,"instructions":`...), h.System)
	}
	for i, t := range h.Tools {
		schema, err := wire.Schema(t)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			out = append(out, `,"tools":[`...)
		} else {
			out = append(out, ',')
		}
		out = wire.AppendString(append(out, `{"type":"function","name":`...), t.Name)
		out = wire.AppendString(append(out, `,"description":`...), t.Description)
		out = append(append(out, `,"parameters":`...), schema...)
		out = append(out, `,"strict":false}`...)
	}
	if len(h.Tools) > 0 {
		out = append(out, ']')
	}
	return out, nil
}

// itemEncoder writes messages as items of Responses.
type itemEncoder struct {
	blob  func(string) ([]byte, error)
	blind bool
}

// message writes one message as its items; no bytes when there is nothing in it.
func (e itemEncoder) message(m *model.Message) (model.Wire, error) {
	if m.Role == model.Assistant {
		return model.Wire{Bytes: e.assistant(m.Blocks)}, nil
	}
	var out []byte
	var rest chat.Blocks
	for _, block := range m.Blocks {
		r, ok := block.(chat.ToolResult)
		if !ok {
			rest = append(rest, block)
			continue
		}
		result, err := e.result(r)
		if err != nil {
			return model.Wire{}, err
		}
		out = appendComma(out, result)
	}
	parts, err := e.parts(rest)
	if err != nil {
		return model.Wire{}, err
	}
	if len(parts) > 0 {
		out = appendComma(out, []byte(`{"type":"message","role":"user","content":[`))
		out = append(append(out, parts...), "]}"...)
	}
	return model.Wire{Bytes: out}, nil
}

// result writes a tool's result: a string where that is enough.
func (e itemEncoder) result(r chat.ToolResult) ([]byte, error) {
	out := wire.AppendString([]byte(`{"type":"function_call_output","call_id":`), r.Call)
	out = append(out, `,"output":`...)
	text, images := encoder{form: form{blind: e.blind}}.split(r.Blocks)
	text = failedText(text, r.Failed)
	if len(images) == 0 {
		return append(wire.AppendString(out, text), '}'), nil
	}
	parts, err := e.parts(append(chat.Blocks{chat.Text{Text: text}}, images...))
	if err != nil {
		return nil, err
	}
	return append(append(append(out, '['), parts...), "]}"...), nil
}

// parts writes text and pictures, without the brackets around them.
func (e itemEncoder) parts(blocks chat.Blocks) ([]byte, error) {
	var out []byte
	say := func(text string) {
		if strings.TrimSpace(text) != "" {
			out = append(wire.AppendString(appendComma(out, []byte(`{"type":"input_text","text":`)), text), '}')
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
			out = appendComma(out, []byte(`{"type":"input_image","detail":"auto","image_url":"data:`+b.MediaType+";base64,"))
			out = append(append(out, data...), `"}`...)
		default:
			return nil, fmt.Errorf("a user message cannot hold a %T", block)
		}
	}
	return out, nil
}

// assistant writes an answer back item by item, in the order it was given: the
// vendor wants reasoning right before what came of it. Reasoning that nothing came
// of, and reasoning of other vendors, stays here.
func (e itemEncoder) assistant(blocks chat.Blocks) []byte {
	var out, reasoned []byte
	add := func(item []byte) {
		if len(reasoned) > 0 {
			out = appendComma(out, reasoned)
			reasoned = nil
		}
		out = appendComma(out, item)
	}
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Thinking:
			if item := reasoningItem(b); item != nil {
				reasoned = appendComma(reasoned, item)
			}
		case chat.Text:
			if strings.TrimSpace(b.Text) != "" {
				item := wire.AppendString([]byte(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":`), b.Text)
				add(append(item, "}]}"...))
			}
		case chat.ToolUse:
			item := wire.AppendString([]byte(`{"type":"function_call","call_id":`), b.ID)
			item = wire.AppendString(append(item, `,"name":`...), b.Name)
			item = wire.AppendString(append(item, `,"arguments":`...), string(wire.Args(b.Args)))
			add(append(item, '}'))
		}
	}
	return out
}

// reasoningItem gives reasoning back as it came; nil if it did not come from here.
func reasoningItem(t chat.Thinking) []byte {
	sealed, ok := strings.CutPrefix(t.Signature+t.Redacted, format.ResponsesTag)
	if !ok {
		return nil
	}
	out := []byte(`{"type":"reasoning","summary":[`)
	if t.Text != "" {
		out = append(wire.AppendString(append(out, `{"type":"summary_text","text":`...), t.Text), '}')
	}
	out = wire.AppendString(append(out, `],"encrypted_content":`...), sealed)
	return append(out, '}')
}
