package nodestest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"chorus/internal/app"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store/pgtest"
	"chorus/internal/store/storetest"
)

func TestMain(m *testing.M) {
	// The cluster that tests share is waited for as long as the program lives.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("chorus/internal/store/pgtest.(*Cluster).Start.func1"))
}

// maxWait is how long a test waits for what must come, on a busy machine.
const maxWait = 2 * time.Minute

// node is one process of several, as far as one test program can have several.
type node struct {
	*testing.T
	app   *app.App
	url   string
	token string
	http  *http.Client
}

// never is longer than any test: a node whose sweep does not come learns of the others from notifications alone.
const never = time.Hour

// start starts a node.
func start(t *testing.T, name, home string, sweep time.Duration, env ...string) *node {
	t.Helper()
	vars := map[string]string{"USER": "ada", "HOME": home, "CHORUS_NODE": name}
	for _, pair := range env {
		key, value, _ := strings.Cut(pair, "=")
		vars[key] = value
	}
	if err := os.MkdirAll(filepath.Join(home, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config", "shared.yaml"), []byte("sandbox: host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Options{Env: func(key string) string { return vars[key] }, Environ: []string{"PATH=/usr/bin:/bin"}, Home: home, Nodes: true,
		Version: "test", Log: slog.New(slog.DiscardHandler), Sweep: sweep})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- a.Serve(ctx, app.ServeOptions{Addr: "127.0.0.1:0", Node: name, Ready: func(url, _ string) { ready <- url }})
	}()
	n := &node{T: t, app: a, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		n.http.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case n.url = <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return n
}

// call sends a request; headers are names and values in turn.
func (n *node) call(method, path string, body any, headers ...string) (int, string) {
	n.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		n.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, n.url+path, bytes.NewReader(data))
	if err != nil {
		n.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := n.http.Do(req)
	if err != nil {
		n.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.Error(err)
	}
	return resp.StatusCode, string(text)
}

// must is call with a status that it has to have.
func (n *node) must(status int, method, path string, body any, headers ...string) string {
	n.Helper()
	got, text := n.call(method, path, body, headers...)
	if got != status {
		n.Fatalf("%s %s: %d %s", method, path, got, text)
	}
	return text
}

// stream is one reader of a session's server-sent events.
type stream struct {
	t    *testing.T
	name string

	mu   sync.Mutex
	text strings.Builder
}

// watch follows a session until the test ends.
func (n *node) watch(name, session string) *stream {
	n.Helper()
	s := &stream{t: n.T, name: name}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/api/sessions/"+session+"/stream", nil)
	if err != nil {
		n.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	resp, err := n.http.Do(req)
	if err != nil {
		n.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			s.mu.Lock()
			s.text.WriteString(lines.Text() + "\n")
			s.mu.Unlock()
		}
	}()
	n.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		<-ended
	})
	return s
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until the stream has shown something.
func (s *stream) shows(what string) {
	s.t.Helper()
	if !polltest.Soon(func() bool { return strings.Contains(s.String(), what) }) {
		s.t.Fatalf("%s never showed %s:\n%s", s.name, what, s)
	}
}

// showsLive waits until the stream has shown a piece of an answer in the making.
func (s *stream) showsLive(what string) {
	s.t.Helper()
	live := func() bool {
		for line := range strings.Lines(s.String()) {
			if strings.Contains(line, `"type":"text_delta"`) && strings.Contains(line, what) {
				return true
			}
		}
		return false
	}
	if !polltest.Soon(live) {
		s.t.Fatalf("%s never showed %s live:\n%s", s.name, what, s)
	}
}

func broker(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(maxWait) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

// onEach runs a story with three nodes on each kind of database that nodes can share.
func onEach(t *testing.T, story func(t *testing.T, nodes []*node)) {
	names := []string{"berlin", "oslo", "porto"}
	three := func(t *testing.T, home func(i int) string, env ...string) []*node {
		t.Helper()
		var all []*node
		for i, name := range names {
			all = append(all, start(t, name, home(i), never, env...))
		}
		signIn(t, all)
		return all
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		home := storetest.FreshHome(t)
		story(t, three(t, func(int) string { return home }))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		story(t, three(t, func(int) string { return t.TempDir() }, "CHORUS_DATABASE_URL="+pgtest.Database(t)))
	})
	t.Run("NATS", func(t *testing.T) {
		t.Parallel()
		// Nodes do not reach each other over HTTP: what is live comes through NATS.
		story(t, three(t, func(int) string { return t.TempDir() }, "CHORUS_DATABASE_URL="+pgtest.Database(t), "CHORUS_NATS_URL="+broker(t), "CHORUS_NODE_ADDRESS=http://127.0.0.1:1"))
	})
}

