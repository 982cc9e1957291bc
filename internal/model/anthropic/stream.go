package anthropic

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// event is one event of the stream, as far as we look at it.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *struct {
		ID    string `json:"id"`
		Usage *usage `json:"usage"`
	} `json:"message"`
	ContentBlock *struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
	} `json:"content_block"`
	Delta *struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Partial    string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage *usage `json:"usage"`
}

type usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

// Stream sends the body and yields the answer.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		side := p.side(prep.Model)
		if p.opts.APIKey == "" {
			yield(nil, side.NoKey("ANTHROPIC_API_KEY"))
			return
		}
		call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
		defer func() { _ = call.Close() }()
		var res *http.Response
		if err := p.client.Post(call.Context(), "v1/messages", prep.Body, &res, option.WithMiddleware(call.Intercept)); err != nil {
			yield(nil, side.Failure(call, res, err))
			return
		}
		a := answer{side: side, yield: yield, strip: prefillTail(prep.Prefill)}
		a.read(call, ssestream.NewDecoder(res))
	}
}

// prefillTail is the white space that had to be taken off a prefill's end: the
// answer may begin with it, and would repeat it.
func prefillTail(prefill string) string {
	bare := strings.TrimRight(prefill, " \t\r\n")
	if bare == "" {
		return ""
	}
	return prefill[len(bare):]
}

// open is a block in the making.
type open struct {
	kind string
	text strings.Builder
	use  chat.ToolUse
	sign string
	data string
}

// answer collects the blocks of one answer and passes their pieces on.
type answer struct {
	side  wire.Side
	yield func(model.Chunk, error) bool
	strip string

	blocks []*open
	at     map[int]*open
	usage  chat.Usage
	stop   string
	id     string
}

// read takes events until the answer is whole or fails.
func (a *answer) read(call *wire.Call, events ssestream.Decoder) {
	a.at = map[int]*open{}
	for events.Next() {
		raw := events.Event()
		switch raw.Type {
		case "error":
			a.yield(nil, a.side.Event(wire.ReadReport(raw.Data)))
			return
		case "ping", "content_block_stop":
			continue // say nothing that we do not know
		}
		var ev event
		if err := json.Unmarshal(raw.Data, &ev); err != nil {
			if len(strings.TrimSpace(string(raw.Data))) == 0 {
				continue
			}
			a.yield(nil, a.side.Garbled("the answer is garbled: %v", err))
			return
		}
		if ev.Type == "error" {
			a.yield(nil, a.side.Event(wire.ReadReport(raw.Data)))
			return
		}
		if ev.Type == "message_stop" {
			call.Drain()
			a.yield(a.done(), nil)
			return
		}
		if !a.take(ev) {
			return
		}
	}
	if err := call.Cause(events.Err()); err != nil {
		a.yield(nil, a.side.Network(err))
		return
	}
	a.yield(nil, a.side.Garbled("the answer broke off before its end"))
}

// take works one event in; false: nobody listens any more.
func (a *answer) take(ev event) bool {
	switch ev.Type {
	case "message_start":
		if ev.Message != nil {
			a.id = ev.Message.ID
			a.count(ev.Message.Usage)
		}
	case "content_block_start":
		return a.begin(ev)
	case "content_block_delta":
		return a.more(ev)
	case "message_delta":
		if ev.Delta != nil && ev.Delta.StopReason != "" {
			a.stop = ev.Delta.StopReason
		}
		a.count(ev.Usage)
	}
	return true // pings, ends of blocks, and whatever they invent
}

// count keeps the newest of each number; a later event repeats only some.
func (a *answer) count(u *usage) {
	if u == nil {
		return
	}
	for _, n := range []struct {
		to   *int
		from int
	}{{&a.usage.Input, u.Input}, {&a.usage.Output, u.Output}, {&a.usage.CacheRead, u.CacheRead}, {&a.usage.CacheWrite, u.CacheWrite}} {
		if n.from > 0 {
			*n.to = n.from
		}
	}
}

func (a *answer) begin(ev event) bool {
	cb := ev.ContentBlock
	if cb == nil {
		return true
	}
	b := &open{kind: cb.Type, sign: cb.Signature, data: cb.Data}
	a.at[ev.Index] = b
	a.blocks = append(a.blocks, b)
	switch cb.Type {
	case "text":
		return a.text(b, cb.Text)
	case "thinking":
		return a.thinking(b, cb.Thinking)
	case "tool_use":
		b.use = chat.ToolUse{ID: cb.ID, Name: cb.Name}
		if len(cb.Input) > 2 { // some servers send the arguments at once
			b.use.Args = cb.Input
		}
		return a.yield(model.ArgsDelta{Call: cb.ID, Name: cb.Name}, nil)
	}
	return true
}

func (a *answer) more(ev event) bool {
	b := a.at[ev.Index]
	if b == nil || ev.Delta == nil {
		return true
	}
	switch ev.Delta.Type {
	case "text_delta":
		return a.text(b, ev.Delta.Text)
	case "thinking_delta":
		return a.thinking(b, ev.Delta.Thinking)
	case "signature_delta":
		b.sign += ev.Delta.Signature
	case "input_json_delta":
		if b.kind == "tool_use" && ev.Delta.Partial != "" {
			b.text.WriteString(ev.Delta.Partial)
			return a.yield(model.ArgsDelta{Call: b.use.ID, Name: b.use.Name, Text: ev.Delta.Partial}, nil)
		}
	}
	return true
}

func (a *answer) text(b *open, text string) bool {
	for a.strip != "" && text != "" { // at the very beginning only
		if text[0] != a.strip[0] {
			a.strip = ""
			break
		}
		text, a.strip = text[1:], a.strip[1:]
	}
	if text == "" || b.kind != "text" {
		return true
	}
	a.strip = ""
	b.text.WriteString(text)
	return a.yield(model.TextDelta{Text: text}, nil)
}

func (a *answer) thinking(b *open, text string) bool {
	if text == "" || b.kind != "thinking" {
		return true
	}
	b.text.WriteString(text)
	return a.yield(model.ThinkingDelta{Text: text}, nil)
}

// done is the whole answer.
func (a *answer) done() model.Done {
	d := model.Done{Usage: a.usage, ID: a.id, Stop: stopOf(a.stop)}
	for _, b := range a.blocks {
		switch b.kind {
		case "text":
			if b.text.Len() > 0 {
				d.Blocks = append(d.Blocks, chat.Text{Text: b.text.String()})
			}
		case "thinking":
			d.Blocks = append(d.Blocks, chat.Thinking{Text: b.text.String(), Signature: b.sign})
		case "redacted_thinking":
			d.Blocks = append(d.Blocks, chat.Thinking{Redacted: b.data})
		case "tool_use":
			if b.text.Len() > 0 {
				b.use.Args = json.RawMessage(b.text.String())
			} else if b.use.Args == nil {
				b.use.Args = json.RawMessage("{}")
			}
			d.Blocks = append(d.Blocks, b.use)
			if d.Stop == chat.StopEnd {
				d.Stop = chat.StopTools
			}
		}
	}
	return d
}

func stopOf(reason string) chat.Stop {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return chat.StopLength
	case "stop_sequence":
		return chat.StopSeq
	case "refusal":
		return chat.StopRefused
	case "tool_use":
		return chat.StopTools
	default: // end_turn, pause_turn
		return chat.StopEnd
	}
}
