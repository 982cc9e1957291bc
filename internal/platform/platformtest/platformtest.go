// Package platformtest is the test suite for chat platforms: what people say, change
// and press arrives, the bot's posts appear once and notify nobody, and failing calls
// say how they failed. A new platform starts by calling Run with its own server.
//
// It promises to use a platform only through package platform and Server. It skips what a platform
// cannot do, with the reason; it never skips something because it fails.
package platformtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/polltest"
	"chorus/internal/room"
)

// Server is the far side of a platform for one test: a real server or a simulator, a
// person's actions there, and faults. A nil function is not
// possible there, and the cases that need it are skipped. All functions may end the test.
type Server struct {
	// Open makes a connection for the bot account, which the suite runs. The previous one has ended.
	Open    func() platform.Platform
	Guild   string // the guild of the channels
	Channel string // the bot and the person may read and write here
	Other   string // another one
	Person  string // the id of the person

	Say    func(channel string, p Post) (id string)
	Edit   func(id, text string)
	Delete func(id string)
	React  func(id, emoji string)
	// Press presses a button, and Invoke gives a command. Both wait until the platform knows
	// that they arrived.
	Press  func(id, value string)
	Invoke func(channel, command string, options map[string]string)
	// Shows returns a channel's messages, the oldest first, and Private what only the person sees.
	Shows   func(channel string) []Shown
	Private func() []string

	Cut  func()          // breaks the bot's connection; it can reconnect at once
	Fail func(f Failure) // what happens to the bot's next post
}

// Post is a person's message.
type Post struct {
	Text    string
	ReplyTo string
	File    string // name; "": none
	Data    []byte
}

// Shown is a message as people see it.
type Shown struct {
	ID, Text, ReplyTo string
	Own               bool     // the bot's
	Buttons           []string // their values
	Reactions         []string
	Files             map[string]int // name and size
	Notified          []string       // whom it notifies
}

// Failure is how a post fails.
type Failure string

// The failures.
const (
	Lost    Failure = "lost"    // it succeeds, but the answer is lost
	Refused Failure = "refused" // the server fails, and nothing is done
	Limited Failure = "limited" // there were too many calls; nothing is done
	Silent  Failure = "silent"  // nothing is done, and there is no answer for a long time
)

const (
	soon  = 30 * time.Second // more than anything takes, even on a busy machine
	grace = 5 * time.Second  // a connection has ended after that
)

// Run runs the suite. start makes a server for one case, which ends with it.
func Run(t *testing.T, start func(t *testing.T) *Server) {
	t.Helper()
	for _, group := range []map[string]func(*testing.T, *Server){inbound, outbound, failures, away} {
		for name, run := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, start(t))
			})
		}
	}
}

// session is a running connection and its sink.
type session struct {
	*testing.T
	platform.Platform
	caps platform.Caps
	end  func() error

	mu      sync.Mutex
	events  []platform.Event
	changed chan struct{} // closed and replaced with each event
	press   func(platform.Press) platform.Answer
	invoke  func(platform.Invocation) platform.Answer
	refuses bool // nothing is journalled
}

var _ platform.Sink = (*session)(nil)

