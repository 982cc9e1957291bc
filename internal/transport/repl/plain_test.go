package repl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/notice"
)

func TestPlainChat(t *testing.T) {
	t.Parallel()
	f := newFake()
	run := 0
	f.onSend = func(f *fake, text string, seq int64) Receipt {
		run++
		id := fmt.Sprintf("p%d", run)
		at := func(b chat.Body) {
			f.put(b)
			f.mu.Lock()
			f.items[len(f.items)-1].Event.Run = id
			f.mu.Unlock()
		}
		switch {
		case strings.Contains(text, "full"):
			f.put(chat.Refused{Seq: seq, Why: "five are waiting"})
			return Receipt{Refused: "five are waiting"}
		case strings.Contains(text, "danger"):
			at(chat.RunStarted{Run: id})
			at(chat.Took{Run: id, Seqs: []int64{seq}})
			at(says(1, 1, "", bash.Call).(chat.Body))
			f.asks(bash)
			f.mu.Lock()
			f.items[len(f.items)-1].Event.Run = id
			f.mu.Unlock()
			return Receipt{}
		}
		at(chat.RunStarted{Run: id})
		at(chat.Took{Run: id, Seqs: []int64{seq}})
		at(says(1, 1, "you said: "+text).(chat.Body))
		at(chat.RunEnded{Run: id, Reason: chat.EndDone, Steps: 1})
		return Receipt{}
	}
	f.onAnswer = func(f *fake, _ string, _ bool, note string) {
		for _, b := range []chat.Body{
			chat.ToolRan{Call: "c1", Name: "bash", Outcome: chat.Denied, Blocks: chat.TextBlocks(note)},
			says(2, 1, "Then not.").(chat.Body), chat.RunEnded{Run: fmt.Sprintf("p%d", run), Reason: chat.EndDone},
		} {
			f.put(b)
			f.mu.Lock()
			f.items[len(f.items)-1].Event.Run = fmt.Sprintf("p%d", run)
			f.mu.Unlock()
		}
	}
	f.onCommand = func(line string) (string, error) {
		if line == "/cost" {
			return "", errors.New("no ledger")
		}
		return "status: \x1b[1mfine\n", nil
	}
	rec := &tape{}
	in := "hello\n\n   \ntwo\\\nlines\n/STATUS\n/cost\n/nosuch\n/stop\ndanger\nfull\nlast without newline"
	exit, err := Chat(within(t), f, ChatOptions{Prompt: "first", Console: rec.console(strings.NewReader(in)), Interrupts: make(chan os.Signal)})
	if err != nil || exit != 0 {
		t.Errorf("exit %d, %v", exit, err)
	}
	golden(t, "chat/plain", fmt.Sprintf("# a chat over pipes\n%s\n\n%sexit %d\n", f.logged(), rec, exit))
}

func TestPlainChatLeaves(t *testing.T) {
	t.Parallel()
	f, rec := newFake(), &tape{}
	exit, err := Chat(within(t), f, ChatOptions{Console: rec.console(strings.NewReader("/Quit\nnever\n")), Interrupts: make(chan os.Signal)})
	if exit != 0 || err != nil || f.logged() != "" {
		t.Errorf("exit %d, %v, calls %q", exit, err, f.logged())
	}
}

func TestPlainChatStaysUsable(t *testing.T) {
	t.Parallel()
	f, rec := newFake(), &tape{}
	f.failSend = errors.New("disk full")
	exit, err := Chat(within(t), f, ChatOptions{Console: rec.console(strings.NewReader("one\ntwo\n")), Interrupts: make(chan os.Signal)})
	if exit != ExitFailed || err != nil || f.logged() != "send \"one\"\nsend \"two\"" {
		t.Errorf("exit %d, %v, calls %q", exit, err, f.logged())
	}
	if n := strings.Count(rec.String(), "could not send it: disk full"); n != 2 {
		t.Errorf("said %d times:\n%s", n, rec)
	}
}

// What is no part of the conversation is told too: between prompts, while a run is on,
// and, at the latest, at the end.
func TestPlainChatShowsRemarks(t *testing.T) {
	t.Parallel()
	f, rec := newFake(), &tape{}
	remarks := make(chan notice.Notice)
	in, typed := io.Pipe()
	ended := make(chan struct{})
	f.onSend = func(f *fake, _ string, seq int64) Receipt {
		f.put(starts(seq)...)
		go func() {
			defer close(ended)
			remarks <- notice.Notice{Text: "while it runs"} // taken by whoever follows the run
			f.put(says(1, 1, "done"), ends(chat.EndDone))
		}()
		return Receipt{}
	}
	go func() {
		remarks <- notice.Notice{Text: "before anything \x1b[31mwas typed", Bad: true}
		_, _ = io.WriteString(typed, "hello\n")
		<-ended
		typed.Close()
	}()
	exit, err := Chat(within(t), f, ChatOptions{Console: rec.console(in), Remarks: remarks, Interrupts: make(chan os.Signal)})
	if err != nil || exit != 0 {
		t.Errorf("exit %d, %v", exit, err)
	}
	want := "err| • before anything was typed\nerr| • while it runs\nout| done\n"
	if got := rec.String(); got != want {
		t.Errorf("shown:\n%s", got)
	}

	last := make(chan notice.Notice, 1)
	last <- notice.Notice{Text: "at the end"}
	rec = &tape{}
	if _, err := Chat(within(t), newFake(), ChatOptions{Console: rec.console(strings.NewReader("")), Remarks: last, Interrupts: make(chan os.Signal)}); err != nil {
		t.Error(err)
	}
	if got := rec.String(); got != "err| • at the end\n" {
		t.Errorf("shown:\n%s", got)
	}
}

// TestPlainAsksAgainBelowARemark: what is told while a question is open neither hangs on its line nor hides it.
func TestPlainAsksAgainBelowARemark(t *testing.T) {
	t.Parallel()
	f, out := newFake(), &tape{}
	con := out.console(nil)
	con.Plain = true
	follow := newFollower(f, con, nil)
	follow.open = &approval.Approval{ID: "01A"}
	follow.prompt()
	follow.remark(notice.Notice{Text: "there is no sandbox here"})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || strings.Contains(lines[0], "sandbox") || !strings.Contains(lines[1], "• there is no sandbox here") || strings.TrimSpace(lines[2]) != strings.TrimSpace(lines[0]) {
		t.Errorf("%q", lines)
	}
}
