package openai

import (
	"slices"
	"strconv"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// maxStops is how many stop sequences the vendor takes.
const maxStops = 4

// Prepare puts the body together from the remembered bytes of head and messages.
// There are no cache marks here: the vendor caches prefixes by itself.
func (p *Provider) Prepare(r model.Request) (model.Prepared, error) {
	side := p.side(r.Model)
	if r.Prefill != "" {
		return model.Prepared{}, side.Bad("%s does not take a prefill: no model behind Chat Completions does; use chat mode for it, or a model that does, such as anthropic/claude-sonnet-4-5", r.Model)
	}
	entry, known := model.Lookup(p.opts.Name, r.Model)
	wires, size, err := encodeAll(r, known && !entry.Images)
	if err != nil {
		return model.Prepared{}, side.Bad("%v", err)
	}
	if len(wires) == 0 {
		return model.Prepared{}, side.Bad("there is nothing to send: every message is empty")
	}
	var tools, system []byte
	if r.Head != nil {
		if tools, err = r.Head.Encoded("openai/tools", encodeTools); err != nil {
			return model.Prepared{}, side.Bad("%v", err)
		}
		if system, err = r.Head.Encoded("openai/system", encodeSystem); err != nil {
			return model.Prepared{}, side.Bad("%v", err)
		}
	}
	body := r.Room(len(tools) + len(system) + size + len(wires) + 1024)
	body = append(body, `{"model":`...)
	body = wire.AppendString(body, r.Model)
	body = append(body, `,"stream":true,"stream_options":{"include_usage":true}`...)
	body = appendSettings(body, r.Settings, entry, known, len(tools) > 0)
	body = append(body, tools...)
	body = append(body, `,"messages":[`...)
	body = append(body, system...)
	body = appendMessages(body, wires, len(system) > 0)
	body = append(body, "]}"...)
	return model.Prepared{Model: r.Model, Body: body, Estimate: wire.Estimate(len(body), r.Messages)}, nil
}

// encodeAll gives the messages that have something to say, and the bytes they need.
func encodeAll(r model.Request, blind bool) ([]model.Wire, int, error) {
	name := "openai"
	if blind {
		name += "/blind"
	}
	enc := encoder{blob: r.Blob, blind: blind}
	wires := make([]model.Wire, 0, len(r.Messages))
	size := 0
	for _, m := range r.Messages {
		w, err := m.Encoded(name, enc.message)
		if err != nil {
			return nil, 0, err
		}
		if len(w.Bytes) > 0 {
			wires = append(wires, w)
			size += len(w.Bytes) + 1
		}
	}
	return wires, size, nil
}

// appendMessages joins the messages. Pictures out of tool results stand behind
// MarkAt in their bytes; they wait until the last result of the batch, because the
// vendor takes nothing between results.
func appendMessages(body []byte, wires []model.Wire, comma bool) []byte {
	var late [][]byte
	add := func(b []byte) {
		if comma {
			body = append(body, ',')
		}
		comma = true
		body = append(body, b...)
	}
	flush := func() {
		for _, b := range late {
			add(b)
		}
		late = late[:0]
	}
	for _, w := range wires {
		if len(late) > 0 && !isResult(w.Bytes) {
			flush()
		}
		if w.MarkAt == 0 {
			add(w.Bytes)
			continue
		}
		add(w.Bytes[:w.MarkAt])
		late = append(late, w.Bytes[w.MarkAt:])
	}
	flush()
	return body
}

// appendSettings writes the numbers, each with a comma in front; what the model
// would refuse is left out.
func appendSettings(body []byte, s chat.Settings, entry model.Entry, known, tools bool) []byte {
	if limit := s.MaxTokens; limit > 0 {
		if known {
			limit = min(limit, entry.MaxOutput)
		}
		body = append(body, `,"max_completion_tokens":`...)
		body = strconv.AppendInt(body, int64(limit), 10)
	}
	if e := effort(s.ThinkingBudget, entry, tools); e != "" {
		body = append(body, `,"reasoning_effort":"`+e+`"`...)
	}
	if entry.NoSampling {
		return body
	}
	if s.Temperature != nil {
		body = wire.AppendFloat(append(body, `,"temperature":`...), min(max(*s.Temperature, 0), 2))
	}
	if s.TopP != nil {
		body = wire.AppendFloat(append(body, `,"top_p":`...), *s.TopP)
	}
	stops := slices.DeleteFunc(slices.Clone(s.Stop), func(s string) bool { return s == "" })
	if len(stops) > maxStops {
		stops = stops[:maxStops]
	}
	if len(stops) > 0 {
		body = wire.AppendStrings(append(body, `,"stop":`...), stops)
	}
	return body
}

// effort says a budget in the vendor's words, unless the model must not hear it.
func effort(budget int, entry model.Entry, tools bool) string {
	switch {
	case tools && entry.ToolEffort == "none":
		return "none"
	case budget <= 0, !entry.Thinking, tools && entry.ToolEffort == "omit":
		return ""
	case budget <= 4_096:
		return "low"
	case budget <= 16_384:
		return "medium"
	default:
		return "high"
	}
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
