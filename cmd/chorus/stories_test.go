package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"chorus/internal/npmtest"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/transport/repl"
)

// Stories are conversations with the real program, from the outside: what a person
// types, what a server answers, what is printed, what is left on the disk. They
// stand in testdata/stories; the first line of each says what it shows.
//
// Each story has a directory of its own, $WORK: it begins in $WORK/repo, the home
// of Chorus is $WORK/home, and no key is set. Beside the commands of testscript
// there are those of storyCommands.

var update = flag.Bool("update", false, "rewrite the expected output in the stories")

// storyTime is more than anything in a story needs, also on a busy machine.
const storyTime = time.Minute

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:]) // a sandbox may start us as its process 1
	testscript.Main(leakChecked{m}, map[string]func(){"chorus": main, "nopoll": nopoll, "mcpserver": mcpServer, "oauthserver": oauthServer})
}

// nopoll is the program, but it polls for what other processes did only every hour, so that a story notices a lost wake-up.
func nopoll() {
	c := &program{console: repl.Standard(), getenv: os.Getenv, sweep: time.Hour}
	os.Exit(c.run(os.Args[1:]))
}

// leakChecked fails when the tests leave goroutines behind.
type leakChecked struct{ *testing.M }

func (s leakChecked) Run() int {
	code := s.M.Run()
	quick.remove()
	if err := goleak.Find(goleak.IgnoreAnyFunction("chorus/internal/store/pgtest.(*Cluster).Start.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("..", "..", "testdata", "stories"),
		Setup:              beginStory,
		Cmds:               storyCommands(),
		Condition:          storyCondition,
		UpdateScripts:      *update,
		RequireUniqueNames: true,
	})
}

// beginStory makes the place where a story happens.
func beginStory(env *testscript.Env) error {
	at := func(name string) string { return filepath.Join(env.WorkDir, name) }
	for _, dir := range []string{"repo", "user"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			return err
		}
	}
	env.Cd = at("repo")
	for name, value := range map[string]string{
		"HOME": at("user"), "CHORUS_HOME": at("home"), "GUIDES": filepath.Join(storyRoot, "docs", "guides"), "USER": "ada", "TZ": "UTC", "LANG": "C.UTF-8", "TERM": "xterm-256color",
		"GORACE":              "atexit_sleep_ms=0 halt_on_error=1", // a second at the end of each process would be hours
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "ada", "GIT_AUTHOR_EMAIL": "ada@example.org",
		"GIT_COMMITTER_NAME": "ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
	} {
		env.Setenv(name, value)
	}
	if !sandboxWorks() { // stories of the sandbox are skipped there; the others run without it
		env.Setenv("CHORUS_SANDBOX", "host")
	}
	if err := unraced(env); err != nil {
		return err
	}
	s := &stage{work: env.WorkDir, spawned: map[string]*spawned{}, t: env.T().(testing.TB)}
	env.Values[stageKey{}] = s
	env.Defer(s.close)
	return nil
}

// sandboxWorks reports whether bubblewrap works here. Every story asks, so the answer is kept.
var sandboxWorks = sync.OnceValue(func() bool {
	return exec.Command("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true").Run() == nil
})

// storyCondition knows root, who may write everywhere, bwrap, where the sandbox works, npm and pty.
func storyCondition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "bwrap":
		return sandboxWorks(), nil
	case "npm":
		return npmtest.Available(), nil
	case "pty":
		if _, err := os.Stat("/dev/ptmx"); err != nil && os.Getenv("CI") != "true" {
			return false, nil
		}
		return true, nil
	default:
		return false, fmt.Errorf("unknown condition %q; there are root, bwrap, npm and pty", name)
	}
}
