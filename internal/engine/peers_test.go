package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/peernotify"
	"chorus/internal/polltest"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// newPeerRig is a rig whose peers can notify it. Nobody sweeps after the start, so what
// another process does is heard by its notification or never.
func newPeerRig(t *testing.T, tools ...tool.Tool) *rig {
	t.Helper()
	r := newRig(t, tools...)
	r.config = func(c *engine.Config) { c.Peers = r.peers() }
	r.restart()
	r.listening(1)
	return r
}

func (r *rig) peers() peernotify.Peers { return peernotify.In(filepath.Join(r.dir, "peers")) }

// listening waits until that many processes listen.
func (r *rig) listening(n int) {
	r.t.Helper()
	polltest.Until(r.t, "all listen", func() bool {
		names, err := os.ReadDir(filepath.Join(r.dir, "peers"))
		return err == nil && len(names) == n
	})
}

// peer is another process on the same home.
func (r *rig) peer(adopt bool) *engine.Engine {
	r.t.Helper()
	c := r.engine.Config
	c.Adopt = func(chat.ThreadID) bool { return adopt }
	return r.peerWith(c)
}

// peerWith returns once the other process has looked for work, as each does when it starts: what is written after that it
// hears by its notification or never.
func (r *rig) peerWith(c engine.Config) *engine.Engine {
	r.t.Helper()
	look := &firstLook{Journal: c.Journal, over: make(chan struct{})}
	c.Bus, c.Peers, c.Takes, c.Journal = &bus.Bus{}, r.peers(), nil, look
	e := engine.New(c)
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			r.t.Error(err)
		}
	})
	r.listening(2)
	<-look.over
	return e
}

// firstLook is a store that tells when somebody has looked for threads with work.
type firstLook struct {
	engine.Journal
	once sync.Once
	over chan struct{}
}

func (j *firstLook) ActiveThreads(ctx context.Context) ([]journal.Thread, error) {
	threads, err := j.Journal.ActiveThreads(ctx)
	j.once.Do(func() { close(j.over) })
	return threads, err
}

// An abort in another process is heard by the one that runs the thread, whether the other
// could run it too or not.
func TestAPeersAbort(t *testing.T) {
	t.Parallel()
	for name, adopt := range map[string]bool{"a guest": false, "one that would run it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, began, _ := hold("act", false)
			r := newPeerRig(t, f)
			r.say("!call act {}\n!---\n!say over")
			<-began
			other := r.peer(adopt)
			if ended, err := other.Abort(context.Background(), thread, "local:bob", false); err != nil || !ended {
				t.Fatal(ended, err)
			}
			events := r.untilEnds(1)
			if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndAborted {
				t.Fatalf("%+v", end)
			}
		})
	}
}

// Words and answers from another process wake the one that may run the thread.
func TestAPeersWords(t *testing.T) {
	t.Parallel()
	r := newPeerRig(t, echo(false))
	r.gate = ask
	ctx := context.Background()
	r.say("!say one")
	r.untilEnds(1)
	other := r.peer(false)
	if asPrompt, err := other.Steer(ctx, thread, steer("!call act {}\n!---\n!say two", chat.Interrupt)); err != nil || !asPrompt {
		t.Fatal(asPrompt, err)
	}
	a := r.asked(1)
	polltest.Until(t, "the question costs no goroutine", func() bool { return !r.engine.Awake(thread) })
	if err := other.Answer(ctx, a.ID, bob, true, ""); err != nil {
		t.Fatal(err)
	}
	if got := lastText(r.untilEnds(2)); got != "two" {
		t.Fatal(got)
	}
	if other.Actors() > 0 {
		t.Error("a guest runs a thread")
	}
}

// Whoever only watches sees at once what another process wrote.
func TestWatchersHearPeers(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newPeerRig(t, f)
	around := r.engine.Bus.SubscribeAllProcesses()
	defer around.Close()
	own := r.engine.Bus.SubscribeAll(chat.KindSteered)
	defer own.Close()
	r.say("!call act {}\n!---\n!say over")
	<-began
	around.Take()
	if _, err := r.peer(false).Steer(context.Background(), thread, steer("mind the gap", chat.Inject)); err != nil {
		t.Fatal(err)
	}
	r.until(func(ev chat.Event) bool { return is[chat.Steered](ev) })
	polltest.Until(t, "whoever shows everything is told", func() bool { _, gap := around.Take(); return gap })
	if notes, gap := own.Take(); len(notes) > 0 || gap {
		t.Errorf("whoever counts what this process does was told: %v %v", notes, gap)
	}
	release <- struct{}{}
	r.untilEnds(1)
}

