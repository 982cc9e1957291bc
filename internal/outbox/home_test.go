package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

func laneOf(channel string) journal.Lane {
	return journal.Lane{Platform: "talk", Bot: "one", Channel: channel}
}

func quoted(s string) json.RawMessage { return json.RawMessage(fmt.Sprintf("%q", s)) }

var errDead = errors.New("the process was killed")

// fuse burns down with every step; then the process is dead: nothing it does has any
// effect. A negative one never burns.
type fuse struct {
	mu   sync.Mutex
	left int
	dead chan struct{}
}

func newFuse(steps int) *fuse { return &fuse{left: steps, dead: make(chan struct{})} }

// burn reports whether the process is dead now.
func (f *fuse) burn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return true
	}
	if f.left > 0 {
		if f.left--; f.left == 0 {
			close(f.dead)
			return true
		}
	}
	return false
}

// disarm lets a process live that has come so far.
func (f *fuse) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left > 0 {
		f.left = -1
	}
}

func (f *fuse) isDead() bool {
	select {
	case <-f.dead:
		return true
	default:
		return false
	}
}

// mortal does a thing in a process that may die before or after it.
func mortal[T any](f *fuse, work func() (T, error)) (T, error) {
	var none T
	if f.burn() {
		return none, errDead
	}
	v, err := work()
	if f.burn() {
		return none, errDead
	}
	return v, err
}

// mortalStore is a store seen from a process that may die.
type mortalStore struct {
	*store.DB
	f *fuse
}

var (
	_ Store = mortalStore{}
	_ Store = (*store.DB)(nil)
)

func (s mortalStore) OpenRows(ctx context.Context, l journal.Lane, n int) ([]journal.Outgoing, error) {
	if s.f.isDead() {
		return nil, errDead
	}
	return s.DB.OpenRows(ctx, l, n)
}

func (s mortalStore) BeginSend(ctx context.Context, o journal.Outgoing) (journal.Outgoing, error) {
	return mortal(s.f, func() (journal.Outgoing, error) { return s.DB.BeginSend(ctx, o) })
}

func (s mortalStore) EndSend(ctx context.Context, o journal.Outcome) error {
	_, err := mortal(s.f, func() (int, error) { return 0, s.DB.EndSend(ctx, o) })
	return err
}

func (s mortalStore) Echo(ctx context.Context, platform, bot, nonce, id string) (journal.Lane, bool, error) {
	if s.f.isDead() {
		return journal.Lane{}, false, errDead
	}
	return s.DB.Echo(ctx, platform, bot, nonce, id)
}

func (s mortalStore) Plan(ctx context.Context, p journal.Plan) error {
	_, err := mortal(s.f, func() (int, error) { return 0, s.DB.Plan(ctx, p) })
	return err
}

// mortalPlatform is a platform seen from a process that may die.
type mortalPlatform struct {
	p Platform
	f *fuse
}

func (m mortalPlatform) Create(ctx context.Context, c Call) (string, error) {
	return mortal(m.f, func() (string, error) { return m.p.Create(ctx, c) })
}

func (m mortalPlatform) Edit(ctx context.Context, c Call) error { return m.do(ctx, c, m.p.Edit) }

func (m mortalPlatform) Delete(ctx context.Context, c Call) error { return m.do(ctx, c, m.p.Delete) }

func (m mortalPlatform) React(ctx context.Context, c Call) error { return m.do(ctx, c, m.p.React) }

func (m mortalPlatform) Unreact(ctx context.Context, c Call) error { return m.do(ctx, c, m.p.Unreact) }

func (m mortalPlatform) do(ctx context.Context, c Call, work func(context.Context, Call) error) error {
	_, err := mortal(m.f, func() (int, error) { return 0, work(ctx, c) })
	return err
}

func (m mortalPlatform) Find(ctx context.Context, q Probe) (string, Verdict, error) {
	id, err := mortal(m.f, func() (string, error) {
		id, _, err := m.p.Find(ctx, q)
		return id, err
	})
	return id, verdict(id), err
}

