package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/model"
)

// defaultChunk is about four words: small enough to look like typing, large enough to be cheap.
const defaultChunk = 24

// player plays one step as one answer.
type player struct {
	ctx     context.Context
	yield   func(model.Chunk, error) bool
	failing func(key string, times int) bool
	model   string
	id      string // of the answer, derived from the request's bytes

	chunk  int
	delay  time.Duration
	blocks chat.Blocks
	text   strings.Builder
	usage  chat.Usage
	fixed  bool // the script gave the usage
	output int  // bytes of it so far
	stop   chat.Stop
	calls  int
}

func (p *player) run(step []directive) {
	for _, d := range step {
		if p.ctx.Err() != nil {
			p.cancelled()
			return
		}
		if !p.play(d) {
			return
		}
	}
	p.endText()
	if !p.fixed {
		p.usage.Output = model.Tokens(p.output)
	}
	if p.stop == "" {
		p.stop = chat.StopEnd
		if p.calls > 0 {
			p.stop = chat.StopTools
		}
	}
	p.yield(model.Done{Blocks: p.blocks, Usage: p.usage, Stop: p.stop, ID: "demo_" + p.id}, nil)
}

// play plays one directive. It returns false if the answer is over.
func (p *player) play(d directive) bool {
	switch d.verb {
	case vSay:
		return p.say(d.text)
	case vThink:
		p.endText()
		p.blocks = append(p.blocks, chat.Thinking{Text: d.text, Signature: "demo"})
		return p.pieces(d.text, func(s string) model.Chunk { return model.ThinkingDelta{Text: s} })
	case vCall:
		return p.call(d)
	case vSlow:
		p.delay = d.wait
	case vChunk:
		p.chunk = d.n
	case vUsage:
		p.usage, p.fixed = d.usage, true
	case vStop:
		p.stop = d.stop
	case vFail:
		if p.failing(fmt.Sprintf("%s:%d", p.id, d.line), d.n) {
			return p.fail(d.kind, "the script says so", d.wait)
		}
	case vCut:
		return p.fail(model.Network, "the connection was cut by the script", 0)
	case vWait:
		<-p.ctx.Done()
		return p.cancelled()
	}
	return true
}

func (p *player) say(text string) bool {
	if p.text.Len() > 0 {
		text = "\n" + text
	}
	p.text.WriteString(text)
	return p.pieces(text, func(s string) model.Chunk { return model.TextDelta{Text: s} })
}

// endText closes the text block, if one is open.
func (p *player) endText() {
	if p.text.Len() > 0 {
		p.blocks = append(p.blocks, chat.Text{Text: p.text.String()})
		p.text.Reset()
	}
}

func (p *player) call(d directive) bool {
	p.endText()
	p.calls++
	args := cmp.Or(d.text, "{}")
	use := chat.ToolUse{ID: fmt.Sprintf("demo_%s_%d", p.id, p.calls), Name: d.tool, Args: json.RawMessage(args)}
	p.blocks = append(p.blocks, use)
	if !p.yield(model.ArgsDelta{Call: use.ID}, nil) {
		return false
	}
	return p.pieces(args, func(s string) model.Chunk { return model.ArgsDelta{Call: use.ID, Text: s} })
}

// pieces sends text in chunks of characters.
func (p *player) pieces(text string, wrap func(string) model.Chunk) bool {
	p.output += len(text)
	for len(text) > 0 {
		n, runes := len(text), 0
		for i := range text {
			if runes == p.chunk {
				n = i
				break
			}
			runes++
		}
		if !p.rest() {
			return false
		}
		if !p.yield(wrap(text[:n]), nil) {
			return false
		}
		text = text[n:]
	}
	return true
}

// rest waits as long as "slow" says, or until cancelled.
func (p *player) rest() bool {
	if p.delay == 0 {
		return p.ctx.Err() == nil || p.cancelled()
	}
	return await.For(p.ctx, p.delay) || p.cancelled()
}

func (p *player) cancelled() bool {
	p.yield(nil, &model.Error{
		Kind: model.Network, Provider: "demo", Model: p.model, Message: "the call was cancelled", Err: context.Cause(p.ctx),
	})
	return false
}

func (p *player) fail(kind model.ErrorKind, why string, after time.Duration) bool {
	p.yield(nil, &model.Error{Kind: kind, Provider: "demo", Model: p.model, Message: why, RetryAfter: after})
	return false
}
