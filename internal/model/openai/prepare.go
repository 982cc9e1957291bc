package openai

import (
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

// Prepare assembles the body from the cached bytes of head and messages. Only Anthropic's models
// behind a router get cache marks; the others cache prefixes by themselves.
func (p *Provider) Prepare(r model.Request) (model.Prepared, error) {
	side := p.side(r.Model)
	if p.wrong != nil {
		return model.Prepared{}, side.Bad("%v", p.wrong)
	}
	entry, known := p.lookup(r.Model)
	if strings.TrimSpace(r.Prefill) != "" {
		if why := p.prefilled(r.Model, entry, known); why != "" {
			return model.Prepared{}, side.Bad("%s does not take a prefill: %s; use chat mode for it, or a model that does, such as anthropic/claude-sonnet-4-5", r.Model, why)
		}
	}
	make, api := p.prepareChat, Chat
	if p.responses(r.Model) {
		make, api = p.prepareResponses, Responses
	}
	body, dropped, err := make(r, entry, known)
	if err != nil {
		return model.Prepared{}, side.Bad("%v", err)
	}
	return model.Prepared{Model: r.Model, Body: body, Estimate: wire.Estimate(len(body), r.Messages), Prefill: r.Prefill, Dropped: dropped, Reading: api}, nil
}

// begin starts a body.
func (p *Provider) begin(r model.Request, room int) format.Body {
	for _, value := range p.extra {
		room += len(value) + 64
	}
	b := format.Body{Bytes: r.Room(room + 1024), Extra: p.extra}
	b.Bytes = wire.AppendString(append(b.Bytes, `{"model":`...), r.Model)
	b.Bytes = append(b.Bytes, `,"stream":true`...)
	return b
}

// prepareChat makes the body for Chat Completions.
func (p *Provider) prepareChat(r model.Request, entry catalog.Entry, known bool) (_ []byte, dropped []string, _ error) {
	f := form{router: p.opts.Router != nil, blind: known && !entry.Images}
	anthropic := f.router && strings.HasPrefix(r.Model, anthropics)
	f.parts = anthropic && !r.Settings.NoCache
	wires, size, err := wire.EncodeAll(r.Messages, wire.As(f.name(), encoder{form: f, blob: r.Blob}.message))
	if err != nil {
		return nil, nil, err
	}
	tools, system, err := f.head(r.Head)
	if err != nil {
		return nil, nil, err
	}
	marks := maxMarks
	if len(system) > 0 {
		marks--
	}
	places, err := f.marks(r, wires, marks)
	if err != nil {
		return nil, nil, err
	}
	prefill := strings.TrimRight(r.Prefill, " \t\r\n")
	settings, why := r.Settings, chatUnthinking
	switch {
	case prefill != "":
		settings.ThinkingBudget, why = 0, wire.Begun
	case anthropic && unthought(r.Messages):
		settings.ThinkingBudget, why = 0, wire.Unthought
	}
	body := p.begin(r, len(tools)+len(system)+size+maxMarks*len(mark)+len(prefill)*2)
	if f.router {
		appendRouted(&body, settings, entry, known, anthropic, p.stops)
	} else {
		body.Raw("stream_options", `{"include_usage":true}`)
		appendSettings(&body, settings, entry, known, len(tools) > 0, p.stops)
	}
	out := body.Extra.Append(body.Bytes)
	dropped = wire.Dropped(r.Settings, out, why)
	out = append(out, tools...)
	out = append(append(out, `,"messages":[`...), system...)
	out = appendMessages(out, wires, places, len(system) > 0)
	if prefill != "" {
		out = append(wire.AppendString(append(out, `,{"role":"assistant","content":`...), prefill), '}')
	}
	return append(out, "]}"...), dropped, nil
}

// chatUnthinking says why Chat Completions requests no reasoning.
const chatUnthinking = "the model cannot be asked to think, or not through Chat Completions with tools; openai_api: responses asks it so"

// marks returns the positions of the newest marks that fit, by wire.
func (f form) marks(r model.Request, wires []wire.Placed, most int) (map[int]int, error) {
	if !f.parts {
		return nil, nil
	}
	at := map[int]int{}
	for i := len(wires) - 1; i >= 0 && len(at) < most; i-- {
		if !slices.Contains(r.Marks, wires[i].Index) {
			continue
		}
		m := r.Messages[wires[i].Index]
		w, err := m.Encoded(f.name()+"/mark", encoder{form: f, blob: r.Blob}.mark)
		if err != nil {
			return nil, err
		}
		if w.MarkAt > 0 {
			at[i] = w.MarkAt
		}
	}
	return at, nil
}

// appendMessages joins the messages. Pictures from tool results follow MarkAt in their
// bytes. They wait until the last result of the batch, because the vendor accepts
// nothing between results. A cache mark is never among them.
func appendMessages(body []byte, wires []wire.Placed, marks map[int]int, comma bool) []byte {
	var late [][]byte
	add := func(b []byte, markAt int) {
		if comma {
			body = append(body, ',')
		}
		comma = true
		body = append(body, b[:markAt]...)
		if markAt > 0 {
			body = append(body, mark...)
		}
		body = append(body, b[markAt:]...)
	}
	flush := func() {
		for _, b := range late {
			add(b, 0)
		}
		late = late[:0]
	}
	for i, w := range wires {
		if len(late) > 0 && !isResult(w.Bytes) {
			flush()
		}
		if w.MarkAt == 0 {
			add(w.Bytes, marks[i])
			continue
		}
		add(w.Bytes[:w.MarkAt], marks[i])
		late = append(late, w.Bytes[w.MarkAt:])
	}
	flush()
	return body
}

// appendSettings writes the settings. It omits what the model would reject.
func appendSettings(body *format.Body, s chat.Settings, entry catalog.Entry, known, tools bool, maxStop int) {
	if limit := s.MaxTokens; limit > 0 {
		if known {
			limit = min(limit, entry.MaxOutput)
		}
		body.Int("max_completion_tokens", limit)
	}
	if e := toolEffort(s.ThinkingBudget, entry, tools); e != "" {
		body.Raw("reasoning_effort", `"`+e+`"`)
	}
	if entry.NoSampling {
		return
	}
	body.Float("temperature", s.Temperature, 0, 2)
	body.Float("top_p", s.TopP, 0, 1)
	body.Float("presence_penalty", s.PresencePenalty, -2, 2)
	body.Float("frequency_penalty", s.FrequencyPenalty, -2, 2)
	body.Stops("stop", s.Stop, maxStop)
}

// toolEffort expresses a budget in the vendor's words, unless Chat
// Completions must not be told it for this model.
func toolEffort(budget int, entry catalog.Entry, tools bool) string {
	switch {
	case tools && entry.ToolEffort == "none":
		return "none"
	case budget <= 0, !entry.Thinking, tools && entry.ToolEffort == "omit":
		return ""
	}
	return effort(budget, entry)
}

// efforts are the vendor's words, and the largest budget that each stands for.
var efforts = []struct {
	word string
	most int
}{{"low", 4_096}, {"medium", 16_384}, {"high", 1 << 30}}

// effort expresses a budget in the vendor's words, and never less than the model accepts.
func effort(budget int, entry catalog.Entry) string {
	enough := entry.LeastEffort == ""
	for _, e := range efforts {
		enough = enough || e.word == entry.LeastEffort
		if enough && budget <= e.most {
			return e.word
		}
	}
	return efforts[len(efforts)-1].word
}
