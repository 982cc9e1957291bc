package chaos

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chorus/internal/chat"
)

// crashSteps is how long the run is that gets killed: each kind of step comes four times, and ten times in the long story.
func crashSteps() int {
	if os.Getenv("CHORUS_CHAOS") != "" {
		return 30
	}
	return 12
}

// atMost is more than any of our processes takes, also while the machine does much else.
const atMost = 5 * time.Minute

// crashScript is a run with every kind of step: commands that leave a trace, reads
// side by side, files written, and a last word.
func crashScript(steps int) string {
	var b strings.Builder
	for i := range steps {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, "!say step %d\n!call bash {\"command\":\"echo effect-%d >> effects.txt\"}\n", i, i)
		case 1:
			fmt.Fprintf(&b, "!call read {\"path\":\"README.md\"}\n!call read {\"path\":\"README.md\",\"offset\":%d}\n", i+1)
		case 2:
			fmt.Fprintf(&b, "!call write {\"path\":\"file-%d.txt\",\"content\":\"%d\"}\n", i, i)
		}
		b.WriteString("!---\n")
	}
	b.WriteString("!say all done\n")
	return b.String()
}

// crashSite is one home and one repository.
type crashSite struct {
	t          testing.TB
	bin        string
	home, repo string
	prompt     string
	sandbox    string              // "": the default
	as         *syscall.Credential // who runs it; nil: we do
	within     []string            // what it is started by, and so where; nil: here
}

