package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// secret stands in the addresses of targets, and in nothing that is told.
const secret = "test-key-value"

// A target's answer leads the checkpoint nowhere else, holds nobody up and is not repeated; an address is told to nobody.
func TestHostileAddress(t *testing.T) {
	t.Parallel()
	var inner atomic.Int32
	internal := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner.Add(1) }))
	defer internal.Close()
	serve := func(start func(http.Handler) *httptest.Server, handle http.HandlerFunc) string {
		s := start(handle)
		t.Cleanup(s.Close)
		return s.URL
	}
	raw := func(answer string) string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = conn.Write([]byte(answer))
				_ = conn.Close()
			}
		}()
		return "http://" + listener.Addr().String()
	}
	down := raw("")
	for name, c := range map[string]struct {
		url  string
		want string // in the error; "": there is none
	}{
		"a redirect": {serve(httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, internal.URL, http.StatusPermanentRedirect)
		}), "it answered 308 Permanent Redirect"},
		"a strange certificate": {serve(httptest.NewTLSServer, func(http.ResponseWriter, *http.Request) {}), "certificate"},
		"an answer without end": {serve(httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}), ""},
		"words for a terminal":     {raw("HTTP/1.1 500 \x1b]52;c;eA==\x07 " + secret + "\r\nContent-Length: 0\r\n\r\n"), "it answered 500 Internal Server Error"},
		"nothing":                  {down, "EOF"},
		"no HTTP":                  {raw("SSH-2.0-x\r\n"), "malformed"},
		"a key in place of a name": {"http://user:" + secret + "@127.0.0.1:1", "refused"},
		"no address":               {"http://" + secret + "\x7f", "it is no address"},
	} {
		k := newKeeper(t)
		k.URL = c.url
		if !strings.Contains(k.URL, secret) {
			k.URL += "/" + secret
		}
		p, err := k.Keep(t.Context(), memoryLog{"a"})
		if err != nil {
			t.Fatal(err)
		}
		err = k.Send(t.Context(), *p)
		switch text := fmt.Sprint(err); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(text, c.want)):
			t.Errorf("%s: %v", name, err)
		case strings.Contains(text, secret) || strings.Contains(text, "\x1b"):
			t.Errorf("%s: %q tells what it must not", name, text)
		}
	}
	if n := inner.Load(); n > 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

// sh runs a script in a folder.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// working is a keeper with a working copy of the remote.
func working(t *testing.T, dir, name string) Keeper {
	t.Helper()
	k := newKeeper(t)
	k.Git = filepath.Join(dir, name)
	sh(t, dir, "git clone -q remote "+name+" 2>&1")
	return k
}

func send(t *testing.T, k Keeper, log memoryLog) (Point, error) {
	t.Helper()
	p, err := k.Keep(t.Context(), log)
	if err != nil || p == nil {
		t.Fatalf("%v, %v", p, err)
	}
	return *p, k.Send(t.Context(), *p)
}

const remoteFile = `git -C remote show HEAD:chorus-audit-test.jsonl`

// Nodes with working copies of their own push to one remote, at the same time and in turn; all that each of them sends is there.
func TestGitOfTwoNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, "git init -q --bare remote")
	keepers := []Keeper{working(t, dir, "one"), working(t, dir, "two")}
	var signatures []string
	for n := range 3 {
		var wait sync.WaitGroup
		for i, k := range keepers {
			log := memoryLog{fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)}[:n+1]
			p, err := k.Keep(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			signatures = append(signatures, p.Signature)
			wait.Go(func() {
				// Whoever is second in the same moment is refused and tries again.
				for err := k.Send(t.Context(), *p); err != nil; err = k.Send(t.Context(), *p) {
					if t.Context().Err() != nil || !strings.Contains(err.Error(), "git push") {
						t.Error(err)
						return
					}
				}
			})
		}
		wait.Wait()
	}
	text := sh(t, dir, remoteFile)
	for _, signature := range signatures {
		if strings.Count(text, signature) != 1 {
			t.Errorf("%s is there %d times in\n%s", signature, strings.Count(text, signature), text)
		}
	}
}

// A remote that loses what it had taken is told of, once, and has it again afterwards.
func TestRemoteThatForgets(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]string{
		"the end":     `git -C remote update-ref HEAD HEAD~1`,
		"all of it":   `git -C remote update-ref -d HEAD`,
		"by new ones": `git -C remote update-ref HEAD $(git -C remote -c user.name=a -c user.email=a@example.com commit-tree -m x HEAD^{tree})`,
	} {
		dir := t.TempDir()
		sh(t, dir, "git init -q --bare remote")
		k := working(t, dir, "copy")
		log := memoryLog{"a", "b", "c", "d"}
		var sent []Point
		for n := 1; n <= 2; n++ {
			p, err := send(t, k, log[:n])
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, p)
		}
		sh(t, dir, forget)
		p, err := send(t, k, log[:3])
		if !errors.Is(err, errRewritten) {
			t.Errorf("%s: it was not told: %v", name, err)
		}
		q, err := send(t, k, log[:4])
		if err != nil {
			t.Errorf("%s: after that: %v", name, err)
		}
		text := sh(t, dir, remoteFile)
		for _, p := range append(sent, p, q) {
			if strings.Count(text, p.Signature) != 1 {
				t.Errorf("%s: %s is there %d times", name, p.What(), strings.Count(text, p.Signature))
			}
		}
	}
}

// What a remote brings, and what its address says, starts nothing, leads nowhere and is not told.
func TestHostileRemote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, want string }{
		"a protocol that is a program": {`git -C copy remote set-url origin "ext::touch $PWD/started"; git -C copy config protocol.ext.allow always`, "not allowed"},
		"an option for an address":     {`git -C copy config remote.origin.url "--upload-pack=touch $PWD/started"`, "git fetch"},
		"a program for an address":     {`git -C copy remote set-url origin "ssh://-oProxyCommand=touch%20$PWD/started/x"`, "git fetch"},
		"a key in its address":         {`git -C copy remote set-url origin http://user:` + secret + `@127.0.0.1:1/x.git`, "git fetch"},
		"a link":                       {`echo kept > file; cd copy; ln -s ../file chorus-audit-test.jsonl`, "symbolic link"},
		"a pipe":                       {`cd copy; mkfifo chorus-audit-test.jsonl`, "not a plain file"},
	} {
		dir := t.TempDir()
		sh(t, dir, "git init -q --bare remote")
		k := working(t, dir, "copy")
		sh(t, dir, c.setup)
		_, err := send(t, k, memoryLog{"a"})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
			t.Errorf("%s: a program was started", name)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "file")); err == nil && string(text) != "kept\n" {
			t.Errorf("%s: %q was written", name, text)
		}
	}
}

// A remote that takes the connection and says nothing leaves no process behind that waits for it.
func TestSilentRemote(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir := t.TempDir()
	sh(t, dir, "git init -q --bare remote")
	k := working(t, dir, "copy")
	sh(t, k.Git, "git remote set-url origin http://"+listener.Addr().String()+"/x.git")
	p, err := k.Keep(t.Context(), memoryLog{"a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- k.Send(ctx, *p) }()
	conn, err := listener.Accept() // git's helper
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	if err := <-ended; err == nil {
		t.Error("nothing was said of it")
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	for err = error(nil); err == nil; { // until the helper is gone
		_, err = conn.Read(make([]byte, 4096))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a process is left that waits for the remote")
	}
}