// Words that wait in another process's thread, which does not answer them, are answered as
// soon as it lets go.
func TestWaitingWordsArePassedOn(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newPeerRig(t, f)
	config := r.config
	r.config = func(c *engine.Config) {
		config(c)
		c.Takes = func(_ chat.ThreadID, w transcript.Waiting) bool { return w.Seq == 1 }
	}
	r.restart()
	r.say("!call act {}\n!---\n!say one")
	<-began
	other := r.peer(true)
	if _, err := other.Deliver(context.Background(), chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: bob,
		From: chat.Participant{ID: "bob", Kind: chat.Person}, Blocks: chat.TextBlocks("!say two"), Prompt: true}, nil); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the other found it taken", func() bool { return !other.Awake(thread) })
	release <- struct{}{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	text := ""
	for item, err := range other.Watch(ctx, thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		if said, ok := item.Event.Body.(chat.Said); ok {
			text = said.Blocks.Text()
		}
		if is[chat.RunEnded](*item.Event) && text == "two" {
			return
		}
	}
	t.Fatalf("the last words were %q", text)
}

// A run notifies nobody, nor does the prompt that it begins with.
func TestRunsRingNowhere(t *testing.T) {
	t.Parallel()
	r := newPeerRig(t, echo(true), echo(false))
	sub, err := r.peers().Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r.say("!call act {}\n!---\n!call look {}\n!---\n!say over")
	r.untilEnds(1)
	const last = chat.ThreadID("cli:here:last@helper")
	r.peers().Notify(peernotify.Thread(last))
	<-sub.Woken()
	if threads, _ := sub.Take(); len(threads) != 1 || threads[0] != peernotify.Thread(last) {
		t.Errorf("rung for %q", threads)
	}
}

// deafAfter is a store that, once a run has ended, answers whoever reads on only when they give up.
type deafAfter struct {
	engine.Journal
	ended   atomic.Bool
	reading chan struct{}
}

func (j *deafAfter) Commit(ctx context.Context, c journal.Commit) (journal.Committed, error) {
	done, err := j.Journal.Commit(ctx, c)
	for _, ev := range c.Events {
		if ev.Body.Kind() == chat.KindRunEnded {
			j.ended.Store(true)
		}
	}
	return done, err
}

func (j *deafAfter) Events(ctx context.Context, id chat.ThreadID, after int64, limit int) ([]chat.Event, error) {
	if !j.ended.Load() {
		return j.Journal.Events(ctx, id, after, limit)
	}
	select {
	case j.reading <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// Words that wait for another process are passed on also by one that is stopped while it reads whether any do.
func TestWordsArePassedOnAtTheEnd(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newPeerRig(t, f)
	r.close()
	deaf := &deafAfter{reading: make(chan struct{}, 1)}
	r.config = func(c *engine.Config) {
		c.Peers = r.peers()
		deaf.Journal, c.Journal = c.Journal, deaf
	}
	r.open()
	r.listening(1)
	r.say("!call act {}\n!---\n!say one")
	<-began
	c := r.engine.Config
	c.Journal = r.db
	other := r.peerWith(c)
	if _, err := other.Deliver(context.Background(), chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: bob,
		From: chat.Participant{ID: "bob", Name: "Bob", Kind: chat.Person}, Blocks: chat.TextBlocks("!say two"), Prompt: true}, nil); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the other has found it taken", func() bool { return other.Actors() == 0 })
	release <- struct{}{}
	<-deaf.reading
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.engine.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for item, err := range other.Watch(ctx, thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event != nil && item.Event.Body.Kind() == chat.KindRunEnded {
			if ends++; ends == 2 {
				break
			}
		}
	}
	if ends != 2 {
		t.Errorf("%d runs ended", ends)
	}
}

// Where runs notify, whoever watches in another process sees what they write at once, and nobody else looks for work.
func TestWatchersHearRunsElsewhere(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newPeerRig(t, f)
	config := r.config
	r.config = func(c *engine.Config) {
		config(c)
		c.NotifyRuns = true
	}
	r.restart()
	other := r.peer(true) // it would run the thread, if it were asked to look
	around := other.Bus.SubscribeAllProcesses()
	defer around.Close()
	r.say("!call act {}\n!---\n!say over")
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	watching, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for item, err := range other.Watch(ctx, thread, 0) {
			switch {
			case err != nil:
				ended <- err
				return
			case item.Event != nil && is[chat.ToolBegan](*item.Event):
				close(watching)
			case item.Event != nil && is[chat.RunEnded](*item.Event):
				ended <- nil
				return
			}
		}
		ended <- ctx.Err()
	}()
	select {
	case <-watching:
	case err := <-ended:
		t.Fatal(err)
	}
	release <- struct{}{}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := other.Actors(); n > 0 {
		t.Errorf("%d actors for what others only watch", n)
	}
	polltest.Until(t, "whoever shows everything is told, a little later", func() bool { _, gap := around.Take(); return gap })
}

// What is no thread wakes those who follow it.
func TestTopicsElsewhere(t *testing.T) {
	t.Parallel()
	r := newPeerRig(t)
	settings, agents := r.engine.Bus.SubscribeTopic("settings"), r.engine.Bus.SubscribeTopic("agents")
	defer settings.Close()
	defer agents.Close()
	r.peer(false).NotifyPeers("settings")
	<-settings.Wake()
	if _, gap := settings.Take(); !gap {
		t.Error("no gap")
	}
	if _, gap := agents.Take(); gap {
		t.Error("whoever follows something else was told")
	}
}
