package repl

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the transcript differs (run with -update to accept):\n%s\nwant:\n%s", got, want)
	}
}

// bash is a question with a danger in it.
var bash = approval.Approval{
	ID: "a1", Call: use("c1", "bash", `{"command":"rm -rf build\u001b[8m && true"}`), Dir: "/repo",
	Actions: []string{"tool:bash:rm -rf build", "tool:bash:true"}, Rule: "tool:bash:.*", Assessment: chat.Assessment{Risk: "high"},
}

var edit = approval.Approval{
	ID: "a1", Call: use("c1", "edit", `{"path":"a.go","old_string":"one\ntwo\nthree","new_string":"1"}`), Dir: "/repo",
	Actions: []string{"tool:edit:a.go"}, Rule: "tool:edit:.*", Preview: "--- a.go\n+++ a.go\n@@ -1,3 +1 @@\n-one\n-two\n-three\n+1\n",
}

// script is one conversation and what Run makes of it.
type script struct {
	name   string
	about  string
	prompt string
	in     string // typed, with inTTY
	inTTY  bool
	outTTY bool
	errTTY bool
	send   func(f *fake, seq int64) Receipt
	answer func(f *fake, ok bool)
	abort  func(f *fake)
	before func(f *fake)
	exit   int
}

func asksFor(a approval.Approval, text string) func(*fake, int64) Receipt {
	return func(f *fake, seq int64) Receipt {
		f.put(starts(seq)...)
		f.put(asking(1, 1), says(1, 1, text, a.Call))
		f.asks(a)
		return Receipt{}
	}
}

func thenRuns(f *fake, ok bool) {
	if !ok {
		f.put(chat.ToolRan{Call: "c1", Name: "bash", Outcome: chat.Denied, Failed: true, Blocks: chat.TextBlocks("denied by a person")})
		f.put(asking(2, 1), says(2, 1, "Then I leave it."), ends(chat.EndDone))
		return
	}
	f.put(chat.ToolBegan{Call: "c1", Name: "bash"}, ran("c1", "bash", 1234), asking(2, 1), says(2, 1, "Done."), ends(chat.EndDone))
}

