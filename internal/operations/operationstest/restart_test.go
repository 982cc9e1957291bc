package operationstest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/app"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/store/storetest"
	"chorus/internal/transport/repl/local"
)

var (
	root = holder("root", operation.Admin)
	ada  = holder("ada", operation.Chat, operation.Approve)
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// until watches a session up to an object.
func until(t *testing.T, s operation.Executor, by operation.Caller, id string, after int64, last func(feed.Item) bool) []feed.Item {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var seen []feed.Item
	for item, err := range operations.Watch.Follow(ctx, s, by, operations.WatchRequest{ID: id, After: after}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, item); last(item) {
			return seen
		}
	}
	t.Fatalf("the watch ended after %d objects", len(seen))
	return nil
}

func terminal(it feed.Item) bool { return it.Header().Type.Terminal() }

func isType(want feed.Type) func(feed.Item) bool {
	return func(it feed.Item) bool { return it.Header().Type == want }
}

// TestWishesHoldAfterARestart: what was asked for when a session was made, and the
// question it stands at, are there for the next process.
func TestWishesHoldAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, dir)
	made := must[operations.CreatedSession](t)(operations.CreateSession.Call(t.Context(), a.Service.Operations(), ada, operations.NewSession{Model: "demo/script", Mode: "implement", Permissions: "standard", MaxIterations: 7})).Session
	must[operations.Said](t)(operations.Say.Call(t.Context(), a.Service.Operations(), ada, operations.Message{ID: made.ID, Message: "!call bash {\"command\":\"echo yes\"}\n!end\n!say {{last}}"}))
	until(t, a.Service.Operations(), ada, made.ID, 0, isType(feed.TypeApprovalRequired))
	ended(t, a)

	a = open(t, dir)
	defer ended(t, a)
	now := must[operations.Session](t)(operations.GetSession.Call(t.Context(), a.Service.Operations(), ada, operations.SessionRef{ID: made.ID}))
	if now.Status != "waiting" || now.Mode != "implement" || now.Model != "script" || now.Permissions != "standard" {
		t.Errorf("%+v", now)
	}
	list := must[operation.List[operations.Approval]](t)(operations.ListApprovals.Call(t.Context(), a.Service.Operations(), ada, operations.ApprovalQuery{}))
	if len(list.Items) != 1 || time.Until(list.Items[0].Deadline) < 23*time.Hour {
		t.Fatalf("%+v", list.Items)
	}
	must[operations.Approval](t)(operations.AnswerApproval.Call(t.Context(), a.Service.Operations(), ada, operations.Answer{ID: list.Items[0].ID, Approved: true}))
	seen := until(t, a.Service.Operations(), ada, made.ID, 0, terminal)
	for _, it := range seen {
		if run, ok := it.(feed.RunStarted); ok && (run.MaxIterations != 7 || run.Mode != "implement") {
			t.Errorf("%+v", run)
		}
	}
	if end, ok := seen[len(seen)-1].(feed.Completed); !ok || end.StopReason != "done" {
		t.Errorf("%+v", seen[len(seen)-1])
	}
}

// TestTerminalThreads: a terminal's thread is let alone until somebody speaks to it
// over HTTP, and then what is said there is the server's.
func TestTerminalThreads(t *testing.T) {
	t.Parallel()
	dir, repo := storetest.FreshHome(t), t.TempDir()
	first := open(t, dir)
	at := must[*local.Session](t)(first.Sessions.OpenSession(t.Context(), runsetup.SessionOptions{Dir: repo, Model: "demo/script", Once: true}))
	got, err := at.Send(t.Context(), "!say from the terminal")
	if err != nil {
		t.Fatal(err)
	}
	until(t, first.Service.Operations(), root, at.ID(), got.Seq, terminal)
	id := at.ID()
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	ended(t, first)

	a := open(t, dir)
	defer ended(t, a)
	s := a.Service.Operations()
	if _, err := operations.GetSession.Call(t.Context(), s, ada, operations.SessionRef{ID: id}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("Ada sees a terminal's thread: %v", err)
	}
	said := must[operations.Said](t)(operations.Say.Call(t.Context(), s, root, operations.Message{ID: id, Message: "!say over HTTP"}))
	seen := until(t, s, root, id, said.Seq, terminal)
	if end, ok := seen[len(seen)-1].(feed.Completed); !ok || end.StopReason != "done" {
		t.Errorf("%+v", seen[len(seen)-1])
	}
}

