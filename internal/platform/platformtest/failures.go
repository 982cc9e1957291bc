package platformtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"chorus/internal/await"
	"chorus/internal/outbox"
	"chorus/internal/platform"
)

// failures are the cases of failing calls.
var failures = map[string]func(*testing.T, *Server){
	"the answer is lost":               answerLost,
	"the server fails":                 serverFails,
	"too many calls":                   limited,
	"no answer":                        noAnswer,
	"a post is found":                  finds,
	"a body that cannot be read":       unreadable,
	"a connection ends when it should": ends,
}

// fail makes the next post fail.
func fail(t *testing.T, s *Server, f Failure) {
	t.Helper()
	need(t, s.Fail != nil, "way to fail on purpose")
	s.Fail(f)
}

// again repeats a call, as the outbox does: the connection may have broken with the previous one.
func (c *session) again(call func(context.Context) (string, error)) (string, error) {
	retry := platform.Retry{First: 10 * time.Millisecond, Max: time.Second, Call: soon, Log: slog.New(slog.DiscardHandler)}
	return platform.Again(c.soon(), retry, "again", call)
}

// A post whose answer was lost exists once, whatever is tried next: because of its nonce, or because
// it is found. A platform without either says so, and then it is never posted again.
func answerLost(t *testing.T, s *Server) {
	c := connect(t, s)
	call := c.call(s.Channel, "a", platform.Post{Text: "only once"})
	since := time.Now()
	fail(t, s, Lost)
	if id, err := c.Create(c.soon(), call); err == nil || !platform.Passing(err) {
		t.Fatalf("a lost answer gives %q, %v", id, err)
	}
	list := own(s, s.Channel)
	if len(list) != 1 {
		t.Fatalf("posted were %+v", list)
	}
	verdict := outbox.Unknown
	id, err := c.again(func(ctx context.Context) (id string, err error) {
		id, verdict, err = c.Find(ctx, outbox.Probe{Lane: call.Lane, Key: call.Key, Nonce: call.Nonce, Body: call.Body, Since: since})
		return id, err
	})
	if err != nil || verdict == outbox.Absent || verdict == outbox.Present && id != list[0].ID {
		t.Errorf("it is found as %q, %v, %v", id, verdict, err)
	}
	if c.caps.Nonce == 0 {
		return
	}
	if id, err := c.again(func(ctx context.Context) (string, error) { return c.Create(ctx, call) }); err != nil || id != list[0].ID || len(own(s, s.Channel)) != 1 {
		t.Errorf("posted again it is %q, %v, not %q: %+v", id, err, list[0].ID, own(s, s.Channel))
	}
}

func serverFails(t *testing.T, s *Server) {
	c := connect(t, s)
	call := c.call(s.Channel, "a", platform.Post{Text: "at last"})
	since := time.Now()
	fail(t, s, Refused)
	if id, err := c.Create(c.soon(), call); err == nil || !platform.Passing(err) {
		t.Fatalf("a server that fails gives %q, %v", id, err)
	}
	if id, verdict, err := c.Find(c.soon(), outbox.Probe{Lane: call.Lane, Key: call.Key, Nonce: call.Nonce, Body: call.Body, Since: since}); err != nil || verdict == outbox.Present {
		t.Errorf("what was not posted is found as %q, %v, %v", id, verdict, err)
	}
	if _, err := c.Create(c.soon(), call); err != nil || len(own(s, s.Channel)) != 1 {
		t.Errorf("the second try: %v, %+v", err, own(s, s.Channel))
	}
}

// The platform waits for a limit, or reports it with the time to wait.
func limited(t *testing.T, s *Server) {
	c := connect(t, s)
	call := c.call(s.Channel, "a", platform.Post{Text: "patience"})
	fail(t, s, Limited)
	for try := 0; ; try++ {
		_, err := c.Create(c.soon(), call)
		if err == nil {
			break
		}
		var wait *outbox.RateLimited
		if !errors.As(err, &wait) || wait.After <= 0 || try > 5 {
			t.Fatalf("too many calls: %v", err)
		}
		await.For(t.Context(), wait.After)
	}
	if list := own(s, s.Channel); len(list) != 1 {
		t.Errorf("posted were %+v", list)
	}
}

func noAnswer(t *testing.T, s *Server) {
	c := connect(t, s)
	fail(t, s, Silent)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if id, err := c.Create(ctx, c.call(s.Channel, "a", platform.Post{Text: "hello?"})); err == nil || !platform.Passing(err) {
		t.Errorf("no answer gives %q, %v", id, err)
	}
	if d := time.Since(began); d > grace {
		t.Errorf("a call with a deadline of 200 ms took %v", d)
	}
}

// Only a post of the bot itself is found, and only one that was created since.
func finds(t *testing.T, s *Server) {
	c := connect(t, s)
	s.Say(s.Channel, Post{Text: "the same words"})
	call := c.call(s.Channel, "a", platform.Post{Text: "the same words"})
	probe := outbox.Probe{Lane: call.Lane, Key: call.Key, Nonce: call.Nonce, Body: call.Body, Since: time.Now()}
	id, before, err := c.Find(c.soon(), probe)
	if err != nil || before == outbox.Present {
		t.Fatalf("somebody else's message is found as %q, %v, %v", id, before, err)
	}
	need(t, before != outbox.Unknown, "way to find a message")
	made, err := c.Create(c.soon(), call)
	if err != nil {
		t.Fatal(err)
	}
	if id, verdict, err := c.Find(c.soon(), probe); err != nil || verdict != outbox.Present || id != made {
		t.Errorf("%s is found as %q, %v, %v", made, id, verdict, err)
	}
	probe.Body, probe.Nonce = platform.Post{Text: "other words"}.Body(), "other"
	if id, verdict, err := c.Find(c.soon(), probe); err != nil || verdict != outbox.Absent {
		t.Errorf("other words are found as %q, %v, %v", id, verdict, err)
	}
}

func unreadable(t *testing.T, s *Server) {
	c := connect(t, s)
	call := c.call(s.Channel, "a", platform.Post{})
	call.Body = []byte("{")
	if _, err := c.Create(c.soon(), call); !platform.Is(err, outbox.Invalid) {
		t.Errorf("a body that cannot be read: %v", err)
	}
}

// A connection ends with its context, even while a post waits for an answer and a
// button is being handled.
func ends(t *testing.T, s *Server) {
	c := connect(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	posted := make(chan struct{})
	if s.Fail != nil {
		s.Fail(Silent)
	}
	go func() {
		defer close(posted)
		_, _ = c.Create(ctx, c.call(s.Channel, "a", platform.Post{Text: "late"})) // the result does not matter
	}()
	if err := c.end(); err != nil {
		t.Error(err)
	}
	cancel()
	select {
	case <-posted:
	case <-time.After(grace):
		t.Error("a post outlives its context")
	}
}
