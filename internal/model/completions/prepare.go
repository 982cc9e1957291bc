package completions

import (
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

// defaultOutput is the output limit if none is set: the interface itself would stop after 16
// tokens, and a base model continues for as long as it is allowed to.
const defaultOutput = 1_024

// Prepare assembles the body. The prompt comes last and consists of the messages' cached
// bytes, so that a longer conversation begins with the same bytes.
func (p *Provider) Prepare(r model.Request) (model.Prepared, error) {
	side := p.side(r.Model)
	if p.wrong != nil {
		return model.Prepared{}, side.Bad("%v", p.wrong)
	}
	if r.Settings.ThinkingBudget > 0 {
		return model.Prepared{}, side.Bad("%s is a base model and cannot be asked to think: use no thinking budget, or use a chat model", r.Model)
	}
	system, err := head(r)
	if err != nil {
		return model.Prepared{}, side.Bad("%v", err)
	}
	wires, size := make([][]byte, 0, len(r.Messages)), 0
	for _, m := range r.Messages {
		w, err := m.Encoded(provider, encode)
		if err != nil {
			return model.Prepared{}, side.Bad("%s is a base model: %v", r.Model, err)
		}
		wires, size = append(wires, w.Bytes), size+len(w.Bytes)
	}
	prefill := escape(r.Prefill)
	if len(system)+size+len(prefill) == 0 {
		return model.Prepared{}, side.Bad("there is nothing to send: every message is empty")
	}
	room := 1024
	for _, value := range p.extra {
		room += len(value) + 64
	}
	size += len(system) + len(prefill)
	body := p.settings(r, model.Tokens(size), format.Body{Bytes: r.Room(size + room), Extra: p.extra})
	body = append(append(body, `,"prompt":"`...), system...)
	for _, w := range wires {
		body = append(body, w...)
	}
	body = append(append(body, prefill...), `"}`...)
	return model.Prepared{Model: r.Model, Body: body, Estimate: model.Tokens(len(body)), Prefill: r.Prefill}, nil
}

// settings begins the body with everything except the prompt. prompt
// is the prompt's approximate size in tokens.
func (p *Provider) settings(r model.Request, prompt int, body format.Body) []byte {
	entry, known := catalog.Lookup(p.opts.Catalog, r.Model)
	body.Bytes = wire.AppendString(append(body.Bytes, `{"model":`...), r.Model)
	body.Bytes = append(body.Bytes, `,"stream":true`...)
	body.Raw("stream_options", `{"include_usage":true}`)
	limit, window := r.Settings.MaxTokens, r.Settings.ContextWindow
	if limit <= 0 {
		limit = defaultOutput
	}
	if known {
		limit = min(limit, entry.MaxOutput)
		if window <= 0 {
			window = entry.ContextWindow
		}
	}
	if window > 0 { // it counts text and answer together, and rejects more
		limit = max(min(limit, window-prompt), 1)
	}
	body.Int("max_tokens", limit)
	body.Float("temperature", r.Settings.Temperature, 0, 2)
	body.Float("top_p", r.Settings.TopP, 0, 1)
	body.Float("presence_penalty", r.Settings.PresencePenalty, -2, 2)
	body.Float("frequency_penalty", r.Settings.FrequencyPenalty, -2, 2)
	body.Stops("stop", r.Settings.Stop, p.stops)
	return body.Extra.Append(body.Bytes)
}

// head returns the system prompt as the text begins with it.
func head(r model.Request) ([]byte, error) {
	if r.Head == nil {
		return nil, nil
	}
	if len(r.Head.Tools) > 0 {
		var names []string
		for _, t := range r.Head.Tools {
			names = append(names, t.Name)
		}
		return nil, fmt.Errorf("%s is a base model and calls no tools (%s): describe them in the text and use none here, or use a chat model", r.Model, strings.Join(names, ", "))
	}
	return r.Head.Encoded(provider, func(h *model.Head) ([]byte, error) {
		if h.System == "" {
			return nil, nil
		}
		return escape(h.System + "\n\n"), nil
	})
}

// encode returns a message's text, ready to be placed inside a JSON string.
func encode(m *model.Message) (model.Wire, error) {
	var text strings.Builder
	for _, block := range m.Blocks {
		switch b := block.(type) {
		case chat.Text:
			text.WriteString(b.Text)
		case chat.File:
			text.WriteString(wire.FileLine(b))
		case chat.Image:
			return model.Wire{}, fmt.Errorf("it cannot be shown a picture (%s): use no pictures with it, or use a model that sees", b.MediaType)
		case chat.ToolUse, chat.ToolResult:
			return model.Wire{}, fmt.Errorf("it knows no tool calls (%T): write them into the text with prefill mode, or use a chat model", b)
		case chat.Thinking:
			return model.Wire{}, fmt.Errorf("it knows no reasoning: write it into the text or leave it out, or use a chat model")
		default:
			return model.Wire{}, fmt.Errorf("it takes text only, and no %T: use a chat model", block)
		}
	}
	return model.Wire{Bytes: escape(text.String())}, nil
}

// escape writes s as the inside of a JSON string. Separately escaped texts can be concatenated.
func escape(s string) []byte {
	if s == "" {
		return nil
	}
	quoted := wire.AppendString(nil, s)
	return quoted[1 : len(quoted)-1]
}
