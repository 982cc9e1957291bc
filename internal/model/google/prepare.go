package google

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/wire"
)

// Prepare assembles the body from the cached bytes of head and messages. There are
// no cache marks here: the vendor caches prefixes by itself.
func (p *Provider) Prepare(r model.Request) (model.Prepared, error) {
	side := p.side(r.Model)
	if r.Prefill != "" {
		return model.Prepared{}, side.Bad("%s does not take a prefill: no Gemini does; use chat mode for it, or a model that does, such as anthropic/claude-sonnet-4-5", r.Model)
	}
	entry, known := catalog.Lookup(provider, r.Model)
	enc := encoder{form: provider, blob: r.Blob, blind: known && !entry.Images, signed: catalog.TraitsOf(provider, r.Model).SignedCalls}
	if enc.blind {
		enc.form += "/blind"
	}
	if enc.signed {
		enc.form += "/signed"
	}
	wires, size, err := wire.EncodeAll(r.Messages, func(i int, m *model.Message) (*model.Wire, error) { return enc.encode(r.Messages[:i], m) })
	if err != nil {
		return model.Prepared{}, side.Bad("%v", err)
	}
	var head []byte
	if r.Head != nil {
		if head, err = r.Head.Encoded(provider, encodeHead); err != nil {
			return model.Prepared{}, side.Bad("%v", err)
		}
	}
	body := r.Room(len(head) + size + len(wires)*len(userOpen+closing) + 1024)
	body = append(body, `{"generationConfig":{`...)
	body = appendSettings(body, r.Settings, r.Model, entry, known)
	dropped := wire.Dropped(r.Settings, body, wire.Unthinking)
	body = append(body, '}')
	body = append(body, head...)
	body = append(body, `,"contents":[`...)
	body = appendContents(body, wires)
	body = append(body, "]}"...)
	return model.Prepared{Model: r.Model, Body: body, Estimate: wire.Estimate(len(body), r.Messages), Dropped: dropped}, nil
}

// joiner concatenates contents. Results of one batch share a content, and so do
// answers with nothing between them: the vendor rejects a call that does not directly
// follow a user's turn, and results that are separated.
type joiner struct {
	body []byte
	open bool // the last content still accepts parts
	any  bool
	late [][]byte // what came with results
}

func appendContents(body []byte, wires []wire.Placed) []byte {
	j := joiner{body: body}
	results := false // whose parts the open content accepts
	for _, w := range wires {
		switch {
		case isResult(w.Bytes):
			if !results {
				j.close()
			}
			results = true
			parts := w.Bytes
			if w.MarkAt > 0 {
				parts = w.Bytes[:w.MarkAt]
				j.late = append(j.late, w.Bytes[w.MarkAt:])
			}
			j.add(userOpen, parts)
		case isModel(w.Bytes):
			if results {
				j.close()
			}
			results = false
			j.add(modelOpen, w.Bytes[len(modelOpen):len(w.Bytes)-len(closing)])
		default:
			j.close()
			results = false
			j.whole(w.Bytes)
		}
	}
	j.close()
	return j.body
}

// add adds parts to the open content, or opens one.
func (j *joiner) add(begin string, parts []byte) {
	if j.open {
		j.body = append(append(j.body, ','), parts...)
		return
	}
	if j.any {
		j.body = append(j.body, ',')
	}
	j.open, j.any = true, true
	j.body = append(append(j.body, begin...), parts...)
}

// close ends the open content and adds what waited for that.
func (j *joiner) close() {
	if !j.open {
		return
	}
	j.open = false
	j.body = append(j.body, closing...)
	for _, b := range j.late {
		j.whole(b)
	}
	j.late = j.late[:0]
}

func (j *joiner) whole(content []byte) {
	if j.any {
		j.body = append(j.body, ',')
	}
	j.any = true
	j.body = append(j.body, content...)
}

// appendSettings writes the settings, separated by commas. It omits what the model would reject.
func appendSettings(body []byte, s chat.Settings, name string, entry catalog.Entry, known bool) []byte {
	begin := len(body)
	limit := s.MaxTokens
	if known {
		limit = min(limit, entry.MaxOutput)
	}
	if limit > 0 {
		body = strconv.AppendInt(append(body, `,"maxOutputTokens":`...), int64(limit), 10)
	}
	if s.Temperature != nil && !entry.NoSampling {
		body = wire.AppendFloat(append(body, `,"temperature":`...), min(max(*s.Temperature, 0), 2))
	}
	if s.TopP != nil && !entry.NoSampling {
		body = wire.AppendFloat(append(body, `,"topP":`...), min(max(*s.TopP, 0), 1))
	}
	stops := slices.DeleteFunc(slices.Clone(s.Stop), func(s string) bool { return s == "" })
	if stops = stops[:min(len(stops), catalog.MaxStops(provider, name))]; len(stops) > 0 {
		body = wire.AppendStrings(append(body, `,"stopSequences":`...), stops)
	}
	body = appendThinking(body, s.ThinkingBudget, limit, name, entry, known)
	if len(body) > begin {
		body = append(body[:begin], body[begin+1:]...) // remove the first comma
	}
	return body
}

// appendThinking requests thoughts from models that have them: a model that
// thinks without showing it would be silent for minutes.
func appendThinking(body []byte, budget, limit int, name string, entry catalog.Entry, known bool) []byte {
	if known && !entry.Thinking {
		return body
	}
	if budget <= 0 && !entry.ThinksAlone {
		return body
	}
	traits := catalog.TraitsOf(provider, name)
	body = append(body, `,"thinkingConfig":{"includeThoughts":true`...)
	switch {
	case budget <= 0:
	case traits.Reasoning == catalog.ReasonByLevel:
		// There are more levels, but every model knows these two.
		level := "low"
		if budget > 4_096 {
			level = "high"
		}
		body = append(body, `,"thinkingLevel":"`+level+`"`...)
	default:
		if limit > 0 {
			budget = min(budget, limit/2) // thoughts count as output here
		}
		body = strconv.AppendInt(append(body, `,"thinkingBudget":`...), int64(min(max(budget, traits.LeastBudget), traits.MostBudget)), 10)
	}
	return append(body, '}')
}

// declaration is a tool in the vendor's form.
type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parametersJsonSchema"`
}

// encodeHead writes system prompt and tools as fields of the body, each preceded by a comma.
func encodeHead(h *model.Head) ([]byte, error) {
	var out []byte
	var err error
	if h.System != "" {
		system := struct {
			Parts []textPart `json:"parts"`
		}{[]textPart{{Text: h.System}}}
		if out, err = wire.Append([]byte(`,"systemInstruction":`), system); err != nil {
			return nil, err
		}
	}
	if len(h.Tools) == 0 {
		return out, nil
	}
	var list []declaration
	for _, t := range h.Tools {
		schema, err := wire.Schema(t)
		if err != nil {
			return nil, err
		}
		list = append(list, declaration{t.Name, cmp.Or(t.Description, t.Name), schema}) // it must not be empty
	}
	if out, err = wire.Append(append(out, `,"tools":[{"functionDeclarations":`...), list); err != nil {
		return nil, err
	}
	return append(out, "}]"...), nil
}
