//go:build linux

package watch_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"chorus/internal/background"
	"chorus/internal/background/watch"
	"chorus/internal/chat"
	"chorus/internal/polltest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/keep"
	"chorus/internal/store"
	"chorus/internal/store/processes"
	"chorus/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == keep.Arg {
		if keep.Main(os.Args[2], os.Stdin, os.Stdout, nil) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// home is what outlives a server.
type home struct {
	t   *testing.T
	db  *processes.Store
	dir string
	id  string // of its process: what it starts is found by it
	mu  sync.Mutex
	did []string // what hooks did, by key: as a journal with its arrivals has it
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir := storetest.FreshHome(t)
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "chorus.db"), BlobDir: filepath.Join(dir, "blobs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &home{t: t, db: processes.New(db), dir: filepath.Join(dir, "processes"), id: rand.Text()}
}

// act does what a hook says, once for a key.
func (h *home) act(_ context.Context, p background.Process, f background.Fire, output string) (watch.Acted, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := string(f.Rule.Do) + " " + f.Key() + " " + string(p.State) + " " + output
	for _, before := range h.did {
		if before == key {
			return watch.Acted{}, nil
		}
	}
	h.did = append(h.did, key)
	return watch.Acted{Seq: 1}, nil
}

func (h *home) done() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.did, "|")
}

// server is a watcher; with a store of its own it can fail where a server would be killed.
func (h *home) server(s watch.Store) *watch.Watcher {
	return &watch.Watcher{Store: s, Dir: h.dir, Environ: os.Environ(), Act: h.act, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

// serve runs a server until the function that it returns is called.
func (h *home) serve(w *watch.Watcher) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	return func() { cancel(); <-done }
}

var ada = chat.Principal{Kind: chat.LocalUser, ID: "ada"}

func (h *home) start(w *watch.Watcher, owner chat.Principal, shell string, rules ...background.Rule) (background.Process, error) {
	h.t.Helper()
	p := background.Process{ID: h.id, Thread: "web:local/ada:1@main", Owner: owner, Command: shell, Dir: h.t.TempDir()}
	for _, r := range rules {
		checked, err := r.Checked()
		if err != nil {
			h.t.Fatal(err)
		}
		p.Hooks = append(p.Hooks, background.Hook{Rule: checked})
	}
	return w.Start(h.t.Context(), p, sandbox.Background{Shell: shell, Dir: p.Dir, Call: watch.Call(p.ID)})
}

func (h *home) over() background.Process {
	h.t.Helper()
	var p background.Process
	polltest.Until(h.t, "the process is over", func() bool {
		var err error
		if p, err = h.db.Process(h.t.Context(), h.id); err != nil {
			h.t.Fatal(err)
		}
		return p.Over()
	})
	return p
}

var say = background.Rule{On: background.OnExit, Do: background.InjectContext}

func TestEndAndHooks(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.server(h.db)
	stop := h.serve(w)
	defer stop()
	zero := 0
	if _, err := h.start(w, ada, "echo one; echo two; sleep 0.5; exit 3", say, background.Rule{On: background.OnOutput, Pattern: "^two$", Do: background.NotifyChannel, Delay: &zero}); err != nil {
		t.Fatal(err)
	}
	if p := h.over(); p.State != background.Exited || p.Exit != 3 || p.Hooks[0].Fires != 1 || p.Hooks[1].Fires != 1 {
		t.Errorf("%+v", p)
	}
	if got := h.done(); got != "notify_channel output/1/1 running one\ntwo|inject_context exit/0/1 exited one\ntwo" {
		t.Errorf("%q", got)
	}
	if fires, err := h.db.ProcessFires(t.Context(), h.id, 10); err != nil || len(fires) != 2 || fires[0].State != background.Done {
		t.Errorf("%+v %v", fires, err)
	}
}

var errKilled = errors.New("the server was killed")

// killed is a store of a server that is killed before or after it writes about a process for the n-th time.
type killed struct {
	watch.Store
	left   int
	before bool
	died   atomic.Int64 // how often it was killed
}

func (k *killed) MoveProcess(ctx context.Context, p background.Process, fired []background.Fired) (bool, error) {
	k.left--
	if k.left <= 0 {
		defer k.died.Add(1)
	}
	if k.left < 0 || k.left == 0 && k.before {
		return false, errKilled
	}
	moved, err := k.Store.MoveProcess(ctx, p, fired)
	if k.left == 0 {
		err = errKilled
	}
	return moved, err
}

// A server is killed at each step: while it starts a process, and while it writes how it ended, before and after. The next one takes
// over, and what the hook does is done once.
func TestTheServerIsKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]*killed{"keeper up, row starting": {left: 1, before: true}, "started": {left: 1}, "hook acted, nothing written": {left: 2, before: true}, "end written": {left: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			dead.Store = h.db
			first := h.server(dead)
			if _, err := h.start(first, ada, "echo up; sleep 0.4; exit 3", say); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			stop := h.serve(first)
			row := func() background.Process {
				p, err := h.db.Process(t.Context(), h.id)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			polltest.Until(t, "the process has ended", func() bool { alive, err := keep.Alive(first.Folder(h.id)); return err == nil && !alive })
			before := dead.died.Load()
			polltest.Until(t, "the first server saw it", func() bool { return row().Over() || dead.died.Load() > before })
			stop()
			stop = h.serve(h.server(h.db))
			p := h.over()
			stop()
			for range 3 { // a storm of restarts
				h.serve(h.server(h.db))()
			}
			if p.State != background.Exited || p.Exit != 3 || p.Hooks[0].Fires != 1 || h.done() != "inject_context exit/0/1 exited up" {
				t.Errorf("%+v, %q", p, h.done())
			}
		})
	}
}