// connect opens a connection and waits for its list of channels.
func connect(t *testing.T, s *Server, before ...func(*session)) *session {
	t.Helper()
	p := s.Open()
	c := &session{T: t, Platform: p, caps: p.Caps(), changed: make(chan struct{})}
	for _, set := range before {
		set(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, c) }()
	c.end = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-time.After(grace):
			return errors.New("the connection does not end")
		}
	})
	t.Cleanup(func() {
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
	c.await("the list of channels", func(e platform.Event) bool { l, ok := e.(platform.Listed); return ok && l.Complete })
	return c
}

// Take implements platform.Sink.
func (c *session) Take(e platform.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
	close(c.changed)
	c.changed = make(chan struct{})
}

// Journalled implements platform.Sink.
func (c *session) Journalled(context.Context) error {
	if c.refuses {
		return errors.New("the disk is full")
	}
	return nil
}

// Press implements platform.Sink.
func (c *session) Press(_ context.Context, p platform.Press) platform.Answer {
	if c.press == nil {
		return platform.Answer{}
	}
	return c.press(p)
}

// Invoke implements platform.Sink.
func (c *session) Invoke(_ context.Context, i platform.Invocation) platform.Answer {
	if c.invoke == nil {
		return platform.Answer{}
	}
	return c.invoke(i)
}

// Complete implements platform.Sink.
func (*session) Complete(context.Context, platform.Invocation, string) []platform.Choice { return nil }

// Speaks implements platform.Sink.
func (*session) Speaks(string) bool { return false }

func (*session) Form(_ context.Context, p platform.Press) (platform.Form, bool) {
	return platform.FormOf(p.Value)
}

// seen returns all events so far.
func (c *session) seen() []platform.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// await waits for an event, including earlier ones.
func (c *session) await(what string, fits func(platform.Event) bool) platform.Event {
	c.Helper()
	return c.awaitNth(1, what, fits)
}

// awaitNth waits for the nth event of a kind.
func (c *session) awaitNth(n int, what string, fits func(platform.Event) bool) platform.Event {
	c.Helper()
	late := time.After(soon)
	for {
		c.mu.Lock()
		changed, found := c.changed, slices.DeleteFunc(slices.Clone(c.events), func(e platform.Event) bool { return !fits(e) })
		c.mu.Unlock()
		if len(found) >= n {
			return found[n-1]
		}
		select {
		case <-changed:
		case <-late:
			c.Fatalf("reported %d times and not %d: %s; all that was reported: %+v", len(found), n, what, c.seen())
		}
	}
}

// said waits for a message.
func (c *session) said(id string) room.Message {
	c.Helper()
	e := c.await("message "+id, func(e platform.Event) bool { s, ok := e.(platform.Said); return ok && s.Message.ID == id })
	return e.(platform.Said).Message
}

// soon is a context for one call.
func (c *session) soon() context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), soon)
	c.Cleanup(cancel)
	return ctx
}

// call is what the outbox would call for a post.
func (c *session) call(channel, key string, p platform.Post) outbox.Call {
	return outbox.Call{Lane: journal.Lane{Platform: c.Name(), Bot: "bot", Channel: channel}, Key: key, Nonce: "nonce-" + key, Body: p.Body(), File: []byte(p.Content)}
}

// post creates a message.
func (c *session) post(channel, key string, p platform.Post) string {
	c.Helper()
	id, err := c.Create(c.soon(), c.call(channel, key, p))
	if err != nil || id == "" {
		c.Fatalf("post %q: %q, %v", p.Text, id, err)
	}
	return id
}

// about is a call about an existing message.
func (c *session) about(channel, id string, p platform.Post) outbox.Call {
	call := c.call(channel, "about-"+id, p)
	call.ID = id
	return call
}

// shown is a message in a channel.
func shown(t *testing.T, s *Server, channel, id string) Shown {
	t.Helper()
	list := s.Shows(channel)
	i := slices.IndexFunc(list, func(m Shown) bool { return m.ID == id })
	if i < 0 {
		t.Fatalf("message %s is not in the channel: %+v", id, list)
	}
	return list[i]
}

// private waits until the person, and nobody else, sees a text.
func private(t *testing.T, s *Server, text string) {
	t.Helper()
	polltest.Until(t, "the person is shown "+text, func() bool { return slices.Contains(s.Private(), text) })
}

// own returns what the bot has posted in a channel.
func own(s *Server, channel string) []Shown {
	return slices.DeleteFunc(slices.Clone(s.Shows(channel)), func(m Shown) bool { return !m.Own })
}

// need skips a case that this platform cannot run.
func need(t *testing.T, can bool, what string) {
	t.Helper()
	if !can {
		t.Skipf("this platform has no %s", what)
	}
}
