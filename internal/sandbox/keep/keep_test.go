//go:build linux

package keep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"chorus/internal/polltest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/keep"
	"chorus/internal/sandbox/process"
)

// spawnArg makes this test a server that starts a process in the background and is then killed.
const spawnArg = "spawn-and-wait"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == bwrap.InitArg:
		bwrap.Init()
	case len(os.Args) > 2 && os.Args[1] == keep.Arg:
		if keep.Main(os.Args[2], os.Stdin, os.Stdout, nil) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) > 3 && os.Args[1] == spawnArg:
		var b sandbox.Background
		err := json.Unmarshal([]byte(os.Args[3]), &b)
		if err == nil {
			_, err = keep.Spawn(context.Background(), keep.Self(), os.Environ(), os.Args[2], b)
		}
		fmt.Println("spawned", err)
		select {}
	}
	os.Exit(m.Run())
}

// kinds are the ways in which a command can be left running here.
func kinds(t *testing.T) []sandbox.Background {
	t.Helper()
	list := []sandbox.Background{{}}
	ex := bwrap.New(bwrap.Options{Environ: os.Environ()})
	defer ex.Close()
	if err := ex.Probe(t.Context()); err != nil {
		t.Logf("!!! the sandbox is NOT TESTED here: %v", err)
		return list
	}
	return append(list, sandbox.Background{Isolated: true})
}

func each(t *testing.T, shell string, do func(t *testing.T, dir string, b sandbox.Background)) {
	t.Helper()
	t.Parallel()
	for _, b := range kinds(t) {
		t.Run(fmt.Sprintf("isolated=%v", b.Isolated), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b.Shell, b.Dir, b.Call = shell, t.TempDir(), "process/"+filepath.Base(filepath.Dir(dir))
			t.Cleanup(func() { _, _ = process.Reap(context.Background(), b.Call) })
			do(t, dir, b)
		})
	}
}

