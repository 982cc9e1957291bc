//go:build unix

package permit

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
	"chorus/internal/programtest"
)

// cage is a directory in which commands really run, with only a few harmless programs and a
// canary that leaves a mark.
type cage struct {
	root, bash string
}

// standIns replace programs that would leave the cage.
var standIns = map[string]string{
	"sudo":    `while [ $# -gt 0 ]; do case $1 in -u) shift 2;; -*) shift;; *) break;; esac; done; exec "$@"`,
	"ssh":     `h=; while [ $# -gt 0 ]; do case $1 in -p|-o|-i) shift 2;; -*) shift;; *) [ -n "$h" ] && break; h=$1; shift;; esac; done; [ $# -eq 0 ] && exec sh; exec sh -c "$*"`,
	"docker":  `e=; shift; while [ $# -gt 0 ]; do case $1 in --entrypoint) e=$2; shift 2;; --entrypoint=*) e=${1#*=}; shift;; -v|-e|-u|-w|--name) shift 2;; -*) shift;; *) break;; esac; done; shift; exec $e "$@"`,
	"podman":  `exec docker "$@"`,
	"kubectl": `while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done; shift; exec "$@"`,
	"busybox": `exec "$@"`, "poetry": `shift; exec "$@"`, "npx": `exec "$@"`,
	"flock": `shift; [ "$1" = -c ] && { shift; exec sh -c "$1"; }; exec "$@"`,
	"watch": `exec sh -c "$*"`, "su": `[ "$1" = -c ] && exec sh -c "$2"`,
}

// inmates are real programs that do no harm with the arguments they get here.
var inmates = []string{"bash", "sh", "env", "nohup", "nice", "timeout", "xargs", "find", "cat", "tee", "head", "sed", "awk", "tr", "base64", "setsid", "stdbuf", "sort", "git", "perl"}

func newCage(t testing.TB) *cage {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to run commands with")
	}
	c := &cage{root: t.TempDir(), bash: bash}
	bin := filepath.Join(c.root, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range inmates {
		if at, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(at, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, body string) { programtest.Write(t, filepath.Join(bin, name), "#!"+bash+"\n"+body+"\n") }
	for name, body := range standIns {
		write(name, body)
	}
	write("canary", ": > "+filepath.Join(c.root, "mark"))
	return c
}

// ran runs a command and reports whether it started the canary.
func (c *cage) ran(t testing.TB, command string) bool {
	t.Helper()
	work, mark := filepath.Join(c.root, "work"), filepath.Join(c.root, "mark")
	for _, at := range []string{work, mark} {
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"canary": "", "canary-name": "canary\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.bash, "--noprofile", "--norc", "-c", command)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + filepath.Join(c.root, "bin"), "HOME=" + work, "GIT_CONFIG_NOSYSTEM=1", "TERM=dumb"}
	// A process in the background keeps the output open, so a canary there is waited for.
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, 500*time.Millisecond
	if err := cmd.Run(); err != nil && cmd.Process == nil {
		t.Fatal(err)
	}
	_ = end() // usually no process is left
	_, err := os.Stat(mark)
	return err == nil
}

// canaryRules allow everything but the canary.
var canaryRules = Rules{Allow: []string{`.*`}, Deny: []string{`tool:bash:canary.*`}}

type judge func(command string) Verdict

// escapes reports whether a command starts the canary although the judge allows it. What is
// asked or denied need not be run.
func (c *cage) escapes(t testing.TB, j judge, command string) bool {
	return j(command) == Allow && c.ran(t, command)
}

func ours(t testing.TB) judge {
	p := mustCompile(t, canaryRules)
	return func(command string) Verdict { return judged(p, command).Verdict }
}

// Every known way to hide the canary, and some of them nested.
func TestCanaryNeverRunsAllowed(t *testing.T) {
	t.Parallel()
	cage, judge := newCage(t), ours(t)
	rnd := rand.New(rand.NewPCG(1, 2)) // the same commands every time
	seeds := plainSeeds()
	for range 1500 {
		data := make([]byte, 16)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		seeds = append(seeds, data)
	}
	for _, data := range seeds {
		if command := build(data); cage.escapes(t, judge, command) {
			t.Errorf("allowed, and the canary ran (%v):\n%s", data, command)
		}
	}
}

// The test is worth something only if its commands really start the canary, and if it
// notices judges that look less closely.
func TestCanaryOracleCanFail(t *testing.T) {
	t.Parallel()
	cage := newCage(t)
	p := mustCompile(t, canaryRules)
	weak := map[string]judge{
		"the text alone": func(command string) Verdict {
			return p.decide(namesOf(action.Join("bash", command), p.mentioned)).Verdict
		},
		"the outermost commands": func(command string) Verdict {
			worst := Allow
			for _, part := range shell.Parse(command, nil).Parts {
				worst = max(worst, p.decide(namesOf(part.Action, p.mentioned)).Verdict)
			}
			return worst
		},
		"without what is opaque": func(command string) Verdict {
			worst := Allow
			for _, d := range judged(p, command).Decisions {
				if d.Verdict == Deny {
					worst = Deny
				}
			}
			return worst
		},
	}
	caught, total, started := map[string]int{}, 0, 0
	for i, data := range plainSeeds() {
		if i%3 != 0 { // a third of them is enough
			continue
		}
		command := build(data)
		total++
		if !cage.ran(t, command) {
			continue
		}
		started++
		for name, j := range weak {
			if j(command) == Allow {
				caught[name]++
			}
		}
	}
	if started < total*3/5 {
		t.Errorf("only %d of %d commands start the canary", started, total)
	}
	for name := range weak {
		if caught[name] < 5 {
			t.Errorf("a judge that sees %s escapes the oracle: caught %d times", name, caught[name])
		}
	}
	if cage.ran(t, "echo canary; : canary") {
		t.Error("a mark without a canary")
	}
}

func FuzzCanary(f *testing.F) {
	for _, data := range plainSeeds() {
		f.Add(data)
	}
	for i := range 40 {
		f.Add([]byte(strings.Repeat(fmt.Sprintf("%c%c%c", i, i*7, i*31), 5)))
	}
	cage, judge := newCage(f), ours(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64 {
			return
		}
		if command := build(data); cage.escapes(t, judge, command) {
			t.Fatalf("allowed, and the canary ran:\n%s", command)
		}
	})
}
