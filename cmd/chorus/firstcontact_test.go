package main

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	contactTime   = time.Minute // from the end of the build to the first good answer
	contactKeys   = len("make run\n")
	contactClicks = 3 // the suggestion, and a yes for each of two commands
)

// TestFirstContact is a stranger: they clone the repository, type `make run`, follow the link, choose the first suggestion, say yes to
// two commands, and a bug is mended. The build takes what it takes; the rest is timed, and every key and click is counted.
func TestFirstContact(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program from a clone; not with -short")
	}
	for _, name := range []string{"git", "make", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("no " + name + " here")
		}
	}
	if _, err := os.Stat("/dev/ptmx"); err != nil {
		t.Skip("no terminals here")
	}
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("this is no clone")
	}
	dir := t.TempDir()
	clone, ctx := filepath.Join(dir, "chorus"), t.Context()
	if out, err := exec.CommandContext(ctx, "git", "clone", "-q", "../..", clone).CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	environ := newcomer(t, dir)
	build := exec.CommandContext(ctx, "make", "-s", "build")
	build.Dir, build.Env = clone, environ
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}

	begun, keys, clicks := time.Now(), len("make run\n"), 0
	terminal := startTerminal(t, clone, environ, "make", "-s", "run", "ARGS=--addr 127.0.0.1:0")
	if err := terminal.expect(`Stop +Ctrl-C`); err != nil {
		t.Fatalf("%v\n%s", err, terminal.text())
	}
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/sign-in\?code=\S+`).FindString(strings.ReplaceAll(terminal.text(), "\n\n", " "))
	b := newBrowserless(t, link)
	if page := b.get("/"); !strings.Contains(page, `value="Fix the failing test"`) {
		t.Fatalf("the start page offers no first prompt:\n%s", page)
	}
	talk := b.post("/new", url.Values{"sample": {"1"}, "message": {"Fix the failing test"}})
	clicks++
	for yes := 0; yes < 2; yes++ {
		ask := b.until(talk, `action="(/approvals/[^"]+)"`)
		b.post(ask, url.Values{"verdict": {"approve"}})
		clicks++
	}
	b.until(talk, `(All tests pass now)`)
	took := time.Since(begun)
	t.Logf("from the end of the build to the first good answer: %s, %d keys, %d clicks", took.Round(100*time.Millisecond), keys, clicks)
	if took > contactTime || keys > contactKeys || clicks > contactClicks {
		t.Errorf("the first good answer took %s, %d keys and %d clicks; at most %s, %d and %d", took, keys, clicks, contactTime, contactKeys, contactClicks)
	}
	if page := b.get(talk); !strings.Contains(page, "of what is left") {
		t.Error("the edit cannot be seen")
	}
	if err := terminal.types("\x03"); err != nil {
		t.Fatal(err)
	}
	if err := terminal.expect(`Nothing is lost`); err != nil {
		t.Errorf("%v\n%s", err, terminal.text())
	}
}

// newcomer is the environment of somebody without a key, with the caches of whoever runs the tests.
func newcomer(t *testing.T, home string) []string {
	t.Helper()
	out := []string{"HOME=" + home, "TERM=xterm-256color", "CHORUS_NO_BROWSER=1", "USER=ada", "TMPDIR=" + os.TempDir()}
	for _, name := range []string{"PATH", "GOFLAGS", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN", "GOROOT", "LANG"} {
		if value := os.Getenv(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, name+"="+strings.TrimSpace(string(value)))
	}
	if !sandboxWorks() {
		out = append(out, "CHORUS_SANDBOX=host")
	}
	return out
}

// startTerminal runs a program on a terminal until the test ends.
func startTerminal(t *testing.T, dir string, environ []string, name string, args ...string) *person {
	t.Helper()
	p, slave, err := openTerminal(100, 40)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, environ, slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		p.close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // make and what it started; all may have ended
		_ = cmd.Wait()
		p.close()
	})
	return p
}

// browserless is somebody's browser without JavaScript.
type browserless struct {
	*testing.T
	base string
	http *http.Client
}

func newBrowserless(t *testing.T, link string) *browserless {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || link == "" {
		t.Fatalf("the link %q: %v", link, err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browserless{t, "http://" + u.Host, &http.Client{Jar: jar, Timeout: contactTime, Transport: &http.Transport{}}}
	t.Cleanup(b.http.CloseIdleConnections)
	b.get(u.RequestURI())
	return b
}

func (b *browserless) get(path string) string {
	b.Helper()
	text, _ := b.do("GET", path, nil)
	return text
}

// post sends a form and says where it led.
func (b *browserless) post(path string, form url.Values) string {
	b.Helper()
	_, at := b.do("POST", path, form)
	return at
}

func (b *browserless) do(method, path string, form url.Values) (text, at string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := b.http.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 400 {
		b.Fatalf("%s %s: %s %v\n%s", method, path, answer.Status, err, body)
	}
	return string(body), answer.Request.URL.Path
}

// until looks at a page again and again until it shows something, and gives what is in its parentheses.
func (b *browserless) until(path, pattern string) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), contactTime)
	defer cancel()
	re := regexp.MustCompile(pattern)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		text := b.get(path)
		if m := re.FindStringSubmatch(text); m != nil {
			return m[1]
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			b.Fatalf("%s never showed %s:\n%s", path, pattern, text)
		}
	}
}