func (m mortalPlatform) Answers(ctx context.Context) bool { return m.p.Answers(ctx) }

// home is a place on disk in which processes live one after the other.
type home struct {
	t        testing.TB
	path     string
	db       *store.DB
	platform *platform
	options  Options
	engine   *Engine
	planner  *planner
	fuse     *fuse
	end      func()
	deaths   int
	living   atomic.Pointer[Engine] // for those who do not wait for births and deaths
}

func newHome(t testing.TB, p *platform, o Options) *home {
	h := &home{t: t, path: filepath.Join(memory(t), "chorus.db"), platform: p, options: o}
	storetest.Fresh(t, h.path)
	return h
}

// memory is a folder whose files need no disk, where there is one: every end of a process
// waits for the disk otherwise, hundreds of times.
func memory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "outbox")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start opens the store and lets a process live for so many steps.
func (h *home) start(steps int) {
	db, err := store.Open(context.Background(), store.Options{Path: h.path})
	if err != nil {
		h.t.Fatal(err)
	}
	h.db, h.fuse = db, newFuse(steps)
	o := h.options
	o.Store, o.Platform, o.Name, o.Bot = mortalStore{db, h.fuse}, mortalPlatform{h.platform, h.fuse}, "talk", "one"
	h.engine = New(o)
	h.living.Store(h.engine)
	h.planner = &planner{db: mortalStore{db, h.fuse}, wake: h.engine.Wake, news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = h.engine.Run(ctx) })
	wg.Go(func() { h.planner.run(ctx) })
	h.end = func() {
		cancel()
		wg.Wait()
		if failed != nil && !errors.Is(failed, errDead) {
			h.t.Error(failed)
		}
		if err := db.Close(); err != nil {
			h.t.Error(err)
		}
	}
}

// revive starts the next process if this one has died.
func (h *home) revive(steps int) bool {
	if !h.fuse.isDead() {
		return false
	}
	h.deaths++
	h.end()
	h.start(steps)
	return true
}

// say writes an event into the journal and rings.
func (h *home) say(thread chat.ThreadID, text string) {
	_, err := h.db.Commit(context.Background(), journal.Commit{Thread: thread, Create: &journal.Thread{},
		Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks(text)}}}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.planner.look()
}

// idle reports whether there is nothing left to do.
func (h *home) idle() bool {
	lanes, err := h.db.OpenLanes(context.Background(), "talk", "one")
	if err != nil {
		h.t.Fatal(err)
	}
	behind, _, err := h.db.BehindSince(context.Background(), plannerName, "talk", 0, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(lanes)+len(behind) == 0
}

// settle waits until there is nothing left to do.
func (h *home) settle() error {
	for range 600 {
		if h.idle() {
			h.platform.late.Wait()
			if h.idle() {
				return nil
			}
		}
		time.Sleep(time.Second)
	}
	rows, err := h.db.OutgoingFor(context.Background(), store.OutFilter{})
	return errors.Join(err, fmt.Errorf("after ten minutes there is still something to do: %+v", rows))
}

// told is one event. "channel key word flags" adds a word to the message with that key, so
// that the text of a message is the history of its events: one that is lost or folded twice
// shows. "!" makes it final, "-" takes it away; "channel key ~sign" puts a reaction on it
// and "~-sign" takes it off.
func told(texts map[string]string, line string) journal.Desired {
	f := strings.Fields(line)
	d := journal.Desired{Lane: laneOf(f[0]), Key: f[1]}
	if sign, ok := strings.CutPrefix(f[2], "~"); ok {
		sign, d.Gone = strings.CutPrefix(sign, "-")
		d.Thing, d.TargetKey, d.Key, d.Body = journal.Reaction, f[1], f[1]+"~"+sign, quoted(sign)
		return d
	}
	if f[2] == "-" {
		d.Gone = true
		return d
	}
	word, final := strings.CutSuffix(f[2], "!")
	name := f[0] + "/" + f[1]
	if texts[name] == "" {
		texts[name] = f[1] + ":"
	}
	texts[name] += " " + word
	d.Body, d.Final = quoted(texts[name]), final
	return d
}
