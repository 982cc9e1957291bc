// Package format handles OpenAI's wire formats without the network: it builds addresses and bodies,
// and parses the streams of Chat Completions, Responses and the old Completions. It promises that
// whatever a server sends ends in exactly one Done or one *model.Error.
package format

import (
	"encoding/json"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// Stream is one answer in transit: whose it is, the call it comes through, and who listens.
type Stream struct {
	Side  wire.Side
	Call  *wire.Call
	Yield func(model.Chunk, error) bool
	// Prefill is how the request began the answer.
	Prefill string
	// ThinkTags means that text between <think> and </think> at the beginning of the
	// answer is thinking, as servers of local models send it.
	ThinkTags bool
}

// Tags that precede reasoning that can be sent back, so that no vendor is sent another's.
const (
	ResponsesTag = "openai:"
	RouterTag    = "openrouter:"
)

// part is an unfinished block.
type part struct {
	kind    partKind
	text    strings.Builder
	id      string // of a call
	name    string
	sealed  string   // reasoning as it must be sent back, with its tag
	details []detail // the same, in OpenRouter's pieces
	order   int      // the model's position for it; equal: in order of arrival
}

type partKind int

const (
	saying partKind = iota
	thinking
	calling
)

// answer collects the blocks of one answer and passes their pieces on.
type answer struct {
	Stream
	strip string // white space removed from the prefill's end: the answer may begin with it
	tags  wire.ThinkTags

	parts   []*part
	calls   int
	refused bool
	finish  string
	stopSeq bool
	usage   chat.Usage
	id      string
}

func (s Stream) answer() answer {
	a := answer{Stream: s}
	if bare := strings.TrimRight(s.Prefill, " \t\r\n"); bare != "" {
		a.strip = s.Prefill[len(bare):]
	}
	return a
}

// fail ends the stream with an error.
func (a *answer) fail(err *model.Error) { a.Yield(nil, err) }

// end handles the end of a stream that did not announce it.
func (a *answer) end(err error) {
	switch err := a.Call.Cause(err); {
	case err != nil:
		a.fail(a.Side.Network(err))
	case a.finish == "":
		a.fail(a.Side.Garbled("the answer broke off before its end"))
	default:
		a.finishWith()
	}
}

// finishWith yields the complete answer, including what was held back.
func (a *answer) finishWith() {
	thinking, said := a.tags.Rest()
	if a.think(nil, thinking) && a.say(nil, said) {
		a.Yield(a.done(), nil)
	}
}

// whole handles the announced end of a stream.
func (a *answer) whole() {
	a.Call.Drain()
	a.finishWith()
}

// growing returns the last part if it is of that kind, or a new one.
func (a *answer) growing(kind partKind) *part {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == kind {
		return a.parts[n-1]
	}
	return a.add(&part{kind: kind})
}

func (a *answer) add(p *part) *part {
	a.parts = append(a.parts, p)
	if p.kind == calling {
		a.calls++
	}
	return p
}

// say adds text to a part; p nil: to the last one, or a new one.
func (a *answer) say(p *part, s string) bool {
	if a.strip != "" && s != "" {
		n := common(a.strip, s)
		if a.strip = a.strip[n:]; n < len(s) {
			a.strip = ""
		}
		s = s[n:]
	}
	if s == "" {
		return true
	}
	if p == nil {
		p = a.growing(saying)
	}
	p.text.WriteString(s)
	return a.Yield(model.TextDelta{Text: s}, nil)
}

// common returns the length of the common prefix of a and b.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// think adds reasoning to a part; p nil: to the last one, or a new one.
func (a *answer) think(p *part, s string) bool {
	if s == "" {
		return true
	}
	if p == nil {
		p = a.growing(thinking)
	}
	p.text.WriteString(s)
	return a.Yield(model.ThinkingDelta{Text: s}, nil)
}

// args adds arguments to a call. The first piece may be empty.
func (a *answer) args(p *part, s string) bool {
	p.text.WriteString(s)
	return a.Yield(model.ArgsDelta{Call: p.id, Text: s}, nil)
}

// done returns the complete answer.
func (a *answer) done() model.Done {
	d := model.Done{Usage: a.usage, ID: a.id, Stop: a.stop()}
	for _, p := range a.parts {
		text := p.text.String()
		switch p.kind {
		case saying:
			if text != "" {
				d.Blocks = append(d.Blocks, chat.Text{Text: text})
			}
		case thinking:
			if t := p.reasoning(text); t != (chat.Thinking{}) {
				d.Blocks = append(d.Blocks, t)
			}
		case calling:
			if strings.TrimSpace(text) == "" {
				text = "{}"
			}
			d.Blocks = append(d.Blocks, chat.ToolUse{ID: p.id, Name: p.name, Args: json.RawMessage(text)})
		}
	}
	return d
}

// reasoning returns a part as it is stored. What cannot be read but must be sent back is redacted.
func (p *part) reasoning(text string) chat.Thinking {
	sealed := p.sealed
	if len(p.details) > 0 {
		sealed = RouterTag + joinDetails(p.details)
	}
	if text == "" {
		return chat.Thinking{Redacted: sealed}
	}
	return chat.Thinking{Text: text, Signature: sealed}
}

func (a *answer) stop() chat.Stop {
	switch {
	case a.refused || a.finish == "content_filter":
		return chat.StopRefused
	case a.finish == "length":
		return chat.StopLength
	case a.calls > 0:
		return chat.StopTools // some servers say "stop" even so
	case a.stopSeq:
		return chat.StopSeq
	default:
		return chat.StopEnd
	}
}