var scripts = []script{
	{name: "plain", about: "no terminal: the answer alone on standard output", prompt: "hello", exit: 0,
		send: func(f *fake, seq int64) Receipt {
			f.put(starts(seq)...)
			f.put(asking(1, 1), delta(1, 1, 0, "I will"), delta(1, 1, 6, " look."),
				says(1, 1, "I will look.", use("c1", "read", `{"src/a.go"}`), use("c2", "bash", `{go test}`)),
				ran("c1", "read", 12), chat.ToolBegan{Call: "c2", Name: "bash"},
				chat.Progress{Run: "r1", Call: "c2", Tool: "bash", Text: "ok  pkg\n"},
				chat.ToolRan{Call: "c2", Name: "bash", Outcome: chat.Ran, Failed: true, TookMS: 61_000, Blocks: chat.TextBlocks("exit status 1\nmore")},
				asking(2, 1), delta(2, 1, 0, "It is **fi"), says(2, 1, "It is **fine**.\x1b[2J"), ends(chat.EndDone))
			return Receipt{}
		}},
	{name: "retries", about: "attempts are said, and the text comes once", prompt: "hello", exit: 0,
		send: func(f *fake, seq int64) Receipt {
			f.put(starts(seq)...)
			f.put(asking(1, 1), delta(1, 1, 0, "half an an"),
				chat.Said{Step: 1, Attempt: 1, Stop: chat.StopError, Error: &chat.Failure{Kind: "overloaded", RetryMS: 4000}},
				asking(1, 2), chat.Said{Step: 1, Attempt: 2, Error: &chat.Failure{Kind: "odd", Message: "strange \x1b[31mthing"}},
				asking(1, 3), delta(1, 3, 6, "behind a gap"), says(1, 3, "whole answer"), ends(chat.EndDone))
			return Receipt{}
		}},
	{name: "limit", about: "stopped at the limit", prompt: "go", exit: 3,
		send: func(f *fake, seq int64) Receipt {
			f.put(starts(seq)...)
			f.put(asking(1, 1), says(1, 1, "So far so good."), ends(chat.EndLimit))
			return Receipt{}
		}},
	{name: "failed", about: "a failure is said on standard error", prompt: "go", exit: 1,
		send: func(f *fake, seq int64) Receipt {
			f.put(starts(seq)...)
			f.put(asking(1, 1), chat.Said{Step: 1, Attempt: 1, Error: &chat.Failure{Kind: "auth", Final: true}},
				chat.RunEnded{Run: "r1", Reason: chat.EndFailed, Steps: 1, Error: &chat.Failure{Kind: "auth", Message: "the key was not accepted; set ANTHROPIC_API_KEY"}})
			return Receipt{}
		}},
	{name: "denied-run", about: "the gate found nobody to ask", prompt: "go", exit: 4,
		send: func(f *fake, seq int64) Receipt {
			f.put(starts(seq)...)
			f.put(says(1, 1, "", bash.Call), chat.RunEnded{Run: "r1", Reason: chat.EndDenied, Text: "bash would have to be asked about"})
			return Receipt{}
		}},
	{name: "nobody-to-ask", about: "an open question without a terminal is a no, and ends the run", prompt: "go", exit: 4,
		send: asksFor(bash, ""), abort: func(f *fake) { f.put(ends(chat.EndAborted)) }},
	{name: "refused", about: "the queue is full", prompt: "go", exit: 1,
		send: func(f *fake, seq int64) Receipt {
			f.put(chat.Refused{Seq: seq, Why: "five prompts are waiting already"})
			return Receipt{Refused: "full"}
		}},
	{name: "queued", about: "what other runs do is not shown", prompt: "mine", exit: 0,
		send: func(f *fake, seq int64) Receipt {
			f.put(delta(4, 1, 0, "other"), says(4, 1, "other"), ends(chat.EndDone))
			f.put(chat.RunStarted{Run: "r2"}, chat.Took{Run: "r2", Seqs: []int64{seq}},
				chat.Delta{Run: "r2", Step: 1, Attempt: 1, What: chat.DeltaText, Text: "mi"})
			f.mu.Lock()
			f.seq++
			f.items = append(f.items, Item{Event: &chat.Event{Seq: f.seq, Run: "r2", Body: says(1, 1, "mine is answered").(chat.Body)}})
			f.mu.Unlock()
			f.put(chat.RunEnded{Run: "r2", Reason: chat.EndDone, Steps: 1})
			return Receipt{Position: 1}
		}},
	{name: "goes-on", about: "without a prompt the run that is there is shown to its end", exit: 0,
		before: func(f *fake) {
			f.put(starts(1)...)
			f.put(asking(1, 1), says(1, 1, "On it.", use("c1", "read", `{a}`)), ran("c1", "read", 5),
				asking(2, 1), delta(2, 1, 0, "All "), says(2, 1, "All well."), ends(chat.EndDone))
		}},
	{name: "text-of-the-end", about: "no answer of the model's", prompt: "x", exit: 0,
		send: func(f *fake, seq int64) Receipt {
			f.put(starts(seq)...)
			f.put(chat.RunEnded{Run: "r1", Reason: chat.EndDone, Text: "(no answer)"})
			return Receipt{}
		}},
	{name: "continued", about: "an answer over two messages is one", prompt: "x", exit: 0,
		send: func(f *fake, seq int64) Receipt {
			f.put(starts(seq)...)
			first := says(1, 1, "first half, ").(chat.Said)
			first.Stop = chat.StopLength
			f.put(first, says(2, 1, "second half"), ends(chat.EndDone))
			return Receipt{}
		}},
	{name: "asked-yes", about: "asked on the terminal, after a word that is no answer", prompt: "clean", exit: 0,
		inTTY: true, errTTY: true, in: "what?\ny\n", send: asksFor(bash, "I clean up."), answer: thenRuns},
	{name: "asked-no-note", about: "a no with a note; the diff is shown", prompt: "clean", exit: 0,
		inTTY: true, errTTY: true, in: "n use git clean\n", send: asksFor(edit, ""), answer: thenRuns},
	{name: "asked-eof", about: "the end of input is a no", prompt: "clean", exit: 0,
		inTTY: true, errTTY: true, send: asksFor(bash, ""), answer: thenRuns},
	{name: "asked-always", about: "always, which is shown first; then one of its rules", prompt: "clean", exit: 0,
		inTTY: true, errTTY: true, in: "a\n9\na\n2\n", before: offers, send: asksFor(bash, ""), answer: thenRuns},
	{name: "asked-session", about: "always, but for this session only", prompt: "clean", exit: 0,
		inTTY: true, errTTY: true, in: "a\ns\n", before: offers, send: asksFor(bash, ""), answer: thenRuns},
	{name: "asked-never", about: "what cannot be kept says why", prompt: "clean", exit: 0,
		inTTY: true, errTTY: true, in: "a\n1\ny\n", send: asksFor(bash, ""), answer: thenRuns,
		before: func(f *fake) {
			f.always = approval.Always{Never: "no rule can allow this call, so it is asked each time: eval runs a text that is put together when it runs"}
		}},
}

func offers(f *fake) {
	f.always = approval.Always{Where: "for you alone, with agent helper in /repo", Steps: []approval.Step{
		{Rules: []string{`tool:bash:go test \./\.\.\.`}, Means: "exactly this", Still: []string{"go test other", "sudo go test ./..."}},
		{Rules: []string{`tool:bash:go test(?: .*)?`}, Means: "go test with any arguments", Also: []string{"go test other"}, Still: []string{"sudo go test ./..."}},
	}}
}

