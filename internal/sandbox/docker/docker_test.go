package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/polltest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("CHORUS_STANDIN"); dir != "" {
		os.Exit(perform(dir, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// newExecutor is one in a fresh container of the stand-in that shares a fresh directory.
func newExecutor(t *testing.T, fault string) (*Executor, *fakeDocker, string) {
	t.Helper()
	dir := t.TempDir()
	s := newFakeDocker(t, fakeContainer{Name: "box", Host: dir, Inside: "/inside/work", Fault: fault})
	e, err := New(Options{Container: "box", Host: dir, Inside: "/inside/work", Environ: os.Environ(), Program: s.program})
	if err != nil {
		t.Fatal(err)
	}
	return e, s, dir
}

func TestContract(t *testing.T) {
	t.Parallel()
	host := filepath.Clean(os.TempDir())
	sandboxtest.Run(t, sandboxtest.Fixture{
		New: func(t *testing.T, environ []string) sandbox.Executor {
			s := newFakeDocker(t, fakeContainer{Name: "box", Host: host, Inside: "/inside/work"})
			e, err := New(Options{Container: "box", Host: host, Inside: "/inside/work", Environ: environ, Program: s.program})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := Options{Container: "box", Host: "/work", Inside: "/w"}
	for name, change := range map[string]func(*Options){
		"no name":           func(o *Options) { o.Container = "" },
		"an option":         func(o *Options) { o.Container = "--privileged" },
		"a short option":    func(o *Options) { o.Container = "-u0" },
		"a path":            func(o *Options) { o.Container = "../box" },
		"a line break":      func(o *Options) { o.Container = "box\n--user=0" },
		"a space":           func(o *Options) { o.Container = "box sh" },
		"relative host":     func(o *Options) { o.Host = "work" },
		"host an option":    func(o *Options) { o.Host = "--privileged" },
		"relative inside":   func(o *Options) { o.Inside = "w" },
		"inside an option":  func(o *Options) { o.Inside = "-u" },
		"NUL in inside":     func(o *Options) { o.Inside = "/w\x00" },
		"line break inside": func(o *Options) { o.Inside = "/w\n" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted %+v", name, o)
		}
	}
	if e, err := New(good); err != nil || e.Name() != "docker" {
		t.Errorf("%v, %v", e, err)
	}
}

// TestHostileWordsAreNoOptions looks at the command line that docker gets: whatever a
// command carries, docker's own part of it has always the same shape.
func TestHostileWordsAreNoOptions(t *testing.T) {
	t.Parallel()
	e, s, dir := newExecutor(t, "")
	odd := filepath.Join(dir, "--privileged")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, command := range []sandbox.Command{
		{Shell: "--user=0", Dir: odd},
		{Argv: []string{"printf", "--", "-x"}, Dir: odd, Call: "--detach", Env: []string{"DOCKER_HOST=tcp://evil", "PATH=" + os.Getenv("PATH"), "LD_PRELOAD=", "VALUE=test-key"}},
	} {
		if _, err := e.Run(t.Context(), command); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.Run(t.Context(), sandbox.Command{Argv: []string{"--help"}, Dir: dir}); err == nil {
		t.Error("an option is no program")
	}
	for _, name := range []string{"A B=x", "--user=0", "=x", "A", "x;id=1", "$(id)=1"} {
		if _, err := e.Run(t.Context(), sandbox.Command{Shell: "true", Dir: dir, Env: []string{name}}); err == nil {
			t.Errorf("variable %q was accepted", name)
		}
	}
	for _, call := range s.calls(t) {
		at := slices.Index(call, "box")
		if at < 0 {
			t.Fatalf("no container in %q", call)
		}
		for i, word := range call[:at] {
			ours := slices.Contains([]string{"exec", "--interactive", "--workdir", "--env"}, word)
			if !ours && !strings.HasPrefix(word, "/inside/work") && !strings.HasPrefix(word, "CHORUS_V_") {
				t.Errorf("word %d of docker's own part is %q", i, word)
			}
		}
		if strings.Contains(strings.Join(call, " "), "test-key") {
			t.Errorf("a value stands on the command line: %q", call)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "")
	res, err := e.Run(t.Context(), sandbox.Command{
		Shell: `printf '%s|' "$DOCKER_HOST" "$HOME" "$IFS" "$t" "$LINES_IN_IT" "$WHERE"; env | grep -c '^CHORUS_V_\|^chorus_'`, Dir: dir,
		Env: []string{"DOCKER_HOST=tcp://there", "HOME=/else", "IFS=,", "t=x", "LINES_IN_IT=a\n'b' $c \"d\"", "WHERE=" + filepath.Join(dir, "sub")},
	})
	if want := "tcp://there|/else| \t\n|x|a\n'b' $c \"d\"|/inside/work/sub|0\n"; err != nil || res.Stdout != want {
		t.Errorf("got %q, want %q (%v)", res.Stdout, want, err)
	}
	if res, err = e.Run(t.Context(), sandbox.Command{Argv: []string{"echo", dir, filepath.Join(dir, "a"), "x" + dir}, Dir: dir}); err != nil || res.Stdout != "/inside/work /inside/work/a x"+dir+"\n" {
		t.Errorf("paths as arguments: %q, %v", res.Stdout, err)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "")
	elsewhere := t.TempDir()
	link := filepath.Join(elsewhere, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"", dir, link} {
		if res, err := e.Run(t.Context(), sandbox.Command{Shell: "pwd", Dir: from}); err != nil || res.Stdout != dir+"\n" {
			t.Errorf("from %q: %+v, %v", from, res, err)
		}
	}
	for _, from := range []string{elsewhere, dir + "x", filepath.Join(dir, "..", "y"), "relative", "/"} {
		if _, err := e.Run(t.Context(), sandbox.Command{Shell: "true", Dir: from}); err == nil || !strings.Contains(err.Error(), "not in the container") {
			t.Errorf("from %q: %v", from, err)
		}
	}
}

// TestWhyNot holds every reason for which nothing can be run against its remedy.
func TestWhyNot(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(r *fakeContainer, o *Options)
		is     error
		says   string
	}{
		{"no daemon", func(r *fakeContainer, _ *Options) { r.Fault = "down" }, ErrNoDaemon, "DOCKER_HOST"},
		{"silent daemon", func(r *fakeContainer, _ *Options) { r.Fault = "hang" }, ErrNoDaemon, "no answer within"},
		{"no container", func(_ *fakeContainer, o *Options) { o.Container = "other" }, ErrNoContainer, "docker run -d --init --name other -v"},
		{"stopped", func(r *fakeContainer, _ *Options) { r.Status = "exited" }, ErrNotRunning, "docker start box"},
		{"paused", func(r *fakeContainer, _ *Options) { r.Status = "paused" }, ErrNotRunning, "docker unpause box"},
		{"no program", func(_ *fakeContainer, o *Options) { o.Program = "no-such-docker" }, ErrNoProgram, "install"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := fakeContainer{Name: "box", Host: t.TempDir(), Inside: "/w"}
			o := Options{Container: "box", Host: r.Host, Inside: "/w", Environ: os.Environ()}
			tt.change(&r, &o)
			s := newFakeDocker(t, r)
			if o.Program == "" {
				o.Program = s.program
			}
			e, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			e.requestTimeout, e.begin = 20*time.Second, 20*time.Second
			if r.Fault == "hang" {
				e.requestTimeout, e.begin = 300*time.Millisecond, 300*time.Millisecond
			}
			_, err = e.Run(t.Context(), sandbox.Command{Shell: "touch ran", Dir: r.Host})
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("run: %v", err)
			}
			// Where the container does not run, nothing is left in it; else nobody knows.
			n, err := e.Reap(t.Context(), "call")
			if dead := tt.is == ErrNoContainer || tt.is == ErrNotRunning; n != 0 || (err == nil) != dead {
				t.Errorf("reap: %d, %v", n, err)
			}
			if _, err := os.Stat(filepath.Join(r.Host, "ran")); err == nil {
				t.Error("it ran all the same")
			}
		})
	}
}

// sleeper leaves the id of a process that would outlive everything.
const sleeper = "sleep 300 & echo $! > child; echo NOW; wait"

func dead(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if !polltest.Soon(func() bool { // nothing signals the end of a process that is no child
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z")
	}) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Fatalf("%d still runs", pid)
	}
}

func TestConnectionLost(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "cut")
	res, err := e.Run(t.Context(), sandbox.Command{Shell: sleeper, Dir: dir})
	if err != nil || res.ExitCode != 1 || res.Stdout != "NOW\n" || res.Left == 0 || !strings.Contains(res.Stderr, "was not seen") {
		t.Errorf("%+v, %v", res, err)
	}
	dead(t, dir)
}

func TestContainerStopped(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "stop")
	res, err := e.Run(t.Context(), sandbox.Command{Shell: sleeper, Dir: dir, Merge: true})
	if err != nil || res.ExitCode != 137 || !strings.HasPrefix(res.Stdout, "NOW\n") || res.Stderr != "" || res.Stdout != res.Output ||
		!strings.Contains(res.Output, "docker start box") {
		t.Errorf("%+v, %v", res, err)
	}
	dead(t, dir)
}

func TestLostOutputIsNoSuccess(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "mute")
	res, err := e.Run(t.Context(), sandbox.Command{Shell: "touch ran; echo fine", Dir: dir})
	if err != nil || res.ExitCode != 255 || !strings.Contains(res.Stderr, "exit code are lost") {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err != nil {
		t.Error(err)
	}
}

// TestNothingRunsForSomebodyWhoLeft: the daemon loses what the container says, or
// starts the command only when nobody is there any more.
func TestNothingRunsForSomebodyWhoLeft(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"swallow", "ghost"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			e, s, dir := newExecutor(t, fault)
			e.begin = 5 * time.Second // the late start must have happened by then
			res, err := e.Run(t.Context(), sandbox.Command{Shell: "touch ran", Dir: dir, Stdin: []byte("go\n")})
			if err == nil || !strings.Contains(err.Error(), "did not begin within") {
				t.Errorf("%+v, %v", res, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("it ran")
			}
			if said, err := os.ReadFile(filepath.Join(s.dir, "ghost")); fault == "ghost" && !strings.Contains(string(said), " start ") {
				t.Errorf("the late start did not happen: %q, %v", said, err)
			}
		})
	}
}

