package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// openConfig asks nobody and uses no sandbox, like the floor.
const openConfig = `permissions: open
sandbox: host
access: {token: open}
maxToolDepth: 1000
answer: all
continuationModel: anthropic/claude-sonnet-4-5
`

// sandboxConfig asks nobody either, and has a sandbox with every program judged.
var sandboxConfig = strings.Replace(openConfig, "sandbox: host", "sandbox: bwrap", 1)

// served is a running chorus serve, reached as its clients reach it.
type served struct {
	cmd    *exec.Cmd
	base   string
	token  string
	client *http.Client
}

// serve starts a server with a data directory and a configuration of its own; more is added to its environment.
func (b *stand) serve(ctx context.Context, name, config string, more ...string) (*served, error) {
	home := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Join(home, "config"), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home, "config", "shared.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	s := &served{cmd: exec.CommandContext(ctx, b.chorus, "serve", "--home", home, "--addr", "127.0.0.1:0")}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = b.repo(), append(b.environ(), more...), os.Stderr
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 20 * time.Second
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.base = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the server: %w", err), s.cmd.Wait())
	}
	token, err := os.ReadFile(filepath.Join(home, "token"))
	s.token = strings.TrimSpace(string(token))
	// As many connections are kept as there are conversations and readers.
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadSessions}}
	return s, err
}

// stop ends the server as a service manager would; cost is what it took.
func (s *served) stop() (cost spent, err error) {
	s.client.CloseIdleConnections()
	peak, private := residentPeak(s.cmd.Process.Pid), privateOfAll(s.cmd.Process.Pid)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return spent{}, err
	}
	if err := s.cmd.Wait(); err != nil {
		return spent{}, fmt.Errorf("stop the server: %w", err)
	}
	state := s.cmd.ProcessState
	return spent{peak: float64(peak) / 1e6, private: float64(private) / 1e6, cpu: state.UserTime() + state.SystemTime()}, nil
}

// spent is what a server cost.
type spent struct {
	peak    float64 // MB resident
	talked  float64 // MB resident until all conversations had ended and nobody had read them yet; 0: not measured
	private float64 // MB at its end, with the processes that it started
	cpu     time.Duration
}

// post sends a body and reads the answer into out, which may be nil.
func (s *served) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := s.do(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// do makes a request; every status but success is an error.
func (s *served) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return resp, nil
}

// session makes a session in the repository.
func (s *served) session(ctx context.Context, dir string) (string, error) {
	var made struct{ SessionID string }
	err := s.post(ctx, "/api/sessions", map[string]any{"workspacePath": dir}, &made)
	return made.SessionID, err
}

// say sends the prompt.
func (s *served) say(ctx context.Context, session string) error {
	return s.post(ctx, "/api/sessions/"+session+"/chat", map[string]any{"message": prompt}, nil)
}

// received is what one reader of a stream got.
type received struct {
	events  int // all, previews included
	kept    int // those with a journal number
	results int
	last    int // the highest journal number
	end     string
}

// follow reads a stream from its beginning to the end of the run. begun is called once
// the stream is open.
func (s *served) follow(ctx context.Context, session string, begun func()) (h received, err error) {
	resp, err := s.do(ctx, http.MethodGet, "/api/sessions/"+session+"/stream?after=0", nil)
	begun()
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	lines := bufio.NewReaderSize(resp.Body, 4<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line is skipped below
			return h, fmt.Errorf("the stream of %s ended before its run: %w", session, err)
		}
		if err := h.line(line); err != nil {
			return h, err
		}
		if h.end != "" && len(bytes.TrimSpace(line)) == 0 {
			return h, nil
		}
	}
}

// line counts one line of a stream.
func (h *received) line(line []byte) error {
	field, value, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(": "))
	switch string(field) {
	case "event":
		h.events++
		switch string(value) {
		case "tool_result":
			h.results++
		case "completed", "error":
			h.end = string(value)
		}
	case "id":
		n := 0
		if _, err := fmt.Sscan(string(value), &n); err != nil {
			return err
		}
		if n <= h.last {
			return fmt.Errorf("event %d came after %d", n, h.last)
		}
		h.kept, h.last = h.kept+1, n
	}
	return nil
}