// TestSameBytesAsTheTerminal: what a stream carries is what `chorus run --json` prints.
func TestSameBytesAsTheTerminal(t *testing.T) {
	t.Parallel()
	a := open(t, storetest.FreshHome(t))
	defer ended(t, a)
	at := must[*local.Session](t)(a.Sessions.OpenSession(t.Context(), runsetup.SessionOptions{Dir: t.TempDir(), Model: "demo/script", Once: true}))
	defer at.Close()
	got, err := at.Send(t.Context(), "!think hm\n!say <b>looking</b>\n!call list_files {}\n!call read {\"path\":\"none\"}\n!end\n!say done & over")
	if err != nil {
		t.Fatal(err)
	}
	seen := until(t, a.Service.Operations(), root, at.ID(), 0, terminal)
	last := seen[len(seen)-1].Header().Seq
	var want []string
	calls := feed.Calls{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for item, err := range at.Watch(ctx, got.Seq-1) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		calls.Note(*item.Event)
		for _, it := range feed.Translate(*item.Event, feed.Options{Label: at.Label, Args: calls.Args, Model: at.Info().Model}) {
			want = append(want, string(must[[]byte](t)(feed.Encode(it))))
		}
		if item.Event.Seq == last {
			break
		}
	}
	var have []string
	for _, it := range seen {
		if it.Header().Seq > 0 {
			have = append(have, string(must[[]byte](t)(feed.Encode(it))))
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("the stream has\n%s\nthe terminal\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// TestSecretsStayInside: what looks like a key is shown nowhere.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOP"
	a := open(t, storetest.FreshHome(t))
	defer ended(t, a)
	s := a.Service.Operations()
	made := must[operations.CreatedSession](t)(operations.CreateSession.Call(t.Context(), s, ada, operations.NewSession{Model: "demo/script"})).Session
	must[operations.Said](t)(operations.Say.Call(t.Context(), s, ada, operations.Message{ID: made.ID, Message: "!say the key is " + key}))
	shown := fmt.Sprintf("%+v", until(t, s, ada, made.ID, 0, terminal))
	for _, ev := range must[operation.List[operations.RawEvent]](t)(operations.Events.Call(t.Context(), s, ada, operations.EventQuery{ID: made.ID})).Items {
		shown += string(ev.Body)
	}
	shown += fmt.Sprintf("%+v", must[operation.List[feed.Item]](t)(operations.Messages.Call(t.Context(), s, ada, operations.EventRange{ID: made.ID})).Items)
	shown += fmt.Sprintf("%+v", must[operation.List[operations.Request]](t)(operations.Requests.Call(t.Context(), s, ada, operations.EventRange{ID: made.ID})).Items)
	shown += fmt.Sprintf("%+v", must[operation.List[operations.Hit]](t)(operations.Search.Call(t.Context(), s, ada, operations.SearchQuery{Text: "key"})).Items)
	shown += fmt.Sprintf("%+v", must[operations.Session](t)(operations.GetSession.Call(t.Context(), s, ada, operations.SessionRef{ID: made.ID})))
	if i := strings.Index(shown, key[:30]); i >= 0 {
		t.Errorf("…%s…", shown[max(0, i-80):i+40])
	}
}

// TestIdleSessionsCostNothing: hundreds of sessions are rows and nothing else, and an
// overview of them is quick. Not beside other tests: it counts goroutines.
func TestIdleSessionsCostNothing(t *testing.T) {
	a := open(t, storetest.FreshHome(t))
	defer ended(t, a)
	s := a.Service.Operations()
	before := runtime.NumGoroutine()
	for range 300 {
		must[operations.CreatedSession](t)(operations.CreateSession.Call(t.Context(), s, ada, operations.NewSession{Model: "demo/echo"}))
	}
	// The database's own go a moment after each question; sessions would be hundreds.
	if after := runtime.NumGoroutine(); after > before+150 {
		t.Errorf("%d goroutines before, %d with hundreds of sessions", before, after)
	}
	best := time.Hour
	for range 5 { // the machine may be busy: the quickest counts
		began := time.Now()
		if over := must[operations.Overview](t)(operations.GetOverview.Call(t.Context(), s, ada, operation.None{})); len(over.Recent) == 0 {
			t.Error("nothing is recent")
		}
		best = min(best, time.Since(began))
	}
	if best > 2*time.Second {
		t.Errorf("an overview of them took %v", best)
	}
}

// TestServeTellsTheServiceManager: ready when it listens, stopping when it is told to;
// streams end, and the run goes on at the next start.
func TestServeTellsTheServiceManager(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(t.TempDir(), "n")
	conn := must[*net.UnixConn](t)(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}))
	defer conn.Close()
	env := map[string]string{"USER": "ada", "HOME": dir, "NOTIFY_SOCKET": socket}
	a := must[*app.App](t)(app.Open(t.Context(), app.Options{Env: func(key string) string { return env[key] }, Environ: []string{"PATH=/usr/bin:/bin"}, Home: dir}))
	made := must[operations.CreatedSession](t)(operations.CreateSession.Call(t.Context(), a.Service.Operations(), ada, operations.NewSession{Model: "demo/script"})).Session
	must[operations.Said](t)(operations.Say.Call(t.Context(), a.Service.Operations(), ada, operations.Message{ID: made.ID, Message: "!say begun\n!wait"}))
	until(t, a.Service.Operations(), ada, made.ID, 0, isType(feed.TypeTextDelta))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served, ready := make(chan error, 1), make(chan string, 1)
	go func() {
		served <- a.Serve(ctx, app.ServeOptions{Addr: "127.0.0.1:0", Ready: func(url, _ string) { ready <- url }})
	}()
	read := func() string {
		buf := make([]byte, 1000)
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if got := read(); !strings.HasPrefix(got, "READY=1\nSTATUS=listening on "+<-ready) {
		t.Errorf("%q", got)
	}
	streaming, streamed := make(chan struct{}), make(chan error, 1)
	go func() {
		var begun sync.Once
		for _, err := range operations.Watch.Follow(t.Context(), a.Service.Operations(), ada, operations.WatchRequest{ID: made.ID, After: 0}) {
			begun.Do(func() { close(streaming) })
			if err != nil {
				streamed <- err
				return
			}
		}
		streamed <- nil
	}()
	<-streaming // one that only asks for it now may be told that it is too late
	cancel()
	if got := read(); !strings.HasPrefix(got, "STOPPING=1") {
		t.Errorf("%q", got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-streamed; err != nil {
		t.Error(err)
	}
	ended(t, a)
	a = open(t, dir)
	defer ended(t, a)
	until(t, a.Service.Operations(), ada, made.ID, 0, isType(feed.TypeTextDelta))
	if now := must[operations.Session](t)(operations.GetSession.Call(t.Context(), a.Service.Operations(), ada, operations.SessionRef{ID: made.ID})); now.Status != "running" {
		t.Errorf("%+v", now)
	}
}

// TestToolsArePutAway: sessions that nobody talks to any more do not keep their
// directories open.
func TestToolsArePutAway(t *testing.T) {
	t.Parallel()
	dir := storetest.FreshHome(t)
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(`{"idleTimeoutMs": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := open(t, dir)
	defer ended(t, a)
	s := a.Service.Operations()
	const many = 90
	for range many {
		made := must[operations.CreatedSession](t)(operations.CreateSession.Call(t.Context(), s, ada, operations.NewSession{Model: "demo/script"})).Session
		must[operations.Said](t)(operations.Say.Call(t.Context(), s, ada, operations.Message{ID: made.ID, Message: "!call list_files {}"}))
		until(t, s, ada, made.ID, 0, terminal)
	}
	held := 0
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("what is open cannot be seen here")
	}
	for _, entry := range list {
		if at, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); err == nil && strings.HasPrefix(at, dir) && strings.HasSuffix(at, "/scratch") {
			held++
		}
	}
	if held == 0 || held > 70 {
		t.Errorf("%d of %d directories are open", held, many)
	}
}