// The keeper is killed while no server runs: the process is lost, honestly, and its hooks act once.
func TestLost(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first := h.server(h.db)
	if _, err := h.start(first, ada, "echo up; sleep 60", say); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "it has printed something", func() bool { out, err := first.Tail(h.id, 100, 1); return err == nil && out == "up" })
	status, err := keep.ReadStatus(filepath.Join(h.dir, h.id))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(status.Keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// In this test the first server's claim is still held by this very process; a killed one holds nothing.
	if err := os.Remove(filepath.Join(h.dir, h.id, "watch")); err != nil {
		t.Fatal(err)
	}
	stop := h.serve(h.server(h.db))
	defer stop()
	if p := h.over(); p.State != background.Lost || p.Why == "" || h.done() != "inject_context exit/0/1 lost up" {
		t.Errorf("%+v %q", p, h.done())
	}
}

// A hook that starts what has a hook comes to an end: the chain of those who act for each other is as long as it may be.
func TestDepthIsHeld(t *testing.T) {
	t.Parallel()
	owner := ada
	for depth := 1; depth <= background.MaxDepth+1; depth++ {
		h := newHome(t)
		w := h.server(h.db)
		stop := h.serve(w)
		p, err := h.start(w, owner, "true", say)
		if err != nil {
			t.Fatal(err)
		}
		h.over()
		stop()
		if acted := h.done() != ""; acted != (depth <= background.MaxDepth) {
			t.Errorf("depth %d: %q", depth, h.done())
		}
		owner = p.Principal()
	}
}

func TestKillAndMore(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.server(h.db)
	stop := h.serve(w)
	defer stop()
	p, err := h.start(w, ada, "echo up; sleep 60", say)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddHooks(t.Context(), p.ID, []background.Rule{{On: background.OnTimeout, After: 1, Do: background.StopProcess}}); err != nil {
		t.Fatal(err)
	}
	if p := h.over(); p.State != background.Killed || p.Hooks[1].Fires != 1 || p.Why != "it was asked to end" {
		t.Errorf("%+v", p)
	}
	if _, err := w.AddHooks(t.Context(), p.ID, []background.Rule{say}); !errors.Is(err, watch.ErrHooks) {
		t.Error(err)
	}
}