func TestRunTranscripts(t *testing.T) {
	t.Parallel()
	for _, sc := range scripts {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			if sc.before != nil {
				sc.before(f)
			}
			f.onSend = func(f *fake, _ string, seq int64) Receipt { return sc.send(f, seq) }
			f.onAnswer = func(f *fake, _ string, ok bool, _ string) {
				if sc.answer != nil {
					sc.answer(f, ok)
				}
			}
			f.onAbort = sc.abort
			rec := &tape{}
			con := rec.console(strings.NewReader(sc.in))
			con.InTTY, con.OutTTY, con.ErrTTY = sc.inTTY, sc.outTTY, sc.errTTY
			exit, err := Run(within(t), f, RunOptions{Prompt: sc.prompt, Console: con, Interrupts: make(chan os.Signal)})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("# %s\n%s\n\n%sexit %d\n", sc.about, f.logged(), rec, exit)
			golden(t, "run/"+sc.name, got)
			if exit != sc.exit {
				t.Errorf("exit %d, want %d", exit, sc.exit)
			}
		})
	}
}

func TestRunJSONIsAloneOnStandardOutput(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.onSend = func(f *fake, _ string, seq int64) Receipt { return scripts[0].send(f, seq) }
	rec := &tape{}
	con := rec.console(strings.NewReader(""))
	con.OutTTY, con.ErrTTY, con.Look = true, true, sixteen()
	exit, err := Run(within(t), f, RunOptions{Prompt: "x", Console: con, JSON: func(w io.Writer, it Item) error {
		if it.Event == nil {
			_, err := fmt.Fprintln(w, `{"live":true}`)
			return err
		}
		return json.NewEncoder(w).Encode(*it.Event)
	}})
	if err != nil || exit != 0 {
		t.Fatal(exit, err)
	}
	lines := strings.Split(strings.TrimSpace(rec.out.String()), "\n")
	if len(lines) != len(f.items) {
		t.Errorf("%d lines for %d items", len(lines), len(f.items))
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %q", line)
		}
	}
	if s := rec.String(); strings.Contains(s, "err|") {
		t.Errorf("standard error was used:\n%s", s)
	}
}

func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	t.Run("the first Ctrl-C aborts and waits", func(t *testing.T) {
		t.Parallel()
		f, rec, ring := newFake(), &tape{}, make(chan os.Signal, 2)
		f.onSend = func(f *fake, _ string, seq int64) Receipt {
			f.put(starts(seq)...)
			f.put(asking(1, 1), delta(1, 1, 0, "partial"))
			ring <- os.Interrupt
			return Receipt{}
		}
		f.onAbort = func(f *fake) {
			f.put(chat.Said{Step: 1, Attempt: 1, Blocks: chat.TextBlocks("partial te"), Partial: true, Stop: chat.StopAborted}, ends(chat.EndAborted))
		}
		// The ring may come before the run is known; then it leaves at once.
		exit, err := Run(within(t), f, RunOptions{Prompt: "x", Console: rec.console(nil), Interrupts: ring})
		if exit != ExitInterrupted || err != nil {
			t.Errorf("exit %d, %v", exit, err)
		}
	})
	t.Run("the second leaves at once", func(t *testing.T) {
		t.Parallel()
		f, rec, ring := newFake(), &tape{}, make(chan os.Signal, 1)
		f.put(starts(1)...)
		f.put(asking(1, 1), chat.ToolBegan{Call: "c1", Name: "bash"})
		f.onAbort = func(*fake) { ring <- os.Interrupt } // nothing ends: only the second helps
		rung := false
		con := rec.console(nil)
		con.Err = writerFunc(func(p []byte) (int, error) {
			if !rung && strings.Contains(string(p), "→ bash") {
				rung = true
				ring <- os.Interrupt
			}
			return len(p), nil
		})
		exit, err := Run(within(t), f, RunOptions{Console: con, Interrupts: ring})
		if exit != ExitInterrupted || err != nil || f.logged() != "abort false" {
			t.Errorf("exit %d, %v, %s", exit, err, f.logged())
		}
	})
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

func TestRunErrors(t *testing.T) {
	t.Parallel()
	f, rec := newFake(), &tape{}
	f.failSend = errors.New("disk full")
	if exit, err := Run(within(t), f, RunOptions{Prompt: "x", Console: rec.console(nil)}); exit != 1 || err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("exit %d, %v", exit, err)
	}
	f = newFake()
	f.failWatch = errors.New("connection lost")
	if exit, err := Run(within(t), f, RunOptions{Prompt: "x", Console: rec.console(nil)}); exit != 1 || err == nil || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("exit %d, %v", exit, err)
	}
}
