package modeltest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"chorus/internal/model"
	"chorus/internal/sim/llmsim"
)

// failures checks every way an answer can fail.
func failures(t *testing.T, m Maker) {
	t.Run("statuses", func(t *testing.T) { t.Parallel(); statuses(t, m) })
	t.Run("in the stream", func(t *testing.T) { t.Parallel(); streams(t, m) })
	t.Run("retry-after", func(t *testing.T) { t.Parallel(); retries(t, m) })
	t.Run("cancelled", func(t *testing.T) { t.Parallel(); cancelled(t, m) })
	t.Run("silence", func(t *testing.T) { t.Parallel(); silence(t, m) })
	t.Run("wrong key", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m, func(c *Config) { c.Key = "wrong-" + Key })
		out := b.ask(t.Context(), b.request())
		if out.err == nil || out.err.Kind != model.Auth || out.err.Status != cmp.Or(m.WrongKey, 401) || strings.Contains(out.err.Error(), "wrong-") {
			t.Errorf("got %+v", out.err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		b := setup(t, m, func(c *Config) { c.BaseURL = "http://" + addr })
		if out := b.ask(t.Context(), b.request()); out.err == nil || out.err.Kind != model.Network || !out.err.Retryable() {
			t.Errorf("got %+v", out.err)
		}
	})
}

func statuses(t *testing.T, m Maker) {
	cases := []struct {
		fault llmsim.Fault
		want  model.ErrorKind
	}{
		{llmsim.Fault{Code: 400}, model.BadRequest},
		{llmsim.Fault{Code: 401}, model.Auth},
		{llmsim.Fault{Code: 402}, model.Auth},
		{llmsim.Fault{Code: 403}, model.Auth},
		{llmsim.Fault{Code: 404}, model.BadRequest},
		{llmsim.Fault{Code: 413}, model.TooLong},
		{llmsim.Fault{Code: 422}, model.BadRequest},
		{llmsim.Fault{Code: 429}, model.RateLimited},
		{llmsim.Fault{Code: 500}, model.Overloaded},
		{llmsim.Fault{Code: 503}, model.Overloaded},
		{llmsim.Fault{Code: 529}, model.Overloaded},
		{llmsim.Fault{Code: 400, Message: "prompt is too long: 210000 tokens > 200000 maximum"}, model.TooLong},
		{llmsim.Fault{Code: 400, ErrCode: "context_length_exceeded", Message: "This model's maximum context length is 8192 tokens."}, model.TooLong},
		{llmsim.Fault{Code: 400, Message: "input length and `max_tokens` exceed context limit: 1 + 2 > 3"}, model.TooLong},
		{llmsim.Fault{Code: 400, Message: "Your credit balance is too low to access the API."}, model.Auth},
		{llmsim.Fault{Code: 429, ErrCode: "insufficient_quota", Message: "You exceeded your current quota."}, model.Auth},
		{llmsim.Fault{Code: 400, Message: "Output blocked by content filtering policy"}, model.Refused},
		{llmsim.Fault{Code: 502, Body: "<html>Bad gateway</html>"}, model.Overloaded},
		{llmsim.Fault{Code: 400, Body: `{"error":"just a sentence"}`}, model.BadRequest},
		{llmsim.Fault{Code: 500, Body: "the key " + Key + " is odd " + strings.Repeat("and long ", 1000)}, model.Overloaded},
		{llmsim.Fault{Code: 418, Body: " "}, model.BadRequest},
	}
	b := setup(t, m)
	for _, c := range cases {
		c.fault.Kind = llmsim.Status
		b.sim.Push(llmsim.Turn{Fault: &c.fault})
		before := len(b.sim.Requests())
		out := b.ask(t.Context(), b.request())
		if out.err == nil || out.err.Kind != c.want || out.err.Status != c.fault.Code {
			t.Errorf("%+v: got %+v", c.fault, out.err)
			continue
		}
		if c.fault.Message != "" && !strings.Contains(out.err.Message, c.fault.Message) {
			t.Errorf("%+v: message %q", c.fault, out.err.Message)
		}
		if len(out.err.Message) > 700 || out.err.Message == "" {
			t.Errorf("%+v: a message of %d bytes", c.fault, len(out.err.Message))
		}
		if n := len(b.sim.Requests()) - before; n != 1 {
			t.Errorf("%+v: %d requests, want one: providers do not retry", c.fault, n)
		}
	}
}

