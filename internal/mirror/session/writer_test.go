package session

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
)

var update = flag.Bool("update", false, "rewrite the golden file")

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// story is a session with everything that a log has a word for.
func story() []chat.Event {
	ada := chat.Participant{ID: "ada", Name: "Ada", Kind: chat.Person}
	bodies := []chat.Body{
		chat.Received{From: ada, Prompt: true, Blocks: chat.Blocks{chat.Text{Text: "fix <it> & go"}, chat.File{Name: "n.txt", Path: "@attachments/n.txt"}}},
		chat.Received{From: ada, Prompt: true, Blocks: chat.TextBlocks("and taht")},
		chat.Edited{Seq: 2, Blocks: chat.TextBlocks("and that")},
		chat.Received{From: ada, Prompt: true, Blocks: chat.TextBlocks("never mind")},
		chat.Refused{Seq: 4, Why: "full"},
		chat.RunStarted{Run: "r1", Model: "demo/echo", Settings: chat.Settings{MaxSteps: 20}},
		chat.Took{Run: "r1", Step: 1, Seqs: []int64{1, 2}},
		chat.Asked{Step: 1, Attempt: 1},
		chat.Said{Step: 1, Attempt: 1, Stop: chat.StopError, Error: &chat.Failure{Kind: "overloaded", Message: "later"}},
		chat.Said{Step: 1, Attempt: 2, Stop: chat.StopTools, Usage: chat.Usage{Input: 3, Output: 4}, Blocks: chat.Blocks{
			chat.Thinking{Text: "hm"}, chat.Text{Text: "I look."},
			chat.ToolUse{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"a"}`)},
			chat.ToolUse{ID: "c2", Name: "work_notes", Args: json.RawMessage(`{"action":"set","key":"plan","value":"two steps"}`)},
			chat.ToolUse{ID: "c3", Name: "bash", Args: json.RawMessage(`"{oops"`)},
			chat.ToolUse{ID: "c4", Name: "work_notes", Args: json.RawMessage(`{"action":"set","key":"gone","value":"x"}`)},
			chat.ToolUse{ID: "c5", Name: "work_notes", Args: json.RawMessage(`{"action":"clear","key":"gone"}`)}}},
		chat.ApprovalAsked{ID: "p", Call: "c1", Name: "read", Actions: []string{"tool:read:a"}},
		chat.ApprovalAnswered{ID: "p", Call: "c1", By: "local:ada", OK: true},
		chat.ToolBegan{Call: "c1", Name: "read"},
		chat.ToolRan{Call: "c1", Name: "read", Outcome: chat.Ran, Blocks: chat.TextBlocks("text of a")},
		chat.Steered{From: ada, Mode: chat.Inject, Blocks: chat.TextBlocks("hurry")},
		chat.ToolRan{Call: "c2", Name: "work_notes", Outcome: chat.Ran, Blocks: chat.TextBlocks("noted")},
		chat.ToolRan{Call: "c3", Name: "bash", Outcome: chat.Invalid, Failed: true, Blocks: chat.TextBlocks("not JSON")},
		chat.ToolRan{Call: "c4", Name: "work_notes", Outcome: chat.Ran, Blocks: chat.TextBlocks("noted")},
		chat.ToolRan{Call: "c5", Name: "work_notes", Outcome: chat.Ran, Blocks: chat.TextBlocks("cleared")},
		chat.Took{Run: "r1", Step: 2, Seqs: []int64{15}},
		chat.Noted{What: "date", Text: "friday"},
		chat.Said{Step: 2, Attempt: 1, Stop: chat.StopEnd, Blocks: chat.TextBlocks("Done.")},
		chat.RunEnded{Run: "r1", Reason: chat.EndDone, Steps: 2, Usage: chat.Usage{Input: 6, Output: 8}, Cost: 5},
		chat.Received{From: ada, Blocks: chat.TextBlocks("only heard")},
		chat.Compacted{UpTo: 3, Summary: "so far", How: "model"},
		chat.AbortAsked{Run: "r2", By: "local:ada"},
		chat.RunEnded{Run: "r2", Reason: chat.EndLimit, Text: "20 steps"},
		chat.RunEnded{Run: "r3", Reason: chat.EndFailed, Error: &chat.Failure{Message: "no key"}},
	}
	var events []chat.Event
	for i, b := range bodies {
		events = append(events, chat.Event{Thread: "cli:h:01J", Seq: int64(i + 1), At: at.Add(time.Duration(i) * time.Second), Body: b})
	}
	return events
}

func open(t *testing.T, path string) *Writer {
	t.Helper()
	w, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w.now = func() time.Time { return at }
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func mirrorAll(t *testing.T, w *Writer) {
	t.Helper()
	for _, ev := range story() {
		if err := w.write(ev); err != nil {
			t.Fatal(err)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMirrorGolden(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), Folder, "session_01J.jsonl")
	w := open(t, path)
	if err := w.Start(Start{SessionID: "01J", SessionPath: "s.jsonl", RepoRoot: "/r", Provider: "demo", Model: "echo", Mode: "once"}); err != nil {
		t.Fatal(err)
	}
	mirrorAll(t, w)
	golden := filepath.Join("testdata", "mirror.jsonl")
	if *update {
		if err := os.WriteFile(golden, []byte(content(t, path)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := content(t, path), content(t, golden); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if ignore := content(t, filepath.Join(filepath.Dir(path), ".gitignore")); ignore != "*\n" {
		t.Errorf(".gitignore %q", ignore)
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	mirrorAll(t, open(t, path))
	log, warnings := read(t, content(t, path))
	want := []string{
		"user:fix <it> & go@n.txt", "user:and that",
		`assistant:I look.+read(c1){"path":"a"}+work_notes(c2){"action":"set","key":"plan","value":"two steps"}+bash(c3)"{oops"` +
			`+work_notes(c4){"action":"set","key":"gone","value":"x"}+work_notes(c5){"action":"clear","key":"gone"}`,
		"tool:c1/read=text of a", "tool:c2/work_notes=noted", "tool:c3/bash=not JSON!", "tool:c4/work_notes=noted", "tool:c5/work_notes=cleared",
		"user:hurry", "assistant:Done.", "user:only heard",
	}
	if got := describe(log.Lines()); strings.Join(got, "\n") != strings.Join(want, "\n") || len(warnings) != 0 {
		t.Errorf("got\n%s\nwarnings %q", strings.Join(got, "\n"), warnings)
	}
	if want := map[string]string{"plan": "two steps"}; !maps.Equal(log.Notes, want) {
		t.Errorf("notes %v", log.Notes)
	}
}

// TestCutAnywhere cuts the file around every end of a line and at many places
// within, as a crash or a full disk could, and goes on: the result is always the
// undisturbed file.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.jsonl")
	w := open(t, path)
	mirrorAll(t, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := content(t, path)
	for cut := range len(whole) {
		near := whole[max(0, cut-2):min(len(whole), cut+2)]
		if !strings.Contains(near, "\n") && cut > 20 && cut%41 != 0 {
			continue
		}
		path := filepath.Join(dir, "cut.jsonl")
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		w, last, err := Open(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		for _, ev := range story() {
			if err := w.write(ev); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != whole {
			t.Fatalf("cut at %d (went on after event %d):\n%s", cut, last, got)
		}
	}
}

func TestMirrorTwiceIsOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	w := open(t, path)
	mirrorAll(t, w)
	once := content(t, path)
	mirrorAll(t, w)
	again := open(t, path)
	if n := again.LastSeq(); n != int64(len(story())) {
		t.Errorf("last %d", n)
	}
	mirrorAll(t, again)
	if got := content(t, path); got != once {
		t.Errorf("doubled:\n%s", strings.TrimPrefix(got, once))
	}
}

func TestAnotherSessionCountsAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	w := open(t, path)
	start := func(w *Writer, id string) {
		t.Helper()
		if err := w.Start(Start{SessionID: id, Mode: "once"}); err != nil {
			t.Fatal(err)
		}
	}
	hello := func(seq int64) chat.Event {
		return chat.Event{Seq: seq, At: at, Body: chat.Received{Blocks: chat.TextBlocks("hello")}}
	}
	start(w, "one")
	if err := w.write(hello(5)); err != nil {
		t.Fatal(err)
	}
	start(w, "one") // resumed: the numbers go on
	if w.LastSeq() != 5 {
		t.Errorf("last %d", w.LastSeq())
	}
	start(w, "two")
	if w.LastSeq() != 0 {
		t.Errorf("last %d in a new session", w.LastSeq())
	}
	if err := w.write(hello(1)); err != nil {
		t.Fatal(err)
	}
	if again := open(t, path); again.LastSeq() != 1 {
		t.Errorf("reopened: last %d", again.LastSeq())
	}
	log, _ := read(t, content(t, path))
	if len(log.Lines()) != 2 || log.Start.SessionID != "two" {
		t.Errorf("%d lines of %q", len(log.Lines()), log.Start.SessionID)
	}
}

func TestOpenLeavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"my notes\nmore", "# title\n", "{\"name\":\"package\"}\n", "[1,2]\n", "\x00\x01", "{\"timestamp\":1}\nx", "\n\nnotes"} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(path); !errors.Is(err, ErrNotLog) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
		if got := content(t, path); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if _, _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder was opened as a log")
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(filepath.Join(file, "s.jsonl")); err == nil {
		t.Error("opened below a file")
	}
}

func TestOpenForeignEnds(t *testing.T) {
	t.Parallel()
	good := logOf(user1)
	for name, tt := range map[string]struct{ before, after string }{
		"a whole line without its end": {"\ufeff" + strings.TrimSuffix(good, "\n"), "\ufeff" + good},
		"a torn line of ours":          {good + `{"timestamp":"20`, good},
		"a torn line of somebody's":    {good + "# note", good + "# note\n"},
		"broken in the middle":         {good + "{oops\n" + good, good + "{oops\n" + good},
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		w := open(t, path)
		if got := content(t, path); got != tt.after {
			t.Errorf("%s: %q", name, got)
		}
		if err := w.Start(Start{SessionID: "k"}); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); !strings.HasPrefix(got, tt.after) || strings.Count(got, "session_start") != 1 {
			t.Errorf("%s: appended %q", name, got)
		}
	}
}

// TestFailedWrite hands the writer a file that refuses to be written, then the
// good one again: nothing is lost and nothing is doubled.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	w := open(t, path)
	good := w.f
	refuses, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = refuses.Close() }()
	events := story()
	for i, ev := range events {
		w.f = refuses
		failed := w.write(ev)
		if lines := len(w.linesOf(ev)); (failed != nil) != (lines > 0) && ev.Seq > w.last {
			t.Fatalf("event %d: %v", i, failed)
		}
		w.f = good
		if err := w.write(ev); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(t.TempDir(), "s.jsonl")
	mirrorAll(t, open(t, other))
	if content(t, path) != content(t, other) {
		t.Errorf("got\n%s", content(t, path))
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	w := open(t, filepath.Join(t.TempDir(), "s.jsonl"))
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(Start{}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := w.write(chat.Event{Seq: 1, Body: chat.Noted{}}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	if got, err := Path("/r", "01J_a-b"); err != nil || got != filepath.FromSlash("/r/.agent/session_01J_a-b.jsonl") {
		t.Errorf("%s, %v", got, err)
	}
	for _, id := range []string{"", "../x", "a/b", "a b", "-x", ".", strings.Repeat("a", 200)} {
		if got, err := Path("/r", id); err == nil {
			t.Errorf("%q became %s", id, got)
		}
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	add := func(action string, s Start, hours int) {
		t.Helper()
		if err := AppendIndex(repo, action, s, at.Add(time.Duration(hours)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	add("created", Start{SessionID: "a", SessionPath: "pa", RepoRoot: "/repo", Provider: "demo", Model: "echo", Mode: "repl"}, 0)
	path := filepath.Join(repo, Folder, "sessions.jsonl")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"timestamp":"2026-01-02T03:04:05Z","data":{"ty`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	add("resumed", Start{SessionID: "b"}, 1)
	want := `{"timestamp":"2026-01-02T03:04:05Z","data":{"type":"session","sessionId":"a","action":"created","sessionPath":"pa","repoRoot":"/repo","provider":"demo","model":"echo","mode":"repl"}}
{"timestamp":"2026-01-02T03:04:05Z","data":{"ty
{"timestamp":"2026-01-02T04:04:05Z","data":{"type":"session","sessionId":"b","action":"resumed"}}
`
	if got := content(t, path); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := AppendIndex(path, "created", Start{}, at); err == nil {
		t.Error("appended below a file")
	}
}

// A link in a repository does not lead a log into other files; a file that a person named may be one.
func TestLogsFollowNoLinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ link, to string }{
		{".agent", "../home"}, {".agent/session_s1.jsonl", "../../home/.bashrc"}, {".agent/sessions.jsonl", "../../home/.bashrc"}, {".agent/sessions.jsonl", "inner"},
	} {
		base := t.TempDir()
		repo, home := filepath.Join(base, "repo"), filepath.Join(base, "home")
		for _, dir := range []string{filepath.Dir(filepath.Join(repo, c.link)), home} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		rc := filepath.Join(home, ".bashrc")
		if err := os.WriteFile(rc, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(c.to, filepath.Join(repo, c.link)); err != nil {
			t.Fatal(err)
		}
		path, err := Path(repo, "s1")
		if err != nil {
			t.Fatal(err)
		}
		w, _, err := Open(path)
		if err == nil {
			err = errors.Join(w.Start(Start{SessionID: "s1"}), w.Close(), AppendIndex(repo, "created", Start{SessionID: "s1"}, time.Now()))
		}
		if !errors.Is(err, ErrLink) {
			t.Errorf("%s: %v", c.link, err)
		}
		entries, err := os.ReadDir(home)
		if data, rerr := os.ReadFile(rc); err != nil || rerr != nil || len(data) > 0 || len(entries) != 1 {
			t.Errorf("%s: written: %q %v %v %v", c.link, data, entries, err, rerr)
		}
	}
	base := t.TempDir()
	chosen := filepath.Join(base, "chosen.jsonl")
	if err := os.Symlink("real.jsonl", chosen); err != nil {
		t.Fatal(err)
	}
	w, _, err := Open(chosen)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
