package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"chorus/internal/chat"
	"chorus/internal/model/wire"
)

// text is a JSON string. Anything else that servers send instead is skipped, except
// that an object is kept as its JSON (arguments of some servers).
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	switch {
	case len(data) > 0 && data[0] == '"':
		return json.Unmarshal(data, (*string)(t))
	case len(data) > 0 && data[0] == '{':
		*t = text(data)
	}
	return nil
}

// chunk is one event of Chat Completions, with the fields that are used.
type chunk struct {
	ID      string          `json:"id"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index int `json:"index"`
	Delta struct {
		Content          text        `json:"content"`
		Refusal          text        `json:"refusal"`
		ReasoningContent text        `json:"reasoning_content"` // DeepSeek, vLLM and others
		Reasoning        text        `json:"reasoning"`         // OpenRouter, Ollama
		ReasoningDetails details     `json:"reasoning_details"` // OpenRouter
		ToolCalls        []callDelta `json:"tool_calls"`
	} `json:"delta"`
	FinishReason text `json:"finish_reason"`
	StopReason   text `json:"stop_reason"` // vLLM: the sequence that stopped it
}

type callDelta struct {
	Index    *int `json:"index"`
	ID       text `json:"id"`
	Function struct {
		Name      text `json:"name"`
		Arguments text `json:"arguments"`
	} `json:"function"`
}

// usage is used by Chat Completions and Completions. Reasoning counts as completion.
// OpenRouter's report of a call's cost is ignored: prices are the catalog's.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    *struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

// ours converts the counts to ours: Input excludes what was cached.
func (u *usage) ours() chat.Usage {
	out := chat.Usage{Output: max(u.Completion, 0), CacheRead: max(u.CacheHit, 0)}
	if u.Details != nil {
		out.CacheRead, out.CacheWrite = max(u.Details.Cached, out.CacheRead), max(u.Details.Written, 0)
	}
	out.Input = max(u.Prompt-out.CacheRead-out.CacheWrite, 0)
	return out
}

// chatAnswer is an answer of Chat Completions.
type chatAnswer struct {
	answer
	byIndex map[int]*part
}

// Chat reads an answer of Chat Completions. It is complete at [DONE], or when the
// stream ends after a finish reason: some servers omit [DONE].
func (s Stream) Chat(body io.Reader) {
	a := chatAnswer{answer: s.answer(), byIndex: map[int]*part{}}
	readChunks(&a.answer, body, func(c chunk) json.RawMessage { return c.Error }, func(c chunk) bool {
		if !a.take(c) {
			return false
		}
		if a.finish == "error" {
			a.fail(a.Side.Event(wire.Report{Message: "the answer ended with an error that was not named"}))
			return false
		}
		return true
	})
}

// readChunks passes each chunk of an answer to take until that returns
// false. failed returns the error that a chunk contains.
func readChunks[T any](a *answer, body io.Reader, failed func(T) json.RawMessage, take func(T) bool) {
	events := wire.NewEvents(body)
	for events.Next() {
		data := bytes.TrimSpace(events.Data)
		if len(data) == 0 {
			continue
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			a.whole()
			return
		}
		var c T
		if err := json.Unmarshal(data, &c); err != nil {
			if !a.Yield(wire.Unreadable(data), nil) {
				return
			}
			continue
		}
		if wrong := failed(c); len(wrong) > 0 && string(wrong) != "null" || events.Type == "error" {
			a.fail(a.Side.Event(Report(data)))
			return
		}
		if !take(c) {
			return
		}
	}
	a.end(events.Err())
}

// Report reads an error in a stream. OpenRouter uses HTTP statuses as codes, with the same meaning.
func Report(data []byte) wire.Report {
	r := wire.ReadReport(data)
	code, ok := r.Code.(float64)
	if !ok || r.Type != "" {
		return r
	}
	switch {
	case code == 401 || code == 402 || code == 403:
		r.Type = "authentication_error"
	case code == 413:
		r.Type = "request_too_large"
	case code == 429:
		r.Type = "rate_limit_error"
	case code >= 400 && code < 500 && code != 408:
		r.Type = "invalid_request_error"
	}
	return r
}

// take handles one chunk. It returns false if nobody listens any more.
func (a *chatAnswer) take(c chunk) bool {
	a.id = cmp.Or(a.id, c.ID)
	if c.Usage != nil {
		a.usage = c.Usage.ours()
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // we asked for one
		}
		if !a.delta(ch) {
			return false
		}
		if ch.FinishReason != "" {
			a.finish = string(ch.FinishReason)
			a.stopSeq = ch.StopReason != ""
		}
	}
	return true
}

func (a *chatAnswer) delta(ch choice) bool {
	d := ch.Delta
	reasoning := cmp.Or(string(d.ReasoningContent), string(d.Reasoning))
	if reasoning == "" {
		reasoning = d.ReasoningDetails.text()
	}
	if !a.think(nil, reasoning) {
		return false
	}
	a.keep(d.ReasoningDetails)
	thinking, said := "", string(d.Content)
	if a.ThinkTags {
		thinking, said = a.tags.Split(said)
	}
	if !a.think(nil, thinking) || !a.say(nil, said) {
		return false
	}
	if d.Refusal != "" {
		a.refused = true
		if !a.say(nil, string(d.Refusal)) {
			return false
		}
	}
	for _, call := range d.ToolCalls {
		if !a.call(call) {
			return false
		}
	}
	return true
}

// keep adds details to the reasoning they belong to: a signature comes after it.
func (a *chatAnswer) keep(list details) {
	if len(list) == 0 {
		return
	}
	var p *part
	for _, q := range a.parts {
		if q.kind == thinking {
			p = q
		}
	}
	if p == nil {
		p = a.add(&part{kind: thinking})
	}
	for _, d := range list {
		p.details = mergeDetail(p.details, d)
	}
}

// call handles a piece of a call. The index says which call. A piece without one belongs to the call with its
// id, or to the newest. A repeated id means the same call; another id at the same index means another call.
func (a *chatAnswer) call(d callDelta) bool {
	p := a.find(d)
	if p == nil {
		p = a.add(&part{kind: calling, id: string(d.ID), name: string(d.Function.Name)})
		if p.id == "" {
			p.id = fmt.Sprintf("call_%s_%d", a.id, a.calls)
		}
		index := a.calls - 1
		if d.Index != nil {
			index = *d.Index
		}
		a.byIndex[index] = p
		if !a.args(p, "") {
			return false
		}
	}
	p.name = cmp.Or(p.name, string(d.Function.Name))
	if d.Function.Arguments == "" {
		return true
	}
	return a.args(p, string(d.Function.Arguments))
}

func (a *chatAnswer) find(d callDelta) *part {
	if d.Index != nil {
		p := a.byIndex[*d.Index]
		if p != nil && d.ID != "" && string(d.ID) != p.id && d.Function.Name != "" {
			return nil
		}
		return p
	}
	var newest *part
	for _, p := range a.parts {
		if p.kind != calling {
			continue
		}
		if newest = p; d.ID != "" && p.id == string(d.ID) {
			return p
		}
	}
	if d.ID != "" {
		return nil
	}
	return newest
}
