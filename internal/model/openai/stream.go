package openai

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"

	"chorus/internal/model"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

// Stream sends the body and yields the answer.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		side := p.side(prep.Model)
		if p.keyless() {
			yield(nil, side.NoKey(p.keyName()))
			return
		}
		path, responses := "chat/completions", p.responses(prep.Model)
		if responses {
			path = "responses"
		}
		first, idle := p.patience(prep.Model, responses)
		call := wire.Watch(ctx, first, idle)
		defer func() { _ = call.Close() }()
		var res *http.Response
		if err := p.client.Post(call.Context(), path, prep.Body, &res, option.WithMiddleware(call.Intercept)); err != nil {
			yield(nil, side.Failure(call, res, err))
			return
		}
		s := format.Stream{Side: side, Call: call, Yield: yield, Prefill: prep.Prefill}
		if responses {
			s.Responses(res.Body)
		} else {
			s.Chat(res.Body)
		}
	}
}

// thinkTime is how long a model that reasons may be silent: its reasoning is not
// streamed.
const thinkTime = 10 * time.Minute

// patience is how long to wait for the first byte and between bytes. Through Chat
// Completions a model that reasons is silent before the first one, through Responses
// after it.
func (p *Provider) patience(name string, responses bool) (first, idle time.Duration) {
	first, idle = p.opts.FirstByteTimeout, p.opts.IdleTimeout
	e, _ := p.lookup(name)
	if e.ThinksAlone && first <= 0 {
		first = thinkTime
	}
	if e.ThinksAlone && responses && idle <= 0 {
		idle = thinkTime
	}
	return first, idle
}
