package app

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/node"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/owner"
	"chorus/internal/polltest"
	"chorus/internal/schedule"
	"chorus/internal/store/storetest"
)

// held is a clock that stands still.
type heldClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *heldClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *heldClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A conversation whose node is gone, and that had a folder of its own, is moved by one of the nodes that are left, after the time that the
// configuration says; others wait.
func TestNodeIsLost(t *testing.T) {
	t.Parallel()
	home, clock := storetest.FreshHome(t), &heldClock{now: time.Now()}
	open := func(name string, env ...string) *App {
		t.Helper()
		a, err := Open(t.Context(), Options{Home: home, Nodes: true, Now: clock.Now, Env: apptest.Env(append([]string{"CHORUS_NODE", name, "USER", "tester"}, env...)...)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := a.member.Join("serve", name, ""); err != nil {
			t.Fatal(err)
		}
		a.serving.Store(true)
		return a
	}
	move := []string{"CHORUS_ON_NODE_LOST", "move"}
	lost, oslo, porto, patient := open("berlin"), open("oslo", move...), open("porto", move...), open("rome")
	ctx := t.Context()
	own, fixed := chat.ThreadID("web:ada:one@chorus"), chat.ThreadID("web:ada:two@chorus")
	rows := map[chat.ThreadID]journal.Thread{}
	for thread, dir := range map[chat.ThreadID]string{own: filepath.Join("/elsewhere", filepath.FromSlash(own.Dir()), "scratch"), fixed: "/elsewhere/work"} {
		said := chat.Event{Thread: thread, Body: chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}, Platform: "local", PlatformID: string(thread)}
		if _, err := lost.DB.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{Dir: dir}, Events: []chat.Event{said}}); err != nil {
			t.Fatal(err)
		}
		row, err := oslo.DB.Thread(ctx, thread)
		if err != nil {
			t.Fatal(err)
		}
		rows[thread] = row
	}
	if err := lost.member.Leave(); err != nil {
		t.Fatal(err)
	}
	waits := func(n *App, thread chat.ThreadID) bool {
		err := n.here()(rows[thread])
		return err != nil && strings.Contains(err.Error(), "waits for node berlin")
	}
	for _, n := range []*App{oslo, porto, patient} {
		polltest.Until(t, "it knows that berlin is gone", func() bool { return waits(n, own) && waits(n, fixed) })
	}
	clock.pass(59 * time.Second)
	if !waits(oslo, own) {
		t.Error("it was moved before its time")
	}
	clock.pass(time.Second)
	if !waits(patient, own) {
		t.Error("a node that is to wait moved it")
	}
	if err := oslo.here()(rows[own]); err != nil {
		t.Fatal(err)
	}
	if err := porto.here()(rows[own]); !errors.Is(err, engine.ErrElsewhere) {
		t.Errorf("the second node: %v", err)
	}
	for _, n := range []*App{oslo, porto, patient} {
		if !waits(n, fixed) {
			t.Error("a conversation in a folder of people was moved")
		}
	}
	row, err := porto.DB.Thread(ctx, own)
	if err != nil || row.Placement != "oslo" || row.Dir != oslo.Home.Scratch(own) {
		t.Errorf("%+v (%v)", row, err)
	}
	note, err := oslo.member.MovedNote(ctx, row.ID)
	if err != nil || !strings.Contains(note, "moved from node berlin") {
		t.Errorf("its model is told %q (%v)", note, err)
	}
	if _, err := oslo.DB.RememberOnce(ctx, node.ProjectPlace, "p1", []byte("berlin"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if node, err := patient.member.ProjectWaits(ctx, "p1"); err != nil || node != "berlin" {
		t.Errorf("a project waits for %q (%v)", node, err)
	}
	if _, err := oslo.owner.Take(ctx, owner.Bot("discord", "main")); err != nil {
		t.Fatal(err)
	}
	err = porto.Host.Announce(ctx, schedule.Target{Adapter: "discord", Channel: "1", Agent: "chorus"}, "key", "hello")
	if err == nil || !strings.Contains(err.Error(), "node oslo has it") {
		t.Errorf("a bot of another node: %v", err)
	}
	list, err := operations.ListNodes.Call(ctx, oslo.Service.Operations(), admin(oslo), operation.None{})
	if err != nil {
		t.Fatal(err)
	}
	last := list.Items[len(list.Items)-1]
	if last.Name != "berlin" || last.State != "lost" || last.Waiting != 1 {
		t.Errorf("%+v", last)
	}
}
