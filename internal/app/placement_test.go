package app

import (
	"errors"
	"os"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store/storetest"
)

// A thread runs where its folder is: on its own node, or where the folder is too. When its node is gone it waits and says for whom, until
// another node gets the label.
func TestThreadsRunWhereTheirFilesAre(t *testing.T) {
	t.Parallel()
	home, dir := storetest.FreshHome(t), t.TempDir()
	a, b := openAmong(t, home, "berlin", true), openAmong(t, home, "oslo", true)
	if err := a.member.Join("test", "berlin", ""); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	thread := chat.ThreadID("web:ada:one@chorus")
	said := chat.Event{Thread: thread, Body: chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}, Platform: "local", PlatformID: "1"}
	if _, err := a.DB.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{Dir: dir}, Events: []chat.Event{said}}); err != nil {
		t.Fatal(err)
	}
	row, err := b.DB.Thread(ctx, thread)
	if err != nil || row.Placement != "berlin" {
		t.Fatalf("%+v, %v", row, err)
	}
	if err := errors.Join(a.here()(row), b.here()(row)); err != nil {
		t.Errorf("both have the folder: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := a.here()(row); err != nil {
		t.Errorf("its own node: %v", err)
	}
	polltest.Until(t, "oslo has seen berlin", func() bool { return errors.Is(b.here()(row), engine.ErrElsewhere) })
	if err := a.member.Leave(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "oslo knows that berlin is gone", func() bool {
		err := b.here()(row)
		return err != nil && strings.Contains(err.Error(), "waits for node berlin")
	})
	if _, err := operations.LabelNode.Call(ctx, b.Service.Operations(), admin(b), operations.NodeLabels{Name: "oslo", Add: []string{"berlin"}}); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "oslo goes on with it", func() bool { return b.here()(row) == nil })
}
