package attempt

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/model"
)

// played is a model that plays chunks, then an error if there is one.
type played struct {
	chunks []model.Chunk
	err    error
}

func (p played) Prepare(model.Request) (model.Prepared, error) { return model.Prepared{}, nil }
func (p played) Stream(context.Context, model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for _, c := range p.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if p.err != nil {
			yield(nil, p.err)
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	done := model.Done{Blocks: chat.TextBlocks("hello you"), Stop: chat.StopEnd}
	pieces := []model.Chunk{model.TextDelta{Text: "hello"}, model.ArgsDelta{Call: "1", Text: "{}"}, model.ThinkingDelta{Text: "hm"}, model.TextDelta{Text: " you"}}
	for name, c := range map[string]struct {
		m    played
		text string
		kind model.ErrorKind
		got  int
	}{
		"whole":       {played{append(pieces[:4:4], done), nil}, "hello you", "", 0},
		"cut":         {played{pieces[:1], &model.Error{Kind: model.Overloaded}}, "hello", model.Overloaded, len("hello")},
		"no end mark": {played{pieces, nil}, "hello you", model.Network, len("hello{}hm you")},
		"nothing":     {played{nil, &model.Error{Kind: model.Auth}}, "", model.Auth, 0},
	} {
		var live []chat.Delta
		said, err := Stream(t.Context(), model.Handle{Model: c.m, Name: "m"}, model.Prepared{}, chat.Said{Step: 2, Attempt: 3}, func(d chat.Delta) { live = append(live, d) })
		if model.KindOf(err) != c.kind || said.Blocks.Text() != c.text || said.Partial != (err != nil) || said.Step != 2 || said.Attempt != 3 || said.Received != c.got {
			t.Errorf("%s: %+v, %v", name, said, err)
		}
		if name == "whole" && (len(live) != 4 || live[3].Offset != len("hello") || live[2].What != chat.DeltaThinking) {
			t.Errorf("%s: shown %+v", name, live)
		}
	}
}

func TestWhatFollowsAFailure(t *testing.T) {
	t.Parallel()
	p := Policy{Backoff: model.Backoff{Retries: 1, Base: time.Second}, FallsBack: func(k model.ErrorKind) bool { return k != model.BadRequest }}
	chain := []string{"b", "c"}
	for name, c := range map[string]struct {
		err      error
		failures int
		current  string
		text     string
		next     string
		retry    int64
		final    bool
	}{
		"again after a pause":       {&model.Error{Kind: model.Network}, 1, "a", "", "", 1000, false},
		"then the next model":       {&model.Error{Kind: model.Network}, 2, "a", "", "b", 0, false},
		"and the next":              {&model.Error{Kind: model.Network}, 2, "b", "", "c", 0, false},
		"none is left":              {&model.Error{Kind: model.Network}, 2, "c", "", "", 0, true},
		"somebody has read of it":   {&model.Error{Kind: model.Network}, 2, "a", "so far", "", 0, true},
		"our fault":                 {&model.Error{Kind: model.BadRequest}, 1, "a", "", "", 0, true},
		"too long is for a summary": {&model.Error{Kind: model.TooLong}, 1, "a", "", "", 0, false},
		"not a model's error":       {errors.New("disk full"), 1, "a", "", "", 0, true},
	} {
		said := chat.Said{Partial: true}
		if c.text != "" {
			said.Blocks = chat.TextBlocks(c.text)
		}
		got := p.Failed(said, c.err, Failures{Count: c.failures}, time.Now(), c.current, chain).Error
		if got == nil || got.Next != c.next || got.RetryMS != c.retry || got.Final != c.final {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFailureSaysWhatWasWaitedFor(t *testing.T) {
	t.Parallel()
	f := Failure(&deadline.Stuck{Wait: deadline.Wait{For: "the model x/y"}, After: time.Minute})
	if f.Kind != "stuck" || f.Message != "stopped: waited 1m0s for the model x/y without success; send your message again to retry" {
		t.Errorf("%+v", f)
	}
}

// A provider that was out of order for more than some seconds failed every run: those that
// nobody waits for go on trying, within a time.
func TestAnOutageIsWaitedOut(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	p := Policy{Backoff: model.Backoff{Retries: 1, Base: time.Second}, Outage: 15 * time.Minute, FallsBack: func(model.ErrorKind) bool { return true }}
	for name, c := range map[string]struct {
		policy Policy
		err    *model.Error
		count  int
		after  time.Duration
		chain  []string
		retry  time.Duration
		final  bool
	}{
		"as before":             {p, &model.Error{Kind: model.Overloaded}, 1, 0, nil, time.Second, false},
		"then longer":           {p, &model.Error{Kind: model.Overloaded}, 4, time.Minute, nil, 8 * time.Second, false},
		"but not ever longer":   {p, &model.Error{Kind: model.Network}, 40, 10 * time.Minute, nil, 32 * time.Second, false},
		"at least what it asks": {p, &model.Error{Kind: model.RateLimited, RetryAfter: time.Minute}, 5, time.Minute, nil, time.Minute, false},
		"not every second":      {p, &model.Error{Kind: model.RateLimited, RetryAfter: time.Second}, 5, time.Minute, nil, 16 * time.Second, false},
		"until it is too long":  {p, &model.Error{Kind: model.Overloaded}, 40, 15 * time.Minute, nil, 0, true},
		"our fault":             {p, &model.Error{Kind: model.BadRequest}, 2, 0, nil, 0, true},
		"another model first":   {p, &model.Error{Kind: model.Overloaded}, 2, 0, []string{"b"}, 0, false},
		"somebody waits":        {Policy{Backoff: p.Backoff}, &model.Error{Kind: model.Overloaded}, 2, 0, nil, 0, true},
		"no retries":            {Policy{Backoff: model.Backoff{Retries: -1}, Outage: time.Hour}, &model.Error{Kind: model.Overloaded}, 1, 0, nil, 0, true},
	} {
		got := c.policy.Failed(chat.Said{}, c.err, Failures{c.count, began}, began.Add(c.after), "a", c.chain).Error
		if got.RetryMS != c.retry.Milliseconds() && !c.final || got.Final != c.final {
			t.Errorf("%s: %+v", name, got)
		}
		if waits := !c.final && c.chain == nil && c.count > 1; waits != got.Until.Equal(began.Add(15*time.Minute)) {
			t.Errorf("%s: until %s", name, got.Until)
		}
	}
}
