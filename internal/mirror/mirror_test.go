package mirror_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/mirror"
	"chorus/internal/mirror/conversation"
	"chorus/internal/mirror/session"
	"chorus/internal/mirror/toollog"
	"chorus/internal/store"
)

const thread = chat.ThreadID("cli:here:01J@helper")

// follower is one on a new home with tool files.
func follower(t *testing.T) (*mirror.Follower, string) {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "chorus.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	home, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(dir, "tools")
	return &mirror.Follower{DB: db, Home: home, Env: func(name string) string {
		if name == "TOOLS_PATH" {
			return tools
		}
		return ""
	}}, tools
}

func commit(t *testing.T, f *mirror.Follower, events int) {
	t.Helper()
	c := journal.Commit{Thread: thread, Create: &journal.Thread{}}
	for range events {
		c.Events = append(c.Events, chat.Event{At: time.Unix(1, 0), Body: chat.Received{Blocks: chat.TextBlocks("x")}})
	}
	if _, err := f.DB.(*store.DB).Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// broken refuses every event.
type broken struct{ err error }

func (broken) LastSeq() int64             { return 0 }
func (b broken) Apply([]chat.Event) error { return b.err }

// All files come to the journal's end, over several batches, and a writer that fails does
// not hold up the others.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	f, tools := follower(t)
	ctx := context.Background()
	if err := f.CatchUp(ctx, thread); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Home.ThreadDir(thread)); err == nil {
		t.Error("files for a thread in which nothing happened")
	}
	commit(t, f, 2*mirror.BatchSize+1)
	log, _, err := session.Open(filepath.Join(t.TempDir(), "s.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	refused := errors.New("refused")
	if err := f.CatchUp(ctx, thread, broken{refused}, log); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	files, err := conversation.Open(f.Home.ThreadDir(thread))
	if err != nil {
		t.Fatal(err)
	}
	agent, channel := toollog.Dir(thread)
	calls, err := toollog.Open(tools, agent, channel)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]mirror.Writer{"conversation": files, "tool files": calls, "session": log} {
		if w.LastSeq() != 2*mirror.BatchSize+1 {
			t.Errorf("%s: at event %d", name, w.LastSeq())
		}
	}
}