// signIn gives all nodes one token, which they find in the database.
func signIn(t *testing.T, all []*node) {
	t.Helper()
	token, err := operations.CreateToken.Call(t.Context(), all[0].app.Service.Operations(), all[0].app.Service.LocalCaller(),
		operations.NewToken{Name: "test", Scopes: []operation.Scope{operation.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		n.token = token.Text
	}
}

func (n *node) session() string {
	n.Helper()
	var made struct{ SessionID string }
	if err := json.Unmarshal([]byte(n.must(http.StatusCreated, "POST", "/api/sessions", map[string]string{"model": "demo/script"})), &made); err != nil {
		n.Fatal(err)
	}
	return made.SessionID
}

// A run on one node is seen live on all, also by those who come late, and can be stopped from any.
func TestRunIsSeenOnEveryNode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, nodes []*node) {
		session := nodes[0].session()
		var streams []*stream
		for i, n := range nodes {
			streams = append(streams, n.watch(fmt.Sprintf("node %d", i), session))
			streams[i].shows(": hello")
		}
		nodes[0].must(http.StatusAccepted, "POST", "/api/sessions/"+session+"/chat", map[string]string{"message": "!say half of an answer\n!wait"})
		for _, s := range streams {
			s.showsLive("half of an answer")
			if strings.Contains(s.String(), "event: assistant_message") {
				t.Errorf("%s did not see it live:\n%s", s.name, s)
			}
		}
		late := nodes[2].watch("whoever came late", session)
		late.showsLive("half of an answer")
		nodes[1].must(http.StatusAccepted, "POST", "/api/sessions/"+session+"/abort", map[string]any{})
		for _, s := range append(streams, late) {
			s.shows("event: completed")
		}
	})
}

// A question that a run on one node asks is answered on another, and seen on all.
func TestQuestionIsAnsweredOnAnyNode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, nodes []*node) {
		session := nodes[0].session()
		stream := nodes[1].watch("another node", session)
		nodes[0].must(http.StatusAccepted, "POST", "/api/sessions/"+session+"/chat", map[string]string{"message": "!call bash {\"command\":\"echo walked\"}\n!---\n!say {{last}} home"})
		stream.shows(`event: approval`)
		var page struct {
			Items []struct{ CallID, State string }
		}
		if err := json.Unmarshal([]byte(nodes[2].must(http.StatusOK, "GET", "/api/sessions/"+session+"/approvals", nil)), &page); err != nil || len(page.Items) != 1 {
			t.Fatal(page, err)
		}
		nodes[2].must(http.StatusOK, "POST", "/api/sessions/"+session+"/approvals/"+page.Items[0].CallID, map[string]any{"approved": true})
		stream.shows(`walked home`)
		stream.shows(`event: completed`)
		if status, text := nodes[0].call("POST", "/api/sessions/"+session+"/approvals/"+page.Items[0].CallID, map[string]any{"approved": false}); status != http.StatusConflict {
			t.Errorf("a second answer on another node: %d %s", status, text)
		}
	})
}

// A request with one key, sent to every node at once, has one effect and one answer.
func TestKeysHoldOnEveryNode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, nodes []*node) {
		session := nodes[0].session()
		answers := make([]int64, len(nodes))
		var sending sync.WaitGroup
		for i, n := range nodes {
			sending.Go(func() {
				for { // whoever comes while the first is being answered is told to come again
					status, text := n.call("POST", "/api/sessions/"+session+"/chat", map[string]string{"message": "!say once"}, "Idempotency-Key", "morning-1")
					if status == http.StatusAccepted {
						var receipt struct{ Seq int64 }
						if err := json.Unmarshal([]byte(text), &receipt); err != nil {
							t.Error(err)
						}
						answers[i] = receipt.Seq
						return
					}
					if status != http.StatusConflict && status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
						t.Errorf("node %d: %d %s", i, status, text)
						return
					}
				}
			})
		}
		sending.Wait()
		for i, answer := range answers {
			if answer != answers[0] || answer == 0 {
				t.Errorf("node %d answers %d, another %d", i, answer, answers[0])
			}
		}
		stream := nodes[2].watch("the third node", session)
		stream.shows("event: completed")
		if n := strings.Count(stream.String(), "event: user_message"); n != 1 {
			t.Errorf("said %d times:\n%s", n, stream)
		}
		if status, text := nodes[1].call("POST", "/api/sessions/"+session+"/chat", map[string]string{"message": "!say another"}, "Idempotency-Key", "morning-1"); status != http.StatusUnprocessableEntity {
			t.Errorf("another message with the same key: %d %s", status, text)
		}
	})
}

// A setting that is changed on one node holds on all.
func TestSettingsReachEveryNode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, nodes []*node) {
		nodes[0].must(http.StatusOK, "PUT", "/api/settings/idleTimeoutMs", map[string]string{"value": "421734"})
		for i, n := range nodes {
			polltest.Until(t, fmt.Sprintf("node %d has it", i), func() bool {
				_, text := n.call("GET", "/api/settings", nil)
				return strings.Contains(text, "421734")
			})
		}
	})
}

// PostgreSQL is killed and comes back: what was said is there, and what is said then is seen on the other node.
func TestDatabaseComesBack(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	env := "CHORUS_DATABASE_URL=" + cluster.Database(t)
	nodes := []*node{start(t, "berlin", t.TempDir(), 0, env), start(t, "oslo", t.TempDir(), 0, env)}
	signIn(t, nodes)
	session := nodes[0].session()
	stream := nodes[1].watch("the other node", session)
	nodes[0].must(http.StatusAccepted, "POST", "/api/sessions/"+session+"/chat", map[string]string{"message": "!say before"})
	stream.shows("event: completed")
	cluster.Kill()
	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "it takes messages again", func() bool {
		status, _ := nodes[0].call("POST", "/api/sessions/"+session+"/chat", map[string]string{"message": "!say after"}, "Idempotency-Key", "after")
		return status == http.StatusAccepted
	})
	polltest.Until(t, "both were answered", func() bool { return strings.Count(stream.String(), "event: completed") == 2 })
	if n := strings.Count(stream.String(), "event: user_message"); n != 2 {
		t.Errorf("%d messages:\n%s", n, stream)
	}
}