// newSite copies a home whose database is there already: making one anew each time
// would measure the making.
func newSite(t testing.TB, template string) *crashSite {
	t.Helper()
	bin, err := victim.program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &crashSite{t: t, bin: bin, home: filepath.Join(dir, "home"), repo: filepath.Join(dir, "repo"), prompt: crashScript(crashSteps())}
	if err := os.MkdirAll(s.repo, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.repo, "README.md"), []byte(strings.Repeat("line\n", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	if template != "" {
		if err := os.CopyFS(s.home, os.DirFS(template)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// sandbox is the default, or none where walls cannot be put up: what is killed here
// runs unasked, and would be refused.
var sandbox = sync.OnceValue(func() string {
	if exec.Command("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true").Run() != nil {
		return "host"
	}
	return "auto"
})

func (s *crashSite) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	line := append(append(slices.Clone(s.within), s.bin), args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = s.repo
	if s.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	}
	cmd.Env = append([]string{"CHORUS_HOME=" + s.home, "TMPDIR=" + victim.dir, "PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "USER=ada", "CHORUS_SANDBOX=" + cmp.Or(s.sandbox, sandbox())}, env...)
	return cmd
}

func (s *crashSite) output(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	cmd := s.command(ctx, nil, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("chorus %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), err
}

// session is what the home says about one of its sessions.
type session struct {
	ID     string `json:"sessionId"`
	Status string `json:"status"`
}

// sessions are the sessions the home knows. Each look is a start of the program, and there are hundreds of sites: whoever has looked hands on what was seen.
func (s *crashSite) sessions() []session {
	s.t.Helper()
	out, err := s.output("thread", "list", "--json")
	if err != nil {
		s.t.Fatal(err)
	}
	var list []session
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.t.Fatal(err)
	}
	if len(list) > 1 {
		s.t.Fatalf("there are %d sessions", len(list))
	}
	return list
}

// runArgs is what a person would type now: the prompt, or, once it is there, to go on.
func (s *crashSite) runArgs(seen []session) []string {
	args := []string{"run", "-y", "-m", "demo/script", "--max-iterations", "100"}
	if len(seen) == 1 {
		return append(args, "--session-id", seen[0].ID)
	}
	return append(args, s.prompt)
}

func (s *crashSite) events(seen session) []chat.Event {
	s.t.Helper()
	out, err := s.output("thread", "export", seen.ID, "--format", "jsonl")
	if err != nil {
		s.t.Fatal(err)
	}
	var events []chat.Event
	sc := bufio.NewScanner(strings.NewReader(out))
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var ev chat.Event
		if err := json.Unmarshal(sc.Bytes(), &ev); err != nil {
			s.t.Fatal(err)
		}
		events = append(events, ev)
	}
	return events
}

// done reports whether the run of what was seen has ended well. Only of a session in which nothing is under way that has to be asked.
func (s *crashSite) done(seen []session) bool {
	s.t.Helper()
	return len(seen) == 1 && seen[0].Status == "idle" && finished(s.events(seen[0]))
}

// finished reports whether the run has ended well.
func finished(events []chat.Event) bool {
	for _, ev := range events {
		if end, ok := ev.Body.(chat.RunEnded); ok && end.Reason == chat.EndDone {
			return true
		}
	}
	return false
}

// story is what a reader of the transcript sees: what was said, in order, and what
// came of each call. Interrupted calls are the marks that a crash may leave.
func story(events []chat.Event) (lines []string, interrupted int) {
	// The offline model names its calls after what it was asked; a mark in the
	// conversation changes the names and nothing else.
	number := map[string]int{}
	for _, ev := range events {
		switch b := ev.Body.(type) {
		case chat.Received:
			lines = append(lines, "received "+b.Blocks.Text())
		case chat.Said:
			if b.Error != nil {
				continue
			}
			line := "said " + b.Blocks.Text()
			for _, c := range b.Blocks.Calls() {
				number[c.ID] = len(number) + 1
				line += " | " + c.Name + string(c.Args)
			}
			lines = append(lines, line)
		case chat.ToolRan:
			if b.Outcome == chat.Interrupted {
				interrupted++
				lines = append(lines, fmt.Sprintf("ran %d *", number[b.Call]))
				continue
			}
			lines = append(lines, fmt.Sprintf("ran %d %s", number[b.Call], b.Blocks.Text()))
		case chat.RunEnded:
			lines = append(lines, "ended "+string(b.Reason))
		}
	}
	return lines, interrupted
}

// check holds the site against a run that nothing disturbed.
func (s *crashSite) check(undisturbed []string) {
	s.t.Helper()
	seen := s.sessions()
	if len(seen) == 0 {
		s.t.Fatal("there is no session")
	}
	got, marks := story(s.events(seen[0]))
	if len(got) != len(undisturbed) {
		s.t.Fatalf("%d lines, undisturbed %d:\n%s", len(got), len(undisturbed), strings.Join(got, "\n"))
	}
	for i, line := range got {
		want := undisturbed[i]
		if prefix, cut := strings.CutSuffix(line, " *"); cut && strings.HasPrefix(want, prefix+" ") {
			continue
		}
		if line != want {
			s.t.Fatalf("line %d:\n%s\nundisturbed:\n%s", i, line, want)
		}
	}
	effects, _ := os.ReadFile(filepath.Join(s.repo, "effects.txt"))
	count := map[string]int{}
	for _, line := range strings.Fields(string(effects)) {
		count[line]++
	}
	missing := 0
	for i := 0; i < crashSteps(); i += 3 {
		switch n := count["effect-"+strconv.Itoa(i)]; {
		case n > 1:
			s.t.Fatalf("effect %d happened %d times", i, n)
		case n == 0:
			missing++
		}
	}
	if missing > marks {
		s.t.Fatalf("%d effects are missing and only %d calls are marked as interrupted", missing, marks)
	}
	if _, err := s.output("thread", "replay", seen[0].ID); err != nil {
		s.t.Fatalf("the journal no longer renders what was sent: %v", err)
	}
}

// undisturbed makes the run once without a kill; it returns the story, the number
// of writes, and a home to copy.
func undisturbed(t *testing.T) (lines []string, writes int, template string) {
	t.Helper()
	warm := newSite(t, "")
	if _, err := warm.output("thread", "list"); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, warm.home)
	counter := filepath.Join(t.TempDir(), "count")
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	out, err := s.command(ctx, []string{"CHORUS_KILL=count", "CHORUS_KILL_COUNT=" + counter}, s.runArgs(nil)...).Output()
	if err != nil || strings.TrimSpace(string(out)) != "all done" {
		t.Fatalf("undisturbed run: %q %v", out, err)
	}
	data, err := os.ReadFile(counter)
	if err != nil {
		t.Fatal(err)
	}
	if writes, err = strconv.Atoi(string(data)); err != nil || writes < 2*crashSteps() {
		t.Fatalf("%d writes, %v", writes, err)
	}
	seen := s.sessions()
	if len(seen) == 0 || seen[0].Status != "idle" {
		t.Fatalf("after the undisturbed run there is %+v", seen)
	}
	lines, marks := story(s.events(seen[0]))
	if marks != 0 {
		t.Fatal("marks without a crash")
	}
	return lines, writes, warm.home
}

// TestCrashAtEveryWrite ends the process before and after each of its writes, once
// per write, lets a person start it again, and looks at what is left.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills hundreds of processes")
	}
	lines, writes, template := undisturbed(t)
	t.Logf("%d writes, %d kills", writes, 2*writes)
	for _, when := range []string{"before", "after"} {
		for n := 1; n <= writes; n++ {
			t.Run(fmt.Sprintf("%s-%d", when, n), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, template)
				if n%8 != 0 { // walls cost more than all the rest; some kills behind them are enough
					s.sandbox = "host"
				}
				ctx, cancel := context.WithTimeout(context.Background(), atMost)
				defer cancel()
				cmd := s.command(ctx, []string{fmt.Sprintf("CHORUS_KILL=%s:%d", when, n)}, s.runArgs(nil)...)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Run(); err != nil && !killed(err) {
					t.Fatalf("the process was not killed: %v\n%s", err, stderr.String())
				} else if err == nil && n < writes-3 {
					t.Fatalf("the process got through although it should have died at write %d of %d", n, writes)
				}
				s.goOn(s.sessions())
				s.check(lines)
			})
		}
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// goOn does what a person does after a crash: type it again, or go on.
func (s *crashSite) goOn(seen []session) {
	s.t.Helper()
	if s.done(seen) {
		return // it died after its last write
	}
	out, err := s.output(s.runArgs(seen)...)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.HasSuffix(strings.TrimSpace(out), "all done") {
		s.t.Fatalf("the answer is %q", out)
	}
}

// TestChaos kills at random moments, again and again, until the run gets through.
// CHORUS_CHAOS says how many kills; `make chaos` asks for ten thousand.
func TestChaos(t *testing.T) {
	t.Parallel()
	kills := 30
	if n, err := strconv.Atoi(os.Getenv("CHORUS_CHAOS")); err == nil {
		kills = n
	} else if testing.Short() {
		t.Skip("kills processes")
	}
	lines, _, template := undisturbed(t)
	var mu sync.Mutex
	left := kills
	take := func() bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0
	}
	for worker := range 2 {
		t.Run(fmt.Sprintf("worker-%d", worker), func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano()) + uint64(worker)
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, seed))
			for site := 0; ; site++ {
				done := false
				t.Run(fmt.Sprintf("site-%d", site), func(t *testing.T) { done = chaosSite(t, template, lines, r, take) })
				if done || t.Failed() {
					return
				}
			}
		})
	}
}

// chaosSite kills one site's process until it gets through or the kills are used up.
func chaosSite(t *testing.T, template string, lines []string, r *rand.Rand, take func() bool) (done bool) {
	s := newSite(t, template)
	for {
		seen := s.sessions()
		if s.done(seen) {
			s.check(lines)
			return false
		}
		if !take() {
			s.goOn(seen)
			s.check(lines)
			return true
		}
		ctx, cancel := context.WithTimeout(context.Background(), atMost)
		cmd := s.command(ctx, nil, s.runArgs(seen)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			cancel()
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(r.Int64N(int64(250*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		cancel()
		if err != nil && !killed(err) {
			t.Fatalf("it failed by itself: %v\n%s", err, stderr.String())
		}
	}
}
