package webtest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"chorus/internal/app"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/store/storetest"
)

// server is a Chorus server with its own data directory.
type server struct {
	*testing.T
	dir     string
	url     string
	signIn  string
	app     *app.App
	owner   operation.Caller
	log     *serverLog
	stop    func()
	browser *chromium // nil: the one without windows
}

// environ is the environment of a server: no API keys.
func environ(key string) string {
	switch key {
	case "PATH":
		return os.Getenv("PATH")
	case "USER":
		return "ada"
	}
	return ""
}

func options(dir string, log io.Writer) app.Options {
	return app.Options{Home: dir, Version: "test", Env: environ, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
}

// serverLog keeps the warnings of a server for a test that fails: the browser says only that there was no answer.
type serverLog struct {
	mu   sync.Mutex
	text []byte
}

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) < 64<<10 {
		l.text = append(l.text, p...)
	}
	return len(p), nil
}

func (l *serverLog) show(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Failed() && len(l.text) > 0 {
		t.Logf("the server's log:\n%s", l.text)
	}
}

// newServer starts a server with the default configuration and the given settings.
func newServer(t *testing.T, settings ...string) *server {
	t.Helper()
	h := &server{T: t, dir: storetest.FreshHome(t)}
	if len(settings) > 0 {
		h.file("config/shared.yaml", strings.Join(settings, "\n"))
	}
	h.start(ownHost() + ":0")
	return h
}

// file writes a file of the data directory.
func (h *server) file(name, text string) {
	h.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *server) start(addr string) {
	h.Helper()
	if h.log == nil {
		h.log = &serverLog{}
		h.Cleanup(func() { h.log.show(h.T) })
	}
	a, err := app.Open(context.Background(), options(h.dir, h.log))
	if err != nil {
		h.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- a.Serve(ctx, app.ServeOptions{Addr: addr, Ready: func(url, signIn string) {
			h.url, h.signIn = url, signIn
			close(ready)
		}})
	}()
	select {
	case <-ready:
	case err := <-ended:
		h.Fatal(err)
	}
	h.app = a
	if h.owner.Scopes == nil {
		_, token, err := a.Service.Tokens().OwnerToken(context.Background())
		if err != nil {
			h.Fatal(err)
		}
		h.owner = operation.Caller{Principal: token.Holder(), Scopes: token.Scopes}
	}
	var once bool
	h.stop = func() {
		if once {
			return
		}
		once = true
		cancel()
		if err := <-ended; err != nil {
			h.Error(err)
		}
		if err := a.Close(); err != nil {
			h.Error(err)
		}
	}
	h.Cleanup(h.stop)
}

// restart stops the server and starts it again at the same address.
func (h *server) restart() {
	h.Helper()
	h.stop()
	h.start(strings.TrimPrefix(h.url, "http://"))
}

// signedIn opens a signed-in tab.
func (h *server) signedIn() *tab {
	h.Helper()
	t := h.open()
	t.visit(strings.TrimPrefix(h.signIn, h.url))
	t.until(`document.querySelector("header.bar") !== null`)
	return t
}

// session makes a session of the scripted model and returns its id.
func (h *server) session(in operations.NewSession) string {
	h.Helper()
	if in.Model == "" {
		in.Model = "demo/script"
	}
	s, err := operations.CreateSession.Call(h.Context(), h.app.Service.Operations(), h.owner, in)
	if err != nil {
		h.Fatal(err)
	}
	return s.SessionID
}

// begin makes a session and opens it in a tab.
func (h *server) begin(in operations.NewSession) (*tab, string) {
	h.Helper()
	t, id := h.signedIn(), h.session(in)
	t.visit("/s/" + id)
	return t, id
}

// countSessions is how many conversations there are.
func (h *server) countSessions() int {
	h.Helper()
	list, err := operation.CallWhole(h.Context(), operations.ListSessions, h.app.Service.Operations(), h.owner, operations.SessionQuery{})
	if err != nil {
		h.Fatal(err)
	}
	return len(list)
}

// prompt sends a message and waits for the end of its run.
func (h *server) prompt(id, text string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), timeout)
	defer cancel()
	said, err := operations.Say.Call(ctx, h.app.Service.Operations(), h.owner, operations.Message{ID: id, Message: text})
	if err != nil {
		h.Fatal(err)
	}
	for item, err := range operations.Watch.Follow(ctx, h.app.Service.Operations(), h.owner, operations.WatchRequest{ID: id, After: said.Seq}) {
		if err != nil {
			h.Fatal(err)
		}
		if item.Header().Type.Terminal() {
			return
		}
	}
	h.Fatalf("%q was never answered", text)
}

// serveHere runs a server in this process; see startProcess.
func serveHere(home, addr string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a, err := app.Open(ctx, options(home, io.Discard))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer a.Close()
	if err := a.Serve(ctx, app.ServeOptions{Addr: addr, Ready: func(url, signIn string) { fmt.Println(url, signIn) }}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a server in its own process, which can be killed.
type process struct {
	cmd         *exec.Cmd
	url, signIn string
}

func startProcess(t *testing.T, home, addr string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), "WEBTEST_HOME="+home, "WEBTEST_ADDR="+addr)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if _, err := fmt.Fscan(out, &p.url, &p.signIn); err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// ownHost is a loopback address that no other test uses: a server can be started again there, and
// nobody takes its port meanwhile.
func ownHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1" // other systems have only this one
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// freeAddr is an address that is not in use.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ownHost()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
