package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chorus/internal/polltest"
	"chorus/internal/tool"
)

func TestDeathInMidCall(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"))
	set := toolsOf(t, h)
	before := run(t, set, "mcp__fake__pid", `{}`).Blocks.Text()
	res := run(t, set, "mcp__fake__die", `{}`)
	text := res.Blocks.Text()
	for _, want := range []string{"fake failed during this call", "exit status 7", "out of cheese, key ***", "may have taken effect"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "test-key") || !res.Failed {
		t.Errorf("%s", text)
	}
	var after tool.Result
	until(t, h, "it is back", func() bool {
		after = run(t, set, "mcp__fake__pid", `{}`)
		return !after.Failed
	})
	if after.Blocks.Text() == before {
		t.Errorf("it is still process %s", before)
	}
}

// The call after a crash failed with "started again in 0s": it waits for the restart.
func TestTheCallAfterACrashWaits(t *testing.T) {
	t.Parallel()
	s := self(t, "fake", "plain")
	s.CallTimeout = 800 * time.Millisecond // of the call, not of the restart
	h := open(t, s)
	h.pause = func(int) time.Duration { return time.Second }
	set := toolsOf(t, h)
	before := run(t, set, "mcp__fake__pid", `{}`).Blocks.Text()
	run(t, set, "mcp__fake__die", `{}`)
	if after := run(t, set, "mcp__fake__pid", `{}`); after.Failed || after.Blocks.Text() == before {
		t.Errorf("the next call: %s", after.Blocks.Text())
	}
}

func TestCallOfADeadServer(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"))
	h.pause = func(int) time.Duration { return time.Hour }
	set := toolsOf(t, h)
	run(t, set, "mcp__fake__die", `{}`)
	until(t, h, "it is noticed", func() bool { return strings.Contains(h.Status()[0].Why, "exit status 7") })
	st := h.Status()[0]
	if st.State != Restarting || !strings.Contains(st.String(), "restarting in 1h0m0s: it ended (exit status 7)") {
		t.Errorf("%s", st)
	}
	res := run(t, set, "mcp__fake__pid", `{}`)
	if text := res.Blocks.Text(); !res.Failed || !strings.Contains(text, "is not running: it ended (exit status 7)") || !strings.Contains(text, "restarted in") {
		t.Errorf("%s", text)
	}
	if list := h.Tools(t.Context(), nil); len(list.Tools) == 0 || len(list.Missing) != 0 {
		t.Errorf("its tools are gone: %v", list.Missing)
	}
}

func TestServersThatDoNotCome(t *testing.T) {
	t.Parallel()
	quick := func(s Server) Server { s.StartTimeout = 400 * time.Millisecond; return s }
	h := open(t,
		self(t, "good", "plain"),
		self(t, "crash", "crash"),
		quick(self(t, "mute", "mute")),
		quick(self(t, "babble", "babble")),
		self(t, "wrongversion", "wrongversion"),
		Server{Name: "absent", Command: "no-such-program-here"},
		Server{Name: "nodir", Command: "sh", Dir: "/no/such/dir"},
		Server{Name: "disabled", Command: "x", Disabled: true})
	h.pause = func(int) time.Duration { return time.Hour }
	list := h.Tools(t.Context(), nil)
	if len(list.Tools) < 10 {
		t.Errorf("only %d tools", len(list.Tools))
	}
	want := map[string]string{
		"crash": "(exit status 3); its last words: cannot open the database with key ***", "mute": "it did not answer within 400ms",
		"babble": "it ", "wrongversion": "1999-01-01", "absent": "the command no-such-program-here was not found: install it", "nodir": "no such",
	}
	var got []string
	for _, s := range list.Missing {
		got = append(got, s.Server)
		if s.Why == "" && s.State == Starting { // at its deadline, a moment before it is told so
			until(t, h, "it is given up", func() bool {
				i := slices.IndexFunc(h.Status(), func(o Status) bool { return o.Server == s.Server })
				s = h.Status()[i]
				return s.State != Starting
			})
		}
		if !strings.Contains(s.Why, want[s.Server]) {
			t.Errorf("%s: %s", s.Server, s.Why)
		}
		if hopeless := s.Server == "absent" || s.Server == "nodir"; hopeless != (s.State == Failed) {
			t.Errorf("%s", s)
		}
	}
	if !slices.Equal(got, []string{"absent", "babble", "crash", "mute", "nodir", "wrongversion"}) {
		t.Errorf("missing %v", got)
	}
	if notice := list.Notice(); !strings.Contains(notice, "The MCP server absent is not running: the command no-such-program-here") || strings.Contains(notice, "test-key") {
		t.Errorf("%s", notice)
	}
}

func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "crash", "crash"))
	h.Start()
	until(t, h, "it is left alone", func() bool { return h.Status()[0].State == Failed })
	if list := h.Tools(t.Context(), nil); len(list.Missing) != 1 || list.Missing[0].State != Failed {
		t.Errorf("%v", list.Missing)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := pause(i + 1); got != want*time.Second {
			t.Errorf("after %d failures %s", i+1, got)
		}
	}
	if got := pause(1000); got != longPause {
		t.Errorf("%s", got)
	}
}

func TestToolsWaitsNoLongerThanItsCaller(t *testing.T) {
	t.Parallel()
	s := self(t, "mute", "mute")
	h := open(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := h.Tools(ctx, nil)
	if len(list.Missing) != 1 || list.Missing[0].State != Starting || !strings.Contains(list.Notice(), "still starting") {
		t.Errorf("%v", list)
	}
}

// gone says whether a process is no more; one that only waits to be reaped counts.
func gone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, after, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(after, "Z")
}

func TestCloseKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	h := open(t, self(t, "fake", "stubborn", "FAKE_FILE", file))
	toolsOf(t, h)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, word := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	h.Close()
	for _, pid := range pids {
		polltest.Until(t, fmt.Sprintf("process %d ends", pid), func() bool { return gone(pid) })
	}
	h.Close()
	list := h.Tools(t.Context(), nil)
	if len(list.Tools) != 0 || len(list.Missing) != 1 || list.Missing[0].State != Off {
		t.Errorf("after the end: %v", list)
	}
}

func TestCloseDuringACall(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"))
	set := toolsOf(t, h)
	one, _, err := set.Resolve("mcp__fake__slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	var once sync.Once
	done := make(chan tool.Result, 1)
	go func() {
		res, _ := one.Run(tool.WithCall(t.Context(), tool.Call{Progress: func(string) { once.Do(func() { close(began) }) }}), []byte(`{}`))
		done <- res
	}()
	<-began
	h.Close()
	if res := <-done; !res.Failed {
		t.Error("it succeeded")
	}
	if res, err := one.Run(t.Context(), []byte(`{}`)); err != nil || !strings.Contains(res.Blocks.Text(), "is not running") {
		t.Errorf("%v %v", res, err)
	}
}