func streams(t *testing.T, m Maker) {
	said := llmsim.Turn{Text: "this answer will not come to its end", Chunk: 4, Calls: []llmsim.Call{{Name: "bash", Args: `{"command":"rm"}`, Fragments: 2}}}
	with := func(f llmsim.Fault) llmsim.Turn { t := said; t.Fault = &f; return t }
	if m.Text {
		said.Calls = nil
	}
	inCall := 15 // the frame of the first arguments
	switch m.API {
	case llmsim.OpenAI:
		inCall = 12
	case llmsim.OpenRouter:
		inCall = 13
	case llmsim.Responses:
		inCall = 18
	case llmsim.Completions:
		inCall = 8
	}
	cases := []struct {
		name string
		turn llmsim.Turn
		want model.ErrorKind
	}{
		{"cut", said.With(llmsim.Cut, 5), model.Network},
		{"cut at once", said.With(llmsim.Cut, 0), model.Network},
		{"ended early", said.With(llmsim.EOF, 5), model.Network},
		{"ended at once", said.With(llmsim.EOF, 0), model.Network},
		{"ended in a call", said.With(llmsim.EOF, inCall), model.Network},
		{"overloaded", said.With(llmsim.StreamError, 4), model.Overloaded},
		{"rate limit", with(llmsim.Fault{Kind: llmsim.StreamError, After: 4, Type: "rate_limit_error", Message: "slow down"}), model.RateLimited},
		{"invalid", with(llmsim.Fault{Kind: llmsim.StreamError, After: 1, Type: "invalid_request_error", Message: "no"}), model.BadRequest},
		{"too long", with(llmsim.Fault{Kind: llmsim.StreamError, After: 1, Type: "invalid_request_error", Message: "prompt is too long"}), model.TooLong},
		{"key in the message", with(llmsim.Fault{Kind: llmsim.StreamError, After: 1, Message: "bad " + Key}), model.Overloaded},
	}
	b := setup(t, m)
	for _, c := range cases {
		b.sim.Push(c.turn)
		out := b.ask(t.Context(), b.request())
		if m.PlainErrors && (c.want == model.RateLimited || c.want == model.BadRequest) {
			c.want = model.Overloaded
		}
		if out.err == nil || out.err.Kind != c.want {
			t.Errorf("%s: got %+v, done %+v", c.name, out.err, out.done)
		}
	}
	// An unreadable event is reported, and the answer continues. With binary
	// framing, nothing after a broken frame can be read.
	b.sim.Push(said.With(llmsim.Malformed, 4))
	out := b.ask(t.Context(), b.request())
	framed := m.API == llmsim.Bedrock || m.API == llmsim.Converse
	if framed && (out.err == nil || out.err.Kind != model.Network) || !framed && (out.done == nil || out.unreadable != 1) {
		t.Errorf("malformed: got %+v, done %+v, %d unreadable", out.err, out.done, out.unreadable)
	}
}

func retries(t *testing.T, m Maker) {
	date := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	cases := []struct {
		fault    llmsim.Fault
		min, max time.Duration
	}{
		{llmsim.Fault{Code: 429, RetryAfter: "7"}, 7 * time.Second, 7 * time.Second},
		{llmsim.Fault{Code: 429, RetryAfter: "0.5"}, 500 * time.Millisecond, 500 * time.Millisecond},
		{llmsim.Fault{Code: 529, RetryAfterMS: 250}, 250 * time.Millisecond, 250 * time.Millisecond},
		{llmsim.Fault{Code: 503, RetryAfter: "9", RetryAfterMS: 1500}, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{llmsim.Fault{Code: 429, RetryAfter: date}, 30 * time.Second, 91 * time.Second},
		{llmsim.Fault{Code: 429, RetryAfter: "soon"}, 0, 0},
		{llmsim.Fault{Code: 429, RetryAfter: "-1"}, 0, 0},
		{llmsim.Fault{Code: 429, RetryAfter: "1e300"}, time.Hour, 24 * time.Hour},
		{llmsim.Fault{Code: 429}, 0, 0},
	}
	b := setup(t, m)
	for _, c := range cases {
		c.fault.Kind = llmsim.Status
		b.sim.Push(llmsim.Turn{Fault: &c.fault})
		out := b.ask(t.Context(), b.request())
		if out.err == nil || !out.err.Retryable() || out.err.RetryAfter < c.min || out.err.RetryAfter > c.max {
			t.Errorf("%q %dms: got %+v", c.fault.RetryAfter, c.fault.RetryAfterMS, out.err)
		}
	}
}

// gone waits until the simulator has seen the client leave.
func (b *bench) gone() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := b.sim.Wait(ctx, func(all []llmsim.Request) bool {
		return len(all) > 0 && all[len(all)-1].State == llmsim.Gone
	})
	if err != nil {
		b.t.Errorf("the server did not see the client leave: %v", err)
	}
}

func cancelled(t *testing.T, m Maker) {
	stalled := llmsim.Turn{Text: "one two three four five six", Chunk: 3}.With(llmsim.Stall, 6)
	t.Run("in the middle", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		b.sim.Push(stalled)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		why := errors.New("somebody pressed escape")
		var last error
		for chunk, err := range b.p.Stream(ctx, b.prepare(b.request())) {
			if _, ok := chunk.(model.TextDelta); ok {
				cancel(why)
			}
			last = err
		}
		if model.KindOf(last) != model.Network || !errors.Is(last, why) {
			t.Errorf("got %v", last)
		}
		b.gone()
	})
	t.Run("before it began", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if out := b.ask(ctx, b.request()); out.err == nil || !errors.Is(out.err, context.Canceled) {
			t.Errorf("got %+v", out)
		}
	})
	t.Run("by leaving the loop", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		b.sim.Push(stalled)
		for chunk, err := range b.p.Stream(t.Context(), b.prepare(b.request())) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := chunk.(model.TextDelta); ok {
				break
			}
		}
		b.gone()
	})
}

func silence(t *testing.T, m Maker) {
	stalled := llmsim.Text("one two three").With(llmsim.Stall, 2)
	// The silence must be long enough for a slow machine to begin, and is ended
	// by the deadline under test, not by a clock of ours.
	b := setup(t, m, func(c *Config) { c.Idle = 300 * time.Millisecond })
	b.sim.Push(stalled)
	out := b.ask(t.Context(), b.request())
	if out.err == nil || out.err.Kind != model.Network || !strings.Contains(out.err.Message, "300ms") {
		t.Errorf("idle: got %+v", out.err)
	}
	b.gone()

	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections in its backlog but never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	b = setup(t, m, func(c *Config) {
		c.FirstByte = 50 * time.Millisecond
		c.BaseURL = "http://127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	})
	out = b.ask(t.Context(), b.request())
	if out.err == nil || out.err.Kind != model.Network || !strings.Contains(out.err.Message, "50ms") {
		t.Errorf("first byte: got %+v", out.err)
	}
}