func spawn(t *testing.T, dir string, b sandbox.Background) keep.Status {
	t.Helper()
	s, err := keep.Spawn(t.Context(), keep.Self(), os.Environ(), dir, b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// letGo ends the wait of a command for the file go.
func letGo(t *testing.T, b sandbox.Background) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func ended(t *testing.T, dir string) keep.Status {
	t.Helper()
	polltest.Until(t, "the process is over", func() bool {
		alive, err := keep.Alive(dir)
		if err != nil {
			t.Fatal(err)
		}
		return !alive
	})
	s, err := keep.ReadStatus(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func logged(t *testing.T, dir string) string {
	t.Helper()
	out, err := keep.ReadLog(dir, 0, keep.LogLimit)
	if err != nil {
		t.Fatal(err)
	}
	return out.Text
}

func waitForLog(t *testing.T, dir, text string) {
	t.Helper()
	polltest.Until(t, text+" in the log", func() bool { return strings.Contains(logged(t, dir), text) })
}

func TestACommandIsKept(t *testing.T) {
	each(t, `echo one; printf '\033[31mtwo\033[0m\n' >&2; until [ -e go ]; do sleep 0.02; done; exit 3`, func(t *testing.T, dir string, b sandbox.Background) {
		s := spawn(t, dir, b)
		if s.Keeper == 0 || s.Started == 0 || s.Boot == "" || !s.Ended.IsZero() {
			t.Errorf("%+v", s)
		}
		letGo(t, b)
		if s = ended(t, dir); s.Exit != 3 || s.Ended.IsZero() || s.Stopped || s.TimedOut {
			t.Errorf("%+v", s)
		}
		if text := logged(t, dir); text != "one\ntwo\n" {
			t.Errorf("%q", text)
		}
	})
}

func TestWhatCannotStart(t *testing.T) {
	each(t, "true", func(t *testing.T, dir string, b sandbox.Background) {
		b.Dir = filepath.Join(b.Dir, "missing")
		if _, err := keep.Spawn(t.Context(), keep.Self(), os.Environ(), dir, b); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%v", err)
		}
		if s := ended(t, dir); s.Error == "" {
			t.Errorf("%+v", s)
		}
	})
}

// A command has time to end, with what it started; one that does not end is killed.
func TestStop(t *testing.T) {
	each(t, `trap 'echo bye; exit 7' TERM; (trap 'sleep 0.3; echo child; exit' TERM; echo up; while :; do sleep 0.05; done) & while :; do wait; done`,
		func(t *testing.T, dir string, b sandbox.Background) {
			spawn(t, dir, b)
			waitForLog(t, dir, "up")
			if there, err := keep.Stop(dir); !there || err != nil {
				t.Fatal(there, err)
			}
			if s := ended(t, dir); s.Exit != 7 || !s.Stopped || s.Forced {
				t.Errorf("%+v", s)
			}
			if text := logged(t, dir); !strings.Contains(text, "child") || !strings.Contains(text, "bye") {
				t.Errorf("%q", text)
			}
			if there, err := keep.Stop(dir); there || err != nil {
				t.Error("somebody else was stopped", err)
			}
		})
}

func TestSIGTERMIsIgnored(t *testing.T) {
	each(t, `trap '' TERM; echo up; while :; do sleep 0.1; done`, func(t *testing.T, dir string, b sandbox.Background) {
		spawn(t, dir, b)
		waitForLog(t, dir, "up")
		if there, err := keep.Stop(dir); !there || err != nil {
			t.Fatal(there, err)
		}
		if s := ended(t, dir); s.Exit != 128+9 || !s.Stopped || !s.Forced {
			t.Errorf("%+v", s)
		}
	})
}

func TestTimeout(t *testing.T) {
	each(t, `echo up; sleep 60`, func(t *testing.T, dir string, b sandbox.Background) {
		b.Timeout = 300 * time.Millisecond
		spawn(t, dir, b)
		if s := ended(t, dir); !s.TimedOut || s.Stopped || s.Exit != 128+15 {
			t.Errorf("%+v", s)
		}
	})
}

// The server is killed with SIGKILL: the command does not notice.
func TestTheServerIsKilled(t *testing.T) {
	each(t, `echo up; until [ -e go ]; do sleep 0.02; done; echo done; exit 4`, func(t *testing.T, dir string, b sandbox.Background) {
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		server := exec.Command("/proc/self/exe", spawnArg, dir, string(data))
		out, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 100)
		n, err := out.Read(line)
		if err != nil || string(line[:n]) != "spawned <nil>\n" {
			t.Fatal(string(line[:n]), err)
		}
		_ = server.Process.Kill()
		_ = server.Wait()
		if alive, err := keep.Alive(dir); !alive || err != nil {
			t.Fatal(alive, err)
		}
		letGo(t, b)
		if s := ended(t, dir); s.Exit != 4 {
			t.Errorf("%+v", s)
		}
		if text := logged(t, dir); text != "up\ndone\n" {
			t.Errorf("%q", text)
		}
	})
}

// The keeper is killed with SIGKILL: in a sandbox everything dies with it, without one at least the command; the rest is found
// by its mark. That it ended is not written anywhere.
func TestTheKeeperIsKilled(t *testing.T) {
	each(t, `(while :; do sleep 0.05; done) & echo up; wait`, func(t *testing.T, dir string, b sandbox.Background) {
		s := spawn(t, dir, b)
		waitForLog(t, dir, "up")
		if err := syscall.Kill(s.Keeper, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if s = ended(t, dir); !s.Ended.IsZero() {
			t.Errorf("%+v", s)
		}
		if b.Isolated { // nobody helps
			polltest.Until(t, "everything is dead", func() bool { return !runs(b.Call) })
		}
		polltest.Until(t, "everything is dead", func() bool {
			left, err := process.Reap(t.Context(), b.Call)
			return left == 0 && err == nil
		})
	})
}

// runs reports whether anything of a call still runs.
func runs(call string) bool {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), process.CallVariable(call)+"\x00") {
			return true
		}
	}
	return false
}

