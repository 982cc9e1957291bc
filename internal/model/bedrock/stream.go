package bedrock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/catalog"
	"chorus/internal/model/wire"
)

// Prepare implements model.Model, with Anthropic's body for their models and Converse's for all others.
func (p *Provider) Prepare(r model.Request) (model.Prepared, error) {
	entry, known := catalog.Lookup(provider, r.Model)
	if !catalog.TraitsOf(provider, r.Model).AnthropicBody {
		return p.converse(r, entry, known)
	}
	return anthropic.Encode(r, anthropic.Form{
		Side: p.side(r.Model), Entry: entry, Known: known, Opening: `"anthropic_version":"bedrock-2023-05-31"`,
	})
}

// Stream implements model.Model.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		side := p.side(prep.Model)
		what := operationOf(prep)
		begin := p.opts.FirstByteTimeout
		if begin <= 0 && what == converseWhole {
			begin = wholeTime
		}
		call := wire.Watch(ctx, begin, p.opts.IdleTimeout)
		defer func() { _ = call.Close() }()
		base := p.runtimeURL()
		a, failed := p.access(call.Context(), side, base)
		if failed != nil {
			if call.Context().Err() != nil {
				failed = side.Network(call.Cause(failed))
			}
			yield(nil, failed)
			return
		}
		side.Key = a.secret()
		base = cmp.Or(base, regional("bedrock-runtime", a.region))
		res, failed := p.do(call, side, a, http.MethodPost, operation(base, prep.Model, what), prep.Body)
		if failed != nil {
			yield(nil, failed)
			return
		}
		in := &incoming{side: side, yield: yield, answer: anthropic.NewAnswer(side, call, prep.Prefill, yield)}
		in.named(res.Header.Get("X-Amzn-Requestid"))
		switch what {
		case invoke:
			in.read(res.Body, in.chunk)
		case converseWhole:
			in.whole(res.Body)
		default:
			in.read(res.Body, in.event)
		}
	}
}

// The operations that produce an answer.
const (
	invoke         = "invoke-with-response-stream"
	converseStream = "converse-stream"
	converseWhole  = "converse"
)

// wholeTime is how long an answer that is not streamed may take to begin: it begins when it is complete.
const wholeTime = 10 * time.Minute

func operationOf(prep model.Prepared) string {
	switch traits := catalog.TraitsOf(provider, prep.Model); {
	case traits.AnthropicBody:
		return invoke
	case traits.WholeTools && bytes.Contains(prep.Body, []byte(toolsOpening)):
		return converseWhole
	default:
		return converseStream
	}
}

// incoming is an answer that is being received.
type incoming struct {
	side   wire.Side
	yield  func(model.Chunk, error) bool
	answer *anthropic.Answer

	open    map[int]bool // Converse: the blocks that have started
	stopped bool         // Converse: the answer is complete; its usage may follow
}

// named gives the answer the id of its request until it brings its own.
func (in *incoming) named(id string) {
	in.answer.Take(anthropic.Event{Type: "message_start", Message: &anthropic.Message{ID: id}})
}

// read reads frames until the answer is complete or fails. take returns false at its end.
func (in *incoming) read(body io.Reader, take func(frame) bool) {
	in.open = map[int]bool{}
	frames := newFrames(body)
	for {
		f, err := frames.next()
		switch {
		case err != nil && in.stopped && errors.Is(err, io.EOF):
			in.answer.Finish()
			return
		case errors.Is(err, io.EOF):
			in.answer.Broken(nil)
			return
		case err != nil:
			in.answer.Broken(err)
			return
		case f.exception != "":
			in.yield(nil, f.failure(in.side))
			return
		}
		if !take(f) {
			return
		}
	}
}

// chunk handles a frame of InvokeModelWithResponseStream: one of Anthropic's events in base64.
func (in *incoming) chunk(f frame) bool {
	if f.event != "chunk" {
		return true // unknown events are skipped
	}
	var c struct {
		Bytes []byte `json:"bytes"`
	}
	if err := json.Unmarshal(f.payload, &c); err != nil {
		in.answer.Broken(errors.Join(errBroken, err))
		return false
	}
	return in.answer.Read("", c.Bytes)
}
