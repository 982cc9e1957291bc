package anthropic

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// Event is one event of the stream, with the fields that are used.
type Event struct {
	Type         string   `json:"type"`
	Index        int      `json:"index"`
	Message      *Message `json:"message"`
	ContentBlock *Block   `json:"content_block"`
	Delta        *Delta   `json:"delta"`
	Usage        *Usage   `json:"usage"`
}

// Message opens an answer.
type Message struct {
	ID    string `json:"id"`
	Usage *Usage `json:"usage"`
}

// Block opens a block of an answer.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
}

// Delta continues a block, or says why the answer ended.
type Delta struct {
	Type       string `json:"type"`
	Text       string `json:"text"`
	Partial    string `json:"partial_json"`
	Thinking   string `json:"thinking"`
	Signature  string `json:"signature"`
	StopReason string `json:"stop_reason"`
}

// Usage is what was used so far.
type Usage struct {
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
		res, failed := p.rest(side).Post(call, p.base+"/v1/messages", prep.Body)
		if failed != nil {
			yield(nil, failed)
			return
		}
		a := NewAnswer(side, call, prep.Prefill, yield)
		events := wire.NewEvents(res.Body)
		for events.Next() {
			if !a.Read(events.Type, events.Data) {
				return
			}
		}
		a.Broken(events.Err())
	}
}

// open is an unfinished block.
type open struct {
	kind string
	text strings.Builder
	use  chat.ToolUse
	sign string
	data string
}

// Answer collects the blocks of one answer and passes their pieces on. It
// serves every host that uses the vendor's events.
type Answer struct {
	side  wire.Side
	call  *wire.Call
	yield func(model.Chunk, error) bool
	strip string

	blocks []*open
	at     map[int]*open
	usage  chat.Usage
	stop   string
	id     string
}

// NewAnswer begins an answer that comes through call.
func NewAnswer(side wire.Side, call *wire.Call, prefill string, yield func(model.Chunk, error) bool) *Answer {
	return &Answer{side: side, call: call, yield: yield, strip: wire.PrefillTail(prefill), at: map[int]*open{}}
}

// Read handles one event, with its name if one was given. It returns false if the
// answer is complete or has failed, or if nobody listens any more.
func (a *Answer) Read(name string, data []byte) bool {
	switch name {
	case "error":
		a.yield(nil, a.side.Event(wire.ReadReport(data)))
		return false
	case "ping", "content_block_stop":
		return true // nothing that we know
	case "message_stop":
		a.Finish()
		return false
	}
	var ev Event
	if err := json.Unmarshal(data, &ev); err != nil {
		if len(strings.TrimSpace(string(data))) == 0 {
			return true
		}
		return a.yield(wire.Unreadable(data), nil)
	}
	switch ev.Type {
	case "error":
		a.yield(nil, a.side.Event(wire.ReadReport(data)))
		return false
	case "message_stop":
		a.Finish()
		return false
	}
	return a.Take(ev)
}

// Finish yields the complete answer.
func (a *Answer) Finish() {
	a.call.Drain()
	a.yield(a.done(), nil)
}

// Broken handles the end of the events before the answer was complete. err may be nil.
func (a *Answer) Broken(err error) {
	if err := a.call.Cause(err); err != nil {
		a.yield(nil, a.side.Network(err))
		return
	}
	a.yield(nil, a.side.Garbled("the answer broke off before its end"))
}

// Take handles one parsed event. It returns false if nobody listens any more.
func (a *Answer) Take(ev Event) bool {
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
	return true // pings, ends of blocks, and future event types
}

// count keeps the newest value of each number; later events repeat only some.
func (a *Answer) count(u *Usage) {
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

func (a *Answer) begin(ev Event) bool {
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
		return a.yield(model.ArgsDelta{Call: cb.ID}, nil)
	}
	return true
}

func (a *Answer) more(ev Event) bool {
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
			return a.yield(model.ArgsDelta{Call: b.use.ID, Text: ev.Delta.Partial}, nil)
		}
	}
	return true
}

func (a *Answer) text(b *open, text string) bool {
	for a.strip != "" && text != "" { // only at the very beginning
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

func (a *Answer) thinking(b *open, text string) bool {
	if text == "" || b.kind != "thinking" {
		return true
	}
	b.text.WriteString(text)
	return a.yield(model.ThinkingDelta{Text: text}, nil)
}

// done returns the complete answer.
func (a *Answer) done() model.Done {
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
