package egress

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs a program as a sandbox would: with nothing but the proxy's variables.
func run(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not here", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_TERMINAL_PROMPT=0"}, env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestCurl(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"api.example.com", "plain.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}, withRoots(t))
	var api heard
	b.tlsServer("api.example.com:443", api.handler)
	b.server("plain.example.com:80", echo)
	trust, err := b.proxy.TrustFile()
	if err != nil {
		t.Fatal(err)
	}
	env, err := b.proxy.Environ(View{Trust: trust})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 2000)
	for name, test := range map[string]struct {
		args       []string
		want, sent string
	}{
		"plain":        {[]string{"http://plain.example.com/x"}, "GET /x", ""},
		"bearer":       {[]string{"-H", "Authorization: Bearer " + mark, "https://api.example.com/x"}, "Bearer " + mark, "Bearer " + testKey},
		"basic":        {[]string{"-u", "ada:" + mark, "https://api.example.com/x"}, "GET /x", "Basic YWRhOnRlc3Qta2V5LTAxMjM0NTY3ODk="},
		"a form":       {[]string{"-d", "key=" + mark, "-d", "a=b", "https://api.example.com/x"}, "key=" + mark, "key=" + testKey + "&a=b"},
		"an encoded":   {[]string{"--data-urlencode", "key=" + mark, "https://api.example.com/x"}, "key=", "key=" + testKey},
		"a multipart":  {[]string{"-F", "key=" + mark, "https://api.example.com/x"}, "POST /x", testKey},
		"a query":      {[]string{"-g", "https://api.example.com/x?key=" + mark}, "key=", "/x?key=" + testKey},
		"expectations": {[]string{"-H", "Expect: 100-continue", "-d", long + mark, "https://api.example.com/x"}, long, long + testKey},
		"HTTP/1.0":     {[]string{"--http1.0", "https://api.example.com/x"}, "GET /x", "GET /x"},
		"compressed":   {[]string{"--compressed", "https://api.example.com/x"}, "GET /x", "GET /x"},
		"two of them":  {[]string{"https://api.example.com/x", "https://api.example.com/y"}, "GET /y", "GET /y"},
	} {
		out, err := run(t, env, "curl", append([]string{"-sS", "--fail-with-body"}, test.args...)...)
		sent := api.take()
		if err != nil || !strings.Contains(out, test.want) || !strings.Contains(sent, test.sent) || strings.Contains(out, testKey) {
			t.Errorf("%s: %v\n%s\nsent: %s", name, err, out, sent)
		}
	}
	for name, test := range map[string][]string{
		"not listed":        {"http://shut.example.com/"},
		"not listed, https": {"-v", "https://shut.example.com/"},
		"a wrong host":      {"-H", "X: " + mark, "http://plain.example.com/"},
	} {
		out, err := run(t, env, "curl", append([]string{"-sS", "--fail-with-body"}, test...)...)
		if err == nil || !strings.Contains(out, "Chorus") && !strings.Contains(out, "chorus") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestGit: git trusts the authority by its variable and finds its way through the proxy.
func TestGit(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"git.example.com"}, Secrets: []Secret{secret("key", testKey, "git.example.com")}}, withRoots(t))
	asked := make(chan string, 10)
	b.tlsServer("git.example.com:443", func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		select {
		case asked <- password:
		default:
		}
		if password == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000003d" + strings.Repeat("1", 40) + " HEAD\x00agent=test/1\n0000"))
	})
	trust, err := b.proxy.TrustFile()
	if err != nil {
		t.Fatal(err)
	}
	env, err := b.proxy.Environ(View{Trust: trust})
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t, env, "git", "-c", "credential.helper=", "ls-remote", "https://ada:"+strings.ReplaceAll(strings.ReplaceAll(mark, "{", "%7B"), "}", "%7D")+"@git.example.com/x.git")
	if strings.Contains(out, testKey) || strings.Contains(out, "certificate") {
		t.Errorf("%v\n%s", err, out)
	}
	var seen []string
	for len(asked) > 0 {
		seen = append(seen, <-asked)
	}
	if len(seen) == 0 || seen[len(seen)-1] != testKey {
		t.Errorf("git asked with %q: %v\n%s", seen, err, out)
	}
}

// TestSocket: a proxy on a socket, for its owner alone and without a password.
func TestSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "egress") // a test's own folder is too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	b := bench{t: t, world: &world{servers: map[string]string{}}}
	b.server("open.example.com:80", echo)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"}) // of one that was killed
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	p, err := Listen(t.Context(), "unix:"+socket, Rules{Hosts: []string{"open.example.com"}}, Options{Resolve: b.world.resolve, Dial: b.world.dial})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := p.Environ(View{}); err == nil {
		t.Error("variables that name a socket")
	}
	if env, err := p.Environ(View{Proxy: "127.0.0.1:3128"}); err != nil || env[0] != "HTTP_PROXY=http://127.0.0.1:3128" {
		t.Errorf("%v %v", env, err)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET http://open.example.com/x HTTP/1.1\r\nHost: open.example.com\r\nConnection: close\r\n\r\n"))
	if got := ended(t, conn); !strings.Contains(got, "GET /x") {
		t.Errorf("%q", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := Listen(t.Context(), "unix:"+file, Rules{}, Options{}); err == nil {
		p.Close()
		t.Error("a file that is no socket was removed")
	}
}