// A process id is given again: whoever has it now is not ours, and is left alone.
func TestAProcessIDIsGivenAgain(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	began, _ := process.StartTime(other.Process.Pid)
	for name, s := range map[string]keep.Status{
		"another start": {Boot: process.BootID(), Keeper: other.Process.Pid, Started: began - 1},
		"another boot":  {Boot: "before", Keeper: other.Process.Pid, Started: began},
		"nobody":        {Boot: process.BootID(), Keeper: 0},
	} {
		dir := t.TempDir()
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "status.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		lock, err := os.Create(filepath.Join(dir, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // as if its keeper lived
			t.Fatal(err)
		}
		if there, err := keep.Stop(dir); there || err != nil {
			t.Errorf("%s: %v %v", name, there, err)
		}
		_ = lock.Close()
	}
	if _, ok := process.StartTime(other.Process.Pid); !ok {
		t.Error("it was ended")
	}
}

// The log is bounded however much is printed, and positions in it stay true.
func TestAGigabyteOfOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	size := int64(1) << 30
	switch {
	case testing.Short():
		size = 64 << 20
	case raceDetector:
		size = 256 << 20 // 16 times what is kept
	}
	spawn(t, dir, sandbox.Background{Shell: fmt.Sprintf("yes 0123456789abcde 2>/dev/null | head -c %d; echo the end", size), Dir: t.TempDir(), Call: "process/big"})
	var most int64
	ended := func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "log.*"))
		var sum int64
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				sum += info.Size()
			}
		}
		most = max(most, sum)
		alive, _ := keep.Alive(dir)
		return !alive
	}
	for tries := 0; !polltest.Soon(ended); tries++ { // a gigabyte may take minutes on a busy machine
		if tries == 5 {
			t.Fatal("it never ends")
		}
	}
	if most > keep.LogLimit {
		t.Errorf("the log had %d bytes", most)
	}
	out, err := keep.Tail(dir, 40)
	if err != nil || out.Total != size+8 || !strings.HasSuffix(out.Text, "0123456789abcde\nthe end\n") || out.Next != out.Total {
		t.Errorf("%+v %v", out, err)
	}
	if first, err := keep.ReadLog(dir, 0, 16); err != nil || first.From == 0 || len(first.Text) != 16 || first.Next != first.From+16 {
		t.Errorf("%+v %v", first, err)
	}
}

// Programs are judged by whoever is connected; until then they wait.
func TestProgramsAreJudged(t *testing.T) {
	t.Parallel()
	list := kinds(t)
	b := list[len(list)-1]
	if !b.Isolated {
		t.Skip("no sandbox works here")
	}
	dir := t.TempDir()
	b.Shell, b.Dir, b.Call, b.Judged = `echo up; expr 1 + 1; date +%s >/dev/null && echo dated; expr 2 + 2 || echo refused`, t.TempDir(), "process/judged", true
	spawn(t, dir, b)
	waitForLog(t, dir, "up")
	var asked atomic.Int32
	judge := func(e sandbox.Exec) (func(context.Context) error, error) {
		asked.Add(1)
		if slices.Contains(e.Names, "expr") && e.Argv[1] == "2" {
			return func(context.Context) error { return errors.New("no twos") }, nil
		}
		return nil, nil
	}
	done := make(chan error, 1)
	go func() { done <- keep.Judge(t.Context(), dir, judge) }()
	s := ended(t, dir)
	if err := <-done; err != nil {
		t.Error(err)
	}
	text := logged(t, dir)
	if asked.Load() == 0 {
		t.Skipf("!!! the gate is NOT TESTED here: %s", text)
	}
	if !strings.HasPrefix(text, "up\n2\ndated\n") || !strings.Contains(text, "refused") || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "no twos") {
		t.Errorf("%q %+v", text, s)
	}
}

// The network is the keeper's: listed hosts are reached without a server, others are not.
func TestTheNetworkIsTheKeepers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	list := kinds(t)
	b := list[len(list)-1]
	if !b.Isolated {
		t.Skip("no sandbox works here")
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	defer web.Close()
	dir := t.TempDir()
	b.Shell = "curl -s " + web.URL + "; curl -s -o /dev/null -w '%{http_code}\\n' http://example.com/"
	b.Dir, b.Call, b.Hosts = t.TempDir(), "process/web", []string{strings.TrimPrefix(web.URL, "http://")}
	spawn(t, dir, b)
	ended(t, dir)
	if text := logged(t, dir); text != "hello\n403\n" {
		t.Errorf("%q", text)
	}
}