func TestAbortBeforeTheStart(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "hang")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if res, err := e.Run(ctx, sandbox.Command{Shell: "true", Dir: dir}); err != nil || !res.Aborted || res.ExitCode != -1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestDeafDaemon: the command is out of reach, the call ends all the same and says so.
func TestDeafDaemon(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "deaf")
	e.requestTimeout, e.linger = 5*time.Second, 100*time.Millisecond // before it is deaf it must answer in that time
	ctx, abort := context.WithCancel(t.Context())
	defer abort()
	res, err := e.Run(ctx, sandbox.Command{Shell: "echo $$ > child; echo NOW; exec sleep 300", Dir: dir, OnOutput: func(string) { abort() }})
	if err != nil || !res.Aborted || res.ExitCode != -1 || res.Stdout != "NOW\n" || !strings.Contains(res.Stderr, "may still run") {
		t.Errorf("%+v, %v", res, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // nobody else does
	}
}

func TestSlowDaemon(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "slow")
	if res, err := e.Run(t.Context(), sandbox.Command{Shell: "echo fine", Dir: dir}); err != nil || res.Stdout != "fine\n" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestGroupSignals: a command that signals its own group does not take the wrapper along.
func TestGroupSignals(t *testing.T) {
	t.Parallel()
	e, _, dir := newExecutor(t, "")
	res, err := e.Run(t.Context(), sandbox.Command{Shell: "echo a; kill -TERM 0; echo b", Dir: dir})
	if err != nil || res.ExitCode != 143 || res.Stdout != "a\n" || res.Stderr != "" {
		t.Errorf("%+v, %v", res, err)
	}
	// And what ends by itself a moment later is let finish.
	res, err = e.Run(t.Context(), sandbox.Command{Shell: "(while kill -0 $$ 2>/dev/null; do sleep 0.01; done; echo late) & echo early", Dir: dir})
	if err != nil || res.Stdout != "early\nlate\n" || res.Left != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestNetwork: what cannot be taken away is not pretended to be.
func TestNetwork(t *testing.T) {
	t.Parallel()
	for network, want := range map[string]error{"": ErrNetwork, "host": ErrNetwork, "container:other": ErrNetwork, "none": nil} {
		e, s, dir := newExecutor(t, "")
		r := loadContainer(s.dir)
		r.Network = network
		saveContainer(s.dir, r)
		for _, limit := range []*sandbox.Network{{}, {Proxy: "127.0.0.1:1"}} {
			if _, err := e.Run(t.Context(), sandbox.Command{Shell: "true", Dir: dir, Network: limit}); !errors.Is(err, want) {
				t.Errorf("%q: %v", network, err)
			}
		}
		if res, err := e.Run(t.Context(), sandbox.Command{Shell: "echo ran", Dir: dir, Network: &sandbox.Network{Open: true}}); err != nil || res.Stdout != "ran\n" {
			t.Errorf("%q, open: %+v, %v", network, res, err)
		}
	}
}
