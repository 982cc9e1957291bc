package google

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/wire"
)

// chunk is one event of the stream, with the fields that are used.
type chunk struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
	} `json:"candidates"`
	PromptFeedback *struct {
		BlockReason        string `json:"blockReason"`
		BlockReasonMessage string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage      *usage          `json:"usageMetadata"`
	ResponseID string          `json:"responseId"`
	Error      json.RawMessage `json:"error"`
}

type part struct {
	Text             string `json:"text"`
	Thought          bool   `json:"thought"`
	ThoughtSignature string `json:"thoughtSignature"`
	FunctionCall     *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

type usage struct {
	Prompt     int `json:"promptTokenCount"`
	ToolPrompt int `json:"toolUsePromptTokenCount"`
	Candidates int `json:"candidatesTokenCount"`
	Thoughts   int `json:"thoughtsTokenCount"`
	Cached     int `json:"cachedContentTokenCount"`
}

// ours converts the counts to ours: Input excludes what was cached, Output includes thoughts.
func (u *usage) ours() chat.Usage {
	out := chat.Usage{Output: max(u.Candidates, 0) + max(u.Thoughts, 0), CacheRead: max(u.Cached, 0)}
	out.Input = max(u.Prompt-out.CacheRead, 0) + max(u.ToolPrompt, 0)
	return out
}

// thinkTime is how long a thinking model may be silent before its first byte.
const thinkTime = 5 * time.Minute

func (p *Provider) firstByte(name string) time.Duration {
	if p.opts.FirstByteTimeout > 0 {
		return p.opts.FirstByteTimeout
	}
	if e, _ := catalog.Lookup(provider, name); e.ThinksAlone {
		return thinkTime
	}
	return 0
}

// Stream sends the body and yields the answer.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		side := p.side(prep.Model)
		if p.keyless() {
			yield(nil, side.NoKey(row().KeyVariable()))
			return
		}
		call := wire.Watch(ctx, p.firstByte(prep.Model), p.opts.IdleTimeout)
		defer func() { _ = call.Close() }()
		res, failed := p.rest(side).Post(call, p.resource(prep.Model)+":streamGenerateContent?alt=sse", prep.Body)
		if failed != nil {
			yield(nil, failed)
			return
		}
		a := answer{side: side, yield: yield, body: prep.Body, ids: map[string]bool{}}
		a.read(call, res.Body)
	}
}

// answer collects the blocks of one answer and passes their pieces on.
type answer struct {
	side  wire.Side
	yield func(model.Chunk, error) bool
	body  []byte // of the request, to derive call names from

	blocks  chat.Blocks
	growing strings.Builder // the text of the last block, while that is text or thoughts
	ids     map[string]bool
	finish  string
	message string // the vendor's message about the finish
	usage   chat.Usage
	id      string
}

// maxStray limits how much is kept of lines that are no events.
const maxStray = 64 << 10

// read takes events until the stream ends; nothing else marks the end. The answer is complete if a
// finish reason came. An error may come as an event, or bare between events.
func (a *answer) read(call *wire.Call, body io.Reader) {
	lines := wire.Lines(body)
	var data, stray []byte
	for lines.Scan() {
		line := lines.Bytes()
		rest, isData := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case isData:
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		case len(line) == 0:
			if !a.event(call, data) {
				return
			}
			if data = data[:0]; a.finish != "" {
				call.Ending()
			}
		case !isField(line) && len(stray)+len(line) < maxStray:
			stray = append(append(stray, line...), '\n')
		}
	}
	broken := call.Cause(lines.Err())
	if broken == nil && !a.event(call, data) { // a last event without an empty line
		return
	}
	s, _, failed := readStatus(stray)
	switch {
	case a.finish != "":
		a.end()
	case failed:
		a.yield(nil, s.inStream(a.side))
	case broken != nil:
		a.yield(nil, a.side.Network(broken))
	default:
		a.yield(nil, a.side.Garbled("the answer broke off before its end"))
	}
}

// isField reports whether a line is a comment or an event field that we do not use.
func isField(line []byte) bool {
	return slices.ContainsFunc([]string{":", "event:", "id:", "retry:"}, func(name string) bool {
		return bytes.HasPrefix(line, []byte(name))
	})
}

// event handles one event. It returns false if it was the last or nobody listens any more.
func (a *answer) event(call *wire.Call, data []byte) bool {
	if len(bytes.TrimSpace(data)) == 0 {
		return true
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if s, _, failed := readStatus(data); failed {
			a.yield(nil, s.inStream(a.side))
			return false
		}
		return a.yield(wire.Unreadable(data), nil)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		s, _, _ := readStatus(data)
		a.yield(nil, s.inStream(a.side))
		return false
	}
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" {
		call.Drain()
		a.yield(nil, a.blocked(f.BlockReason, f.BlockReasonMessage))
		return false
	}
	return a.take(c)
}

