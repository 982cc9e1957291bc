package ollama

import (
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/wire"
)

// Prepare assembles the body from the cached bytes of head and messages. There are no
// cache marks here: the server keeps the last prompt by itself.
func (p *Provider) Prepare(r model.Request) (model.Prepared, error) {
	side := p.side(r.Model)
	wires, size, err := wire.EncodeAll(r.Messages, wire.As(provider, encoder{blob: r.Blob}.message))
	if err != nil {
		return model.Prepared{}, side.Bad("%v", err)
	}
	var tools, system []byte
	if r.Head != nil {
		if tools, err = r.Head.Encoded("ollama/tools", wire.FunctionTools); err != nil {
			return model.Prepared{}, side.Bad("%v", err)
		}
		if system, err = r.Head.Encoded("ollama/system", encodeSystem); err != nil {
			return model.Prepared{}, side.Bad("%v", err)
		}
	}
	prefill := strings.TrimRight(r.Prefill, " \t\r\n")
	body := r.Room(len(tools) + len(system) + size + len(prefill)*2 + 1024)
	body = wire.AppendString(append(body, `{"model":`...), r.Model)
	body = append(body, `,"stream":true`...)
	body = appendThinking(body, r.Settings.ThinkingBudget, r.Model, prefill != "")
	body = append(body, `,"options":{`...)
	body = appendOptions(body, r.Settings, r.Model)
	body = append(body, '}')
	dropped := wire.Dropped(r.Settings, body, wire.Begun)
	body = append(body, tools...)
	body = append(body, `,"messages":[`...)
	body = append(body, system...)
	body = appendMessages(body, wires, len(system) > 0)
	if prefill != "" {
		body = wire.AppendString(append(body, `,{"role":"assistant","content":`...), prefill)
		body = append(body, '}')
	}
	body = append(body, "]}"...)
	return model.Prepared{Model: r.Model, Body: body, Estimate: wire.Estimate(len(body), r.Messages), Prefill: r.Prefill, Dropped: dropped}, nil
}

// appendMessages joins the messages. What follows MarkAt waits for the last result of its batch.
func appendMessages(body []byte, wires []wire.Placed, comma bool) []byte {
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

// appendThinking requests reasoning: with true, or with a level if the model
// wants one. A prefilled answer cannot think first.
func appendThinking(body []byte, budget int, name string, begun bool) []byte {
	switch {
	case begun:
		return append(body, `,"think":false`...)
	case budget <= 0:
		return body // the model's default
	case catalog.TraitsOf(provider, name).Reasoning != catalog.ReasonByLevel:
		return append(body, `,"think":true`...)
	case budget <= 4_096:
		return append(body, `,"think":"low"`...)
	case budget <= 16_384:
		return append(body, `,"think":"medium"`...)
	default:
		return append(body, `,"think":"high"`...)
	}
}

// appendOptions writes the options. The window is always among them: without it the server uses a small one
// and silently cuts what does not fit; if it changes from call to call, the server loads the model again.
func appendOptions(body []byte, s chat.Settings, name string) []byte {
	window := s.ContextWindow
	if window <= 0 {
		entry, _ := catalog.Lookup(provider, name)
		window = entry.ContextWindow
	}
	body = strconv.AppendInt(append(body, `"num_ctx":`...), int64(window), 10)
	if s.MaxTokens > 0 {
		body = strconv.AppendInt(append(body, `,"num_predict":`...), int64(s.MaxTokens), 10)
	}
	if s.Temperature != nil {
		body = wire.AppendFloat(append(body, `,"temperature":`...), max(*s.Temperature, 0))
	}
	if s.TopP != nil {
		body = wire.AppendFloat(append(body, `,"top_p":`...), *s.TopP)
	}
	stops := slices.DeleteFunc(slices.Clone(s.Stop), func(s string) bool { return s == "" })
	if len(stops) > 0 {
		body = wire.AppendStrings(append(body, `,"stop":`...), stops)
	}
	return body
}

func encodeSystem(h *model.Head) ([]byte, error) {
	if h.System == "" {
		return nil, nil
	}
	return wire.Append(nil, userMessage{Role: "system", Content: h.System})
}
