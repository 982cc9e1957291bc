package chaos

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chorus/internal/polltest"
)

// served is the real server on a home of its own, with what it has acknowledged.
type served struct {
	*crashSite
	url, token string
	env        []string
	http       *http.Client // how it is asked; nil: as everybody does
	process    *exec.Cmd
	ended      chan struct{}
	log        *notes // what it said on its standard error since the last start

	sessions []string
	acked    map[string]string // by word: the session it was said in
	words    int
}

// notes are what a process says while it is read.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// newServed makes a home for a server; dir: where, "" for a folder of its own.
func newServed(t testing.TB, dir string) *served {
	t.Helper()
	s := &served{crashSite: newSite(t, ""), acked: map[string]string{}}
	if dir != "" {
		s.home = dir
	}
	s.sandbox = "host"
	for name, text := range map[string]string{"config/shared.yaml": "permissions: open\nsandbox: host\nmaxQueuedReplies: 50\n"} {
		path := filepath.Join(s.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.kill)
	return s
}

// launch starts the server and reports whether it listens; one that refuses to start has ended.
func (s *served) launch() bool {
	s.t.Helper()
	cmd := s.command(context.Background(), append([]string{"CHORUS_LOG_STDERR=on"}, s.env...), "serve", "--addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = &notes{}
	cmd.Stderr = s.log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.process, s.ended = cmd, make(chan struct{})
	line, _ := bufio.NewReader(out).ReadString('\n')
	go func(ended chan struct{}) {
		defer close(ended)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it is killed
	}(s.ended)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		<-s.ended
		s.process = nil
		return false
	}
	token, err := os.ReadFile(filepath.Join(s.home, "token"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.url, s.token = url, strings.TrimSpace(string(token))
	return true
}

// start is launch of a server that must start.
func (s *served) start() {
	s.t.Helper()
	if !s.launch() {
		s.t.Fatalf("the server did not start:\n%s", s.log)
	}
}

func (s *served) kill() { s.end(syscall.SIGKILL) }

func (s *served) stop() { s.end(syscall.SIGTERM) }

func (s *served) end(signal syscall.Signal) {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(signal) // it may be gone
	<-s.ended
	s.process = nil
}

// call sends a request with more headers, each a name and a value; status 0: nobody answered.
func (s *served) call(method, path string, body any, headers ...string) (status int, answer string) {
	s.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	req.Close = true // a killed server leaves nothing behind that the next one is asked through
	res, err := cmp.Or(s.http, http.DefaultClient).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil && method == http.MethodGet { // the server was killed in the middle of it; of a change, what came counts
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

// session makes a session of its own.
func (s *served) session() string {
	s.t.Helper()
	status, text := s.call("POST", "/api/sessions", map[string]string{"model": "demo/script", "workspacePath": s.repo})
	var made struct{ SessionID string }
	if status != http.StatusCreated || json.Unmarshal([]byte(text), &made) != nil {
		s.t.Fatalf("no session: %d %s", status, text)
	}
	s.sessions = append(s.sessions, made.SessionID)
	return made.SessionID
}

// say has the agent leave a trace of its own for each message, and remembers what was acknowledged.
func (s *served) say(session, more string) (status int, text string) {
	s.t.Helper()
	s.words++
	word := fmt.Sprintf("word-%d;", s.words)
	status, text = s.call("POST", "/api/sessions/"+session+"/chat", map[string]string{
		"message": fmt.Sprintf("%s%s\n!call bash {\"command\":\"echo %s >> effects.txt\"}\n!---\n!say answer to %s\n", more, word, word, word)})
	if status == http.StatusAccepted {
		s.acked[word] = session
	}
	return status, text
}

// mustSay is say where it must be taken.
func (s *served) mustSay(session string) {
	s.t.Helper()
	if status, text := s.say(session, ""); status != http.StatusAccepted {
		s.t.Fatalf("a message was refused: %d %s\n%s", status, text, s.log)
	}
}

// ready asks /readyz.
func (s *served) ready() (int, string) { return s.call("GET", "/readyz", nil) }

// refused waits until the server says that it takes nothing, with a status and a sentence.
func (s *served) refused(status int, says string) {
	s.t.Helper()
	var got int
	var text string
	if !polltest.Soon(func() bool { got, text = s.ready(); return got == status && strings.Contains(text, says) }) {
		s.t.Fatalf("/readyz says %d %s, want %d %q\n%s", got, text, status, says, s.log)
	}
}

// told reads the stream of a session until it tells of trouble.
func (s *served) told(session, says string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/sessions/"+session+"/stream", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		if text := lines.Text(); strings.Contains(text, "trouble") && strings.Contains(text, says) {
			return
		}
	}
	s.t.Fatalf("the stream never told of %q: %v", says, lines.Err())
}

// events are the kinds and bodies of a session's journal.
func (s *served) journal(session string) (all []event) {
	s.t.Helper()
	for after := int64(0); ; {
		status, text := s.call("GET", fmt.Sprintf("/api/sessions/%s/events?after=%d&limit=500", session, after), nil)
		var page struct{ Items []event }
		if status != http.StatusOK || json.Unmarshal([]byte(text), &page) != nil {
			s.t.Fatalf("no events: %d %s", status, text)
		}
		if len(page.Items) == 0 {
			return all
		}
		all = append(all, page.Items...)
		after = all[len(all)-1].Seq
	}
}

type event struct {
	Seq  int64
	Kind string
	Body json.RawMessage
}

// settle waits until no run is on and nothing waits.
func (s *served) settle() {
	s.t.Helper()
	deadline := time.Now().Add(atMost)
	for _, id := range s.sessions {
		for {
			status, text := s.call("GET", "/api/sessions/"+id, nil)
			var row struct {
				Status string
				Queue  int
			}
			if status == http.StatusOK && json.Unmarshal([]byte(text), &row) == nil && row.Status != "running" && row.Queue == 0 {
				break
			}
			if time.Now().After(deadline) {
				s.t.Fatalf("session %s does not come to rest: %d %s\n%s", id, status, text, s.log)
			}
			time.Sleep(50 * time.Millisecond) // between two looks
		}
	}
}

// look holds what is there against what was acknowledged: every message is in the journal once, no
// effect happened twice, and each message was answered, or its run says why it was not.
func (s *served) look() {
	s.t.Helper()
	received, answered, ended := map[string]int{}, map[string]int{}, map[string]int{}
	for _, id := range s.sessions {
		for n, ev := range s.journal(id) {
			if ev.Seq != int64(n+1) {
				s.t.Fatalf("session %s has event %d as number %d", id, ev.Seq, n+1)
			}
			for word, session := range s.acked {
				if session != id || !strings.Contains(string(ev.Body), word) {
					continue
				}
				switch ev.Kind {
				case "received":
					received[word]++
				case "said":
					if strings.Contains(string(ev.Body), "answer to "+word) {
						answered[word]++
					}
				}
			}
			if ev.Kind == "run_ended" && !strings.Contains(string(ev.Body), `"done"`) {
				ended[id]++
			}
		}
	}
	effects, _ := os.ReadFile(filepath.Join(s.repo, "effects.txt"))
	lost := map[string]int{}
	for word, session := range s.acked {
		if received[word] != 1 {
			s.t.Errorf("%s was acknowledged and is in the journal %d times", word, received[word])
		}
		if n := strings.Count(string(effects), word); n > 1 {
			s.t.Errorf("the effect of %s happened %d times", word, n)
		}
		switch {
		case answered[word] > 1:
			s.t.Errorf("%s was answered %d times", word, answered[word])
		case answered[word] == 0:
			lost[session]++
		}
	}
	for session, n := range lost {
		if n > ended[session] {
			s.t.Errorf("%d messages of session %s have no answer, and only %d runs say why", n, session, ended[session])
		}
	}
}

// doctor runs it and gives what it says.
func (s *served) doctor(args ...string) (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	out, err := s.command(ctx, s.env, append([]string{"doctor"}, args...)...).CombinedOutput()
	return string(out), err
}
