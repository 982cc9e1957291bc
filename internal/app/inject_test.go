package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/runsetup"
	"chorus/internal/transport/repl/local"
)

// leaving is a prompt that leaves a command running which ends when there is a file "go", with a hook on its end, and does the rest.
func leaving(hook, rest string) string {
	return `!call run_background {"command":"until [ -e go ]; do sleep 0.02; done; echo built","hooks":[` + hook + `]}` + "\n!---\n" + rest
}

func processSession(t *testing.T) (*local.Session, string) {
	t.Helper()
	a := hungHome(t, "", "")
	a.StartBackground()
	work := t.TempDir()
	s, err := a.Sessions.OpenSession(t.Context(), runsetup.SessionOptions{Dir: work, Model: "demo/script", Profile: "open", Yes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, work
}

func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// journalUntil gives the journal as lines until done says so.
func journalUntil(t *testing.T, s *local.Session, done func(chat.Event) bool) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for item, err := range s.Watch(ctx, 0) {
		if err != nil {
			t.Fatalf("%v after\n%s", err, strings.Join(lines, "\n"))
		}
		if item.Event == nil {
			continue
		}
		switch b := item.Event.Body.(type) {
		case chat.Received:
			lines = append(lines, fmt.Sprintf("received prompt=%v %s %s", b.Prompt, b.Principal.Kind, b.Blocks.Text()))
		case chat.RunStarted:
			lines = append(lines, "run "+b.Run)
		case chat.Took:
			lines = append(lines, "took "+b.Run)
		case chat.RunEnded:
			lines = append(lines, "end "+string(b.Reason))
		}
		if done(*item.Event) {
			return lines
		}
	}
	t.Fatalf("the journal ended:\n%s", strings.Join(lines, "\n"))
	return nil
}

func fromProcess(ev chat.Event) bool {
	b, ok := ev.Body.(chat.Received)
	return ok && b.Principal.Kind == chat.ProcessHook
}

// What a hook says reaches the run that is on, between its steps; no other run begins for it.
func TestInjectedIntoTheRunThatIsOn(t *testing.T) {
	t.Parallel()
	s, work := processSession(t)
	if _, err := s.Send(t.Context(), leaving(`{"on":"exit","do":"inject_context","message":"look at it"}`, `!call bash {"command":"touch go; until [ -e seen ]; do sleep 0.02; done"}`+"\n!---\n!say done")); err != nil {
		t.Fatal(err)
	}
	journalUntil(t, s, fromProcess)
	touch(t, work, "seen")
	lines := journalUntil(t, s, func(ev chat.Event) bool { _, ended := ev.Body.(chat.RunEnded); return ended })
	all := strings.Join(lines, "\n")
	if strings.Count(all, "\nrun ") != 1 || strings.Count(all, "\ntook ") != 2 || !strings.Contains(all, "look at it") {
		t.Errorf("not taken by the run:\n%s", all)
	}
}

// Where no run is on, something to be done begins one, and what is only to be known waits for the next.
func TestInjectedWhileNothingRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook   string
		prompt bool
	}{"to be done": {`{"on":"exit","do":"inject_context","message":"look at it"}`, true}, "to be known": {`{"on":"exit","do":"inject_context"}`, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, work := processSession(t)
			if end, said := talk(t, s, leaving(c.hook, "!say it runs")); end.Reason != chat.EndDone {
				t.Fatal(said)
			}
			touch(t, work, "go")
			var seq int64
			lines := journalUntil(t, s, func(ev chat.Event) bool { seq = ev.Seq; return fromProcess(ev) })
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, fmt.Sprintf("received prompt=%v", c.prompt)) || !strings.Contains(last, "built") || !strings.Contains(last, "untrusted") {
				t.Errorf("%s", last)
			}
			if c.prompt {
				lines = journalUntil(t, s, func(ev chat.Event) bool { _, ended := ev.Body.(chat.RunEnded); return ended && ev.Seq > seq })
			} else {
				talk(t, s, "!say again")
				lines = journalUntil(t, s, func(ev chat.Event) bool { _, ended := ev.Body.(chat.RunEnded); return ended && ev.Seq > seq })
			}
			if n := strings.Count(strings.Join(lines, "\n"), "\nrun "); n != 2 {
				t.Errorf("%d runs:\n%s", n, strings.Join(lines, "\n"))
			}
		})
	}
}
