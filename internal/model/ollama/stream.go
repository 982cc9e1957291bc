package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// line is one line of the stream, with the fields that are used.
type line struct {
	CreatedAt string `json:"created_at"`
	Message   struct {
		Content   string     `json:"content"`
		Thinking  string     `json:"thinking"`
		ToolCalls []toolCall `json:"tool_calls"`
	} `json:"message"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Prompt     int             `json:"prompt_eval_count"`
	Output     int             `json:"eval_count"`
	Error      json.RawMessage `json:"error"`
}

// toolCall is a call as it comes and as it is sent back.
type toolCall struct {
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Stream sends the body and yields the answer.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		side := p.side(prep.Model)
		call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
		defer func() { _ = call.Close() }()
		res, failed := p.rest(side).Post(call, p.base+"/api/chat", prep.Body)
		if failed != nil {
			yield(nil, p.absent(failed))
			return
		}
		a := answer{side: side, yield: yield, body: prep.Body, ids: map[string]bool{}, strip: wire.PrefillTail(prep.Prefill), begun: strings.TrimSpace(prep.Prefill) != ""}
		a.read(call, res.Body)
	}
}

// piece is an unfinished block.
type piece struct {
	text     strings.Builder
	thinking bool
	use      *chat.ToolUse // a call, which always comes complete
}

// answer collects the blocks of one answer and passes their pieces on.
type answer struct {
	side  wire.Side
	yield func(model.Chunk, error) bool
	body  []byte // of the request, to derive call names from
	strip string
	begun bool // by a prefill: it does not think first
	tags  wire.ThinkTags

	pieces []*piece
	ids    map[string]bool
	id     string
}

// read takes lines until the one that says it is the last.
func (a *answer) read(call *wire.Call, body io.Reader) {
	lines := wire.Lines(body)
	for lines.Scan() {
		data := bytes.TrimSpace(lines.Bytes())
		if len(data) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(data, &l); err != nil {
			if !a.yield(wire.Unreadable(data), nil) {
				return
			}
			continue
		}
		if len(l.Error) > 0 && string(l.Error) != "null" {
			a.yield(nil, refine(a.side.Event(wire.ReadReport(data))))
			return
		}
		if !a.take(l) {
			return
		}
		if l.Done {
			call.Drain()
			thinking, said := a.tags.Rest()
			if a.grow(true, thinking) && a.grow(false, said) {
				a.yield(a.done(l), nil)
			}
			return
		}
	}
	if err := call.Cause(lines.Err()); err != nil {
		a.yield(nil, a.side.Network(err))
		return
	}
	a.yield(nil, a.side.Garbled("the answer broke off before its end"))
}

// take handles one line. It returns false if nobody listens any more.
func (a *answer) take(l line) bool {
	if a.id == "" {
		a.id = l.CreatedAt // the only field that distinguishes answers
	}
	thinking, said := "", a.stripped(l.Message.Content)
	if !a.begun {
		thinking, said = a.tags.Split(said)
	}
	if !a.grow(true, l.Message.Thinking+thinking) || !a.grow(false, said) {
		return false
	}
	for _, c := range l.Message.ToolCalls {
		if !a.call(c) {
			return false
		}
	}
	return true
}

// stripped removes from the beginning what the prefill had at its end.
func (a *answer) stripped(text string) string {
	for a.strip != "" && text != "" {
		if text[0] != a.strip[0] {
			a.strip = ""
			break
		}
		text, a.strip = text[1:], a.strip[1:]
	}
	return text
}

func (a *answer) grow(thinking bool, s string) bool {
	if s == "" {
		return true
	}
	n := len(a.pieces)
	if n == 0 || a.pieces[n-1].thinking != thinking || a.pieces[n-1].use != nil {
		a.pieces = append(a.pieces, &piece{thinking: thinking})
		n++
	}
	a.pieces[n-1].text.WriteString(s)
	if thinking {
		return a.yield(model.ThinkingDelta{Text: s}, nil)
	}
	return a.yield(model.TextDelta{Text: s}, nil)
}

func (a *answer) call(c toolCall) bool {
	use := &chat.ToolUse{ID: c.ID, Name: c.Function.Name, Args: json.RawMessage("{}")}
	if use.ID == "" || a.ids[use.ID] { // older versions send none
		use.ID = wire.CallID(a.body, len(a.ids)+1)
	}
	a.ids[use.ID] = true
	var args bytes.Buffer
	if raw := c.Function.Arguments; len(raw) > 0 && string(raw) != "null" && json.Compact(&args, raw) == nil {
		use.Args = args.Bytes()
	}
	a.pieces = append(a.pieces, &piece{use: use})
	return a.yield(model.ArgsDelta{Call: use.ID}, nil) &&
		a.yield(model.ArgsDelta{Call: use.ID, Text: string(use.Args)}, nil)
}

// done returns the complete answer. The server does not report what it read from its cache.
func (a *answer) done(l line) model.Done {
	d := model.Done{ID: a.id, Usage: chat.Usage{Input: max(l.Prompt, 0), Output: max(l.Output, 0)}, Stop: chat.StopEnd}
	for _, p := range a.pieces {
		switch {
		case p.use != nil:
			d.Blocks = append(d.Blocks, *p.use)
		case p.thinking:
			d.Blocks = append(d.Blocks, chat.Thinking{Text: p.text.String()})
		default:
			d.Blocks = append(d.Blocks, chat.Text{Text: p.text.String()})
		}
	}
	switch {
	case l.DoneReason == "length":
		d.Stop = chat.StopLength
	case len(a.ids) > 0:
		d.Stop = chat.StopTools // it says stop here too; load and unload are normal ends
	}
	return d
}
