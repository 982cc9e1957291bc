package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// text is a JSON string; anything else that servers put in its place is passed
// over, except that an object is kept as its JSON (arguments of some servers).
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

// chunk is one event of the stream, as far as we look at it.
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

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    *struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

// ours counts the way we do: Input without what was cached.
func (u *usage) ours() chat.Usage {
	out := chat.Usage{Output: max(u.Completion, 0), CacheRead: max(u.CacheHit, 0)}
	if u.Details != nil {
		out.CacheRead, out.CacheWrite = max(u.Details.Cached, out.CacheRead), max(u.Details.Written, 0)
	}
	out.Input = max(u.Prompt-out.CacheRead-out.CacheWrite, 0)
	return out
}

// Stream sends the body and yields the answer.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		side := p.side(prep.Model)
		if p.keyless() {
			yield(nil, side.NoKey("OPENAI_API_KEY"))
			return
		}
		call := wire.Watch(ctx, p.firstByte(prep.Model), p.opts.IdleTimeout)
		defer func() { _ = call.Close() }()
		var res *http.Response
		if err := p.client.Post(call.Context(), "chat/completions", prep.Body, &res, option.WithMiddleware(call.Intercept)); err != nil {
			yield(nil, side.Failure(call, res, err))
			return
		}
		a := answer{side: side, yield: yield, byIndex: map[int]*part{}}
		a.read(call, ssestream.NewDecoder(res))
	}
}

// thinkTime is how long a model that reasons may be silent: its reasoning is not
// streamed, and the first byte comes after it.
const thinkTime = 10 * time.Minute

func (p *Provider) firstByte(name string) time.Duration {
	if p.opts.FirstByteTimeout > 0 {
		return p.opts.FirstByteTimeout
	}
	if e, _ := model.Lookup(p.opts.Name, name); e.ThinksAlone {
		return thinkTime
	}
	return 0
}

// part is a block in the making.
type part struct {
	kind partKind
	text strings.Builder
	id   string // of a call
	name string
}

type partKind int

const (
	saying partKind = iota
	thinking
	calling
)

// answer collects the blocks of one answer and passes their pieces on.
type answer struct {
	side  wire.Side
	yield func(model.Chunk, error) bool

	parts   []*part
	byIndex map[int]*part
	calls   int
	refused bool
	finish  string
	stopSeq bool
	usage   chat.Usage
	id      string
}

// read takes events until the answer is whole or fails. It is whole at [DONE], or
// when the stream ends after a finish reason: some servers leave [DONE] out.
func (a *answer) read(call *wire.Call, events ssestream.Decoder) {
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			call.Drain()
			a.yield(a.done(), nil)
			return
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			a.yield(nil, a.side.Garbled("the answer is garbled: %v", err))
			return
		}
		if len(c.Error) > 0 && string(c.Error) != "null" || events.Event().Type == "error" {
			a.yield(nil, a.side.Event(wire.ReadReport(data)))
			return
		}
		if !a.take(c) {
			return
		}
	}
	if err := call.Cause(events.Err()); err != nil {
		a.yield(nil, a.side.Network(err))
		return
	}
	if a.finish == "" {
		a.yield(nil, a.side.Garbled("the answer broke off before its end"))
		return
	}
	a.yield(a.done(), nil)
}

// take works one chunk in; false: nobody listens any more.
func (a *answer) take(c chunk) bool {
	if a.id == "" {
		a.id = c.ID
	}
	if c.Usage != nil {
		a.usage = c.Usage.ours()
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // we asked for one
		}
		d := ch.Delta
		reasoning := d.ReasoningContent
		if reasoning == "" {
			reasoning = d.Reasoning
		}
		if !a.think(string(reasoning)) || !a.say(string(d.Content)) {
			return false
		}
		if d.Refusal != "" {
			a.refused = true
			if !a.say(string(d.Refusal)) {
				return false
			}
		}
		for _, call := range d.ToolCalls {
			if !a.call(call) {
				return false
			}
		}
		if ch.FinishReason != "" {
			a.finish = string(ch.FinishReason)
			a.stopSeq = ch.StopReason != ""
		}
	}
	return true
}

// growing is the last part if it is of that kind, or a new one.
func (a *answer) growing(kind partKind) *part {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == kind {
		return a.parts[n-1]
	}
	p := &part{kind: kind}
	a.parts = append(a.parts, p)
	return p
}

func (a *answer) say(s string) bool {
	if s == "" {
		return true
	}
	a.growing(saying).text.WriteString(s)
	return a.yield(model.TextDelta{Text: s}, nil)
}

func (a *answer) think(s string) bool {
	if s == "" {
		return true
	}
	a.growing(thinking).text.WriteString(s)
	return a.yield(model.ThinkingDelta{Text: s}, nil)
}

// call works a piece of a call in. The index says which; a piece without one
// belongs to the call with its id, or to the newest. An id that repeats is the same
// call, another id at the same index another call.
func (a *answer) call(d callDelta) bool {
	p := a.find(d)
	if p == nil {
		a.calls++
		p = &part{kind: calling, id: string(d.ID), name: string(d.Function.Name)}
		if p.id == "" {
			p.id = fmt.Sprintf("call_%s_%d", a.id, a.calls)
		}
		a.parts = append(a.parts, p)
		index := a.calls - 1
		if d.Index != nil {
			index = *d.Index
		}
		a.byIndex[index] = p
		if !a.yield(model.ArgsDelta{Call: p.id, Name: p.name}, nil) {
			return false
		}
	}
	if p.name == "" {
		p.name = string(d.Function.Name)
	}
	if d.Function.Arguments == "" {
		return true
	}
	p.text.WriteString(string(d.Function.Arguments))
	return a.yield(model.ArgsDelta{Call: p.id, Name: p.name, Text: string(d.Function.Arguments)}, nil)
}

func (a *answer) find(d callDelta) *part {
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

// done is the whole answer.
func (a *answer) done() model.Done {
	d := model.Done{Usage: a.usage, ID: a.id, Stop: a.stop()}
	for _, p := range a.parts {
		switch p.kind {
		case saying:
			d.Blocks = append(d.Blocks, chat.Text{Text: p.text.String()})
		case thinking:
			d.Blocks = append(d.Blocks, chat.Thinking{Text: p.text.String()})
		case calling:
			args := p.text.String()
			if strings.TrimSpace(args) == "" {
				args = "{}"
			}
			d.Blocks = append(d.Blocks, chat.ToolUse{ID: p.id, Name: p.name, Args: json.RawMessage(args)})
		}
	}
	return d
}

func (a *answer) stop() chat.Stop {
	switch {
	case a.refused || a.finish == "content_filter":
		return chat.StopRefused
	case a.finish == "length":
		return chat.StopLength
	case a.calls > 0:
		return chat.StopTools // some servers say "stop" all the same
	case a.stopSeq:
		return chat.StopSeq
	default:
		return chat.StopEnd
	}
}