// blocked returns the error for a prompt that the vendor refuses to answer.
func (a *answer) blocked(reason, message string) *model.Error {
	e := a.side.Bad("the prompt was blocked (%s) %s", reason, message)
	e.Kind = model.Refused
	return e
}

func (a *answer) take(c chunk) bool {
	a.id = cmp.Or(a.id, c.ResponseID)
	if c.Usage != nil {
		a.usage = c.Usage.ours()
	}
	for _, candidate := range c.Candidates {
		if candidate.Index != 0 {
			continue // we asked for one
		}
		for _, p := range candidate.Content.Parts {
			if !a.part(p) {
				return false
			}
		}
		if candidate.FinishReason != "" && candidate.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			a.finish, a.message = candidate.FinishReason, candidate.FinishMessage
		}
	}
	return true
}

func (a *answer) part(p part) bool {
	switch {
	case p.FunctionCall != nil:
		return a.call(p)
	case p.Thought:
		if p.ThoughtSignature != "" {
			defer a.sign(p.ThoughtSignature)
		}
		return a.think(p.Text)
	default:
		heard := a.say(p.Text)
		if p.ThoughtSignature != "" {
			a.sign(p.ThoughtSignature)
		}
		return heard
	}
}

func (a *answer) say(s string) bool {
	if s == "" {
		return true
	}
	n := len(a.blocks)
	if last, ok := a.last().(chat.Text); !ok || last.Signature != "" {
		a.settle()
		a.blocks = append(a.blocks, chat.Text{})
		n++
	}
	a.growing.WriteString(s)
	a.blocks[n-1] = chat.Text{Text: a.growing.String()}
	return a.yield(model.TextDelta{Text: s}, nil)
}

func (a *answer) think(s string) bool {
	if s == "" {
		return true
	}
	n := len(a.blocks)
	if _, ok := a.last().(chat.Thinking); !ok {
		a.settle()
		a.blocks = append(a.blocks, chat.Thinking{})
		n++
	}
	a.growing.WriteString(s)
	a.blocks[n-1] = chat.Thinking{Text: a.growing.String()}
	return a.yield(model.ThinkingDelta{Text: s}, nil)
}

func (a *answer) last() chat.Block {
	if len(a.blocks) == 0 {
		return nil
	}
	return a.blocks[len(a.blocks)-1]
}

// settle ends the growing text: the next text belongs to another block.
func (a *answer) settle() { a.growing = strings.Builder{} }

// sign stores a signature with the text before it. If there is none, it adds
// an empty text, which is how the vendor sends it too.
func (a *answer) sign(signature string) {
	text, ok := a.last().(chat.Text)
	if !ok || text.Signature != "" {
		a.blocks = append(a.blocks, chat.Text{Signature: signature})
	} else {
		text.Signature = signature
		a.blocks[len(a.blocks)-1] = text
	}
	a.settle()
}

// call handles a call, which always comes complete.
func (a *answer) call(p part) bool {
	f := p.FunctionCall
	use := chat.ToolUse{ID: f.ID, Name: f.Name, Signature: p.ThoughtSignature}
	if use.ID == "" || a.ids[use.ID] {
		use.ID = wire.CallID(a.body, len(a.ids)+1)
	}
	a.ids[use.ID] = true
	var args bytes.Buffer
	if len(f.Args) > 0 && string(f.Args) != "null" {
		_ = json.Compact(&args, f.Args) // it was already parsed as JSON
	}
	if !a.yield(model.ArgsDelta{Call: use.ID}, nil) {
		return false
	}
	use.Args = json.RawMessage("{}")
	if args.Len() > 0 {
		use.Args = args.Bytes()
	}
	a.settle()
	a.blocks = append(a.blocks, use)
	return a.yield(model.ArgsDelta{Call: use.ID, Text: string(use.Args)}, nil)
}

// end handles the end of the answer.
func (a *answer) end() {
	switch a.finish {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS":
		// A slip of the model without any effect. A second attempt usually works.
		a.yield(nil, a.side.Garbled("the model wrote a call that could not be read (%s) %s", a.finish, a.message))
		return
	}
	a.yield(model.Done{Blocks: a.blocks, Usage: a.usage, ID: a.id, Stop: a.stop()}, nil)
}

func (a *answer) stop() chat.Stop {
	switch a.finish {
	case "MAX_TOKENS":
		return chat.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return chat.StopRefused
	}
	if len(a.ids) > 0 {
		return chat.StopTools // it says STOP here too
	}
	return chat.StopEnd
}
