package openai

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

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
		api, known := prep.Reading.(API)
		path, responses := "chat/completions", api == Responses || !known && p.responses(prep.Model)
		if responses {
			path = "responses"
		}
		first, idle := p.timeouts(prep.Model, responses)
		call := wire.Watch(ctx, first, idle)
		defer func() { _ = call.Close() }()
		res, failed := p.rest(side).Post(call, p.base+path+p.query, prep.Body)
		if failed != nil {
			if responses && p.lacksResponses(failed) {
				p.chatOnly.Store(true)
				failed.Kind, failed.RetryAfter = model.Network, time.Millisecond
				failed.Message = "this server has no Responses API; it is asked through Chat Completions from now on (openai_api: chat says so from the start)"
			}
			yield(nil, failed)
			return
		}
		s := format.Stream{Side: side, Call: call, Yield: yield, Prefill: prep.Prefill,
			ThinkTags: p.opts.Router == nil && !openaiOwn(p.opts.BaseURL)}
		if responses {
			s.Responses(res.Body)
		} else {
			s.Chat(res.Body)
		}
	}
}

// lacksResponses reports whether a gateway or another server than OpenAI's does not know
// the address of Responses, and Responses was not explicitly chosen.
func (p *Provider) lacksResponses(err *model.Error) bool {
	return p.opts.API == Auto && !openaiOwn(p.opts.BaseURL) && !strings.Contains(err.Message, "model") &&
		(err.Status == http.StatusNotFound || err.Status == http.StatusMethodNotAllowed || err.Status == http.StatusNotImplemented)
}

// thinkTime is how long a reasoning model may be silent: its reasoning is not streamed.
const thinkTime = 10 * time.Minute

// timeouts returns how long to wait for the first byte and between bytes. A reasoning model is
// silent before the first byte with Chat Completions, and after it with Responses.
func (p *Provider) timeouts(name string, responses bool) (first, idle time.Duration) {
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
