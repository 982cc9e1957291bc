package engine_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/store"
	"chorus/internal/tool"
)

// Another process holds the database and does not let go: whoever watches a run is told,
// whoever says something is told, neither waits for ever, and once it is let go the run
// ends and the next message is answered.
func TestAHeldDatabase(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	slow := &fakeTool{spec: tool.Spec{Name: "act", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}, run: func(ctx context.Context, _ []byte) (tool.Result, error) {
		close(began)
		select {
		case <-goOn:
			return tool.OK("did it"), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}}
	r := newRig(t, slow)
	r.close()
	path := filepath.Join(r.dir, "chorus.db")
	db, err := store.Open(context.Background(), store.Options{Path: path, BlobDir: filepath.Join(r.dir, "blobs"), MaxWait: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r.db = db
	r.start()

	r.say("!call act {}\n!---\n!say {{last}}")
	<-began
	letGo := holdWrites(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := make(chan error, 1)
	go func() {
		for _, err := range r.engine.Watch(ctx, thread, 0) {
			if err != nil {
				told <- err
				return
			}
		}
		told <- nil
	}()
	close(goOn) // each try is told, so it does not matter which one is heard first
	if err := <-told; err == nil || !strings.Contains(err.Error(), "locked by another process") {
		t.Errorf("whoever watches is told %v", err)
	}
	_, err = r.engine.Deliver(ctx, chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: ada, Blocks: chat.TextBlocks("and?"), Prompt: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "locked by another process") {
		t.Errorf("whoever says something is told %v", err)
	}
	letGo()
	for ended := false; !ended; { // a try that began before may still be told
		for item, err := range r.engine.Watch(ctx, thread, 0) {
			if err != nil && !strings.Contains(err.Error(), "locked by another process") {
				t.Fatal(err)
			}
			if item.Event != nil && item.Event.Body.Kind() == chat.KindRunEnded {
				ended = true
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatal("the run does not end")
		}
	}
	r.say("!say still here")
	if events := r.untilEnds(2); !strings.Contains(show(events), "still here") {
		t.Errorf("the next message:\n%s", show(events))
	}
}

// holdWrites holds the right to write until letGo, as another process would.
func holdWrites(t *testing.T, path string) (letGo func()) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"PRAGMA busy_timeout = 20000", "BEGIN IMMEDIATE"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}
