package conversation

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/mirror/jsonl"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var at = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

const thread = chat.ThreadID("web:ada:01J@helper")

func events(bodies ...chat.Body) []chat.Event {
	var list []chat.Event
	for i, b := range bodies {
		list = append(list, chat.Event{Thread: thread, Seq: int64(i + 1), At: at.Add(time.Duration(i) * time.Minute), Body: b})
	}
	return list
}

var ada = chat.Participant{ID: "7", Name: "Ada", Kind: chat.Person}

func prompt(text string) chat.Received {
	return chat.Received{From: ada, Prompt: true, Blocks: chat.TextBlocks(text)}
}

// story has everything that the files know, two compactions, a roll and a clear.
func story() []chat.Event {
	list := events(
		chat.Received{From: ada, Prompt: true, Blocks: chat.Blocks{chat.Text{Text: "look <here> & there"}, chat.Image{Blob: "pic", MediaType: "image/png", Name: "a.png"},
			chat.File{Name: "n.txt", Path: "@attachments/n.txt"}}}, // 1
		chat.Received{From: chat.Participant{ID: "b1", Kind: chat.Bot, Name: "Builder"}, Blocks: chat.TextBlocks("build 7 is green")}, // 2
		prompt("and taht"), // 3
		chat.Edited{Seq: 3, Blocks: chat.TextBlocks("and that")}, // 4
		prompt("too much"),                                                          // 5
		chat.Refused{Seq: 5, Why: "full"},                                           // 6
		chat.RunStarted{Run: "r1", Model: "anthropic/claude"},                       // 7
		chat.Took{Run: "r1", Step: 1, Seqs: []int64{1}},                             // 8
		chat.Noted{What: "date", Text: "today is friday"},                           // 9
		chat.Asked{Step: 1, Attempt: 1, Model: "anthropic/claude", Sees: 9},         // 10
		chat.Said{Step: 1, Attempt: 1, Error: &chat.Failure{Message: "overloaded"}}, // 11
		chat.Asked{Step: 1, Attempt: 2, Model: "openai/gpt", Sees: 11},              // 12
		chat.Said{Step: 1, Attempt: 2, Stop: chat.StopTools, Usage: chat.Usage{Input: 10, Output: 2, CacheRead: 3, CacheWrite: 4}, Blocks: chat.Blocks{
			chat.Thinking{Text: "hm", Signature: "sig"}, chat.Thinking{Redacted: "secret"}, chat.Text{Text: "I look."},
			chat.ToolUse{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}, chat.ToolUse{ID: "c2", Name: "bash", Args: json.RawMessage(`{oops`)}}}, // 13
		chat.ToolBegan{Call: "c1", Name: "read"}, // 14
		chat.ToolRan{Call: "c1", Name: "read", Outcome: chat.Ran, Blocks: chat.Blocks{chat.Text{Text: "text"}, chat.Image{Blob: "gone", MediaType: "image/png", Name: "b.png"}}}, // 15
		chat.ToolRan{Call: "c2", Name: "bash", Outcome: chat.Denied, Failed: true, Blocks: chat.TextBlocks("no")},                                                                // 16
		chat.Steered{From: ada, Mode: chat.Inject, Blocks: chat.TextBlocks("hurry")},                                                                                             // 17
		chat.Took{Run: "r1", Step: 2, Seqs: []int64{3, 17}},                                                                                                                      // 18
		chat.Said{Step: 2, Attempt: 1, Stop: chat.StopLength, Blocks: chat.TextBlocks("It is ")},                                                                                 // 19
		chat.Said{Step: 3, Attempt: 1, Stop: chat.StopEnd, Blocks: chat.TextBlocks("done.")},                                                                                     // 20
		chat.RunEnded{Run: "r1", Reason: chat.EndDone, Steps: 3},                                                                                                                 // 21
		chat.Compacted{UpTo: 13, Summary: "they looked", How: "model", Read: []string{"a"}, Modified: []string{"b"}},                                                             // 22
		prompt("next"), // 23
		chat.RunStarted{Run: "r2", Model: "demo/echo"},                                            // 24
		chat.Took{Run: "r2", Step: 1, Seqs: []int64{23}},                                          // 25
		chat.Said{Step: 1, Attempt: 1, Stop: chat.StopEnd, Blocks: chat.TextBlocks(" [SILENT] ")}, // 26
		chat.RunEnded{Run: "r2", Reason: chat.EndDone, Steps: 1},                                  // 27
		chat.Compacted{UpTo: 20, Summary: "they were done", How: "excerpt"},                       // 28
		chat.Imported{Source: "history", Blob: "lines", Count: 3},                                 // 29
		chat.Imported{Source: "elsewhere", Blob: "gone", Count: 2},                                // 30
		prompt("again"), // 31
		chat.RunStarted{Run: "r3", Model: "demo/echo"},                                                         // 32
		chat.Took{Run: "r3", Step: 1, Seqs: []int64{31}},                                                       // 33
		chat.Asked{Step: 1, Model: "demo/echo", Sees: 33},                                                      // 34
		chat.Said{Step: 1, Attempt: 1, Stop: chat.StopAborted, Partial: true, Blocks: chat.TextBlocks("half")}, // 35
		chat.RunEnded{Run: "r3", Reason: chat.EndAborted, Text: "stopped"},                                     // 36
		chat.Rolled{KeepFrom: 25, Because: "budget"},                                                           // 37
		prompt("gone soon"),     // 38
		chat.Deleted{Seq: 38},   // 39
		chat.Cleared{UpTo: 33},  // 40
		chat.Forked{From: "x"},  // 41
		chat.Reacted{Seq: 31},   // 42
		prompt("still waiting"), // 43
	)
	list[0].Platform, list[0].PlatformID = "discord", "m1"
	return list
}

func blobs(hash string) ([]byte, error) {
	switch hash {
	case "pic":
		return []byte("PNG"), nil
	case "lines":
		return json.Marshal([]chat.Line{
			{Role: "user", From: ada, At: at, Blocks: chat.TextBlocks("old")},
			{Role: "assistant", Blocks: chat.Blocks{chat.ToolUse{ID: "o1", Name: "read", Args: json.RawMessage(`{}`)}}},
			{Role: "tool", Blocks: chat.Blocks{chat.ToolResult{Call: "o1", Name: "read", Blocks: chat.TextBlocks("r"), Failed: true}}},
		})
	default:
		return nil, errors.New("no such blob")
	}
}

func open(t testing.TB, dir string) *Writer {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Blobs = blobs
	return m
}

func apply(t testing.TB, m *Writer, list []chat.Event) {
	t.Helper()
	if err := m.Apply(list); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	list := story()
	for name, upTo := range map[string]int{"answered": 21, "compacted": 28, "imported": 36, "whole": len(list)} {
		dir := t.TempDir()
		apply(t, open(t, dir), list[:upTo])
		for _, file := range []string{LogName, ContextName} {
			golden := filepath.Join("testdata", name+"."+file)
			if *update {
				put(t, "testdata", name+"."+file, content(t, dir, file))
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got := content(t, dir, file); got != string(want) {
				t.Errorf("%s\ngot\n%s\nwant\n%s", golden, got, want)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestLogEntriesAreGuppys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	apply(t, open(t, dir), story())
	allowed := map[string]bool{"date": true, "messageId": true, "userId": true, "userName": true, "text": true, "isBot": true, "attachments": true}
	for line := range strings.Lines(content(t, dir, LogName)) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		for key := range entry {
			if !allowed[key] {
				t.Errorf("key %q in %s", key, line)
			}
		}
		if _, err := time.Parse(time.RFC3339, entry["date"].(string)); err != nil {
			t.Error(err)
		}
	}
}

// TestAnyBatches: however the events are dealt out, also twice, the files are the same.
func TestAnyBatches(t *testing.T) {
	t.Parallel()
	list := story()
	want := t.TempDir()
	apply(t, open(t, want), list)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "m")
		if err != nil {
			rt.Fatal(err)
		}
		m := open(t, dir)
		for m.LastSeq() < int64(len(list)) {
			from := rapid.IntRange(0, int(m.LastSeq())).Draw(rt, "from")
			to := rapid.IntRange(int(m.LastSeq()), len(list)).Draw(rt, "to")
			apply(t, m, list[from:to])
			if rapid.Bool().Draw(rt, "reopen") {
				m = open(t, dir)
			}
		}
		for _, file := range []string{LogName, ContextName} {
			if got := content(t, dir, file); got != content(t, want, file) {
				rt.Fatalf("%s\n%s", file, got)
			}
		}
	})
}

// TestCrash puts the files into a state that a crash could have left (the sidecar
// of one place, the log and the context of a later one, cut anywhere behind the
// place) and goes on.
func TestCrash(t *testing.T) {
	t.Parallel()
	list := story()
	var logs, contexts, sidecars []string // after each number of events
	dir := t.TempDir()
	m := open(t, dir)
	for n := range len(list) + 1 {
		apply(t, m, list[:n])
		logs, contexts = append(logs, content(t, dir, LogName)), append(contexts, content(t, dir, ContextName))
		sidecars = append(sidecars, content(t, dir, sidecarName))
	}
	rapid.Check(t, func(rt *rapid.T) {
		known := rapid.IntRange(0, len(list)).Draw(rt, "known")
		written := rapid.IntRange(known, len(list)).Draw(rt, "written")
		window := rapid.IntRange(known, written).Draw(rt, "window")
		log := logs[written][:rapid.IntRange(len(logs[known]), len(logs[written])).Draw(rt, "log")]
		ctx := contexts[window]
		if strings.HasPrefix(ctx, contexts[known]) {
			ctx = ctx[:rapid.IntRange(len(contexts[known]), len(ctx)).Draw(rt, "context")]
		}
		dir, err := os.MkdirTemp(t.TempDir(), "m")
		if err != nil {
			rt.Fatal(err)
		}
		put(t, dir, LogName, log)
		put(t, dir, ContextName, ctx)
		put(t, dir, ContextName+".tmp", "junk")
		switch rapid.IntRange(0, 5).Draw(rt, "sidecar") {
		case 0: // lost
		case 1:
			put(t, dir, sidecarName, sidecars[known][:len(sidecars[known])/2])
		default:
			put(t, dir, sidecarName, sidecars[known])
		}
		m := open(t, dir)
		apply(t, m, list[m.LastSeq():])
		if got := content(t, dir, LogName); got != logs[len(list)] {
			rt.Fatalf("log\n%s", got)
		}
		if got := content(t, dir, ContextName); got != contexts[len(list)] {
			rt.Fatalf("context\n%s\nwant\n%s", got, contexts[len(list)])
		}
	})
}

func TestLostFilesAreBegunAgain(t *testing.T) {
	t.Parallel()
	list := story()
	tests := map[string]func(t *testing.T, dir string){
		"no log":                func(t *testing.T, dir string) { remove(t, dir, LogName) },
		"no context":            func(t *testing.T, dir string) { remove(t, dir, ContextName) },
		"a shorter log":         func(t *testing.T, dir string) { put(t, dir, LogName, content(t, dir, LogName)[:40]) },
		"a context cut in half": func(t *testing.T, dir string) { put(t, dir, ContextName, content(t, dir, ContextName)[:50]) },
		"a line of nonsense":    func(t *testing.T, dir string) { put(t, dir, ContextName, content(t, dir, ContextName)+"nonsense\n") },
		"a log without its end": func(t *testing.T, dir string) { remove(t, dir, sidecarName); cutNewline(t, dir, LogName) },
		"a log cut in its line": func(t *testing.T, dir string) {
			remove(t, dir, sidecarName)
			put(t, dir, LogName, content(t, dir, LogName)+`{"date`)
		},
		"a sidecar from nowhere": func(t *testing.T, dir string) { put(t, dir, sidecarName, `{"seq":400,"logSize":1,"contextSize":2}`) },
	}
	for name, hurt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			apply(t, open(t, dir), list[:30])
			hurt(t, dir)
			m := open(t, dir)
			if name == "a sidecar from nowhere" && m.LastSeq() != 0 {
				t.Fatalf("last %d", m.LastSeq())
			}
			apply(t, m, list[m.LastSeq():])
			want := t.TempDir()
			apply(t, open(t, want), list)
			for _, file := range []string{LogName, ContextName} {
				if got := content(t, dir, file); got != content(t, want, file) {
					t.Errorf("%s\n%s", file, got)
				}
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func cutNewline(t *testing.T, dir, name string) {
	t.Helper()
	put(t, dir, name, strings.TrimSuffix(content(t, dir, name), "\n"))
}

func TestGap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := open(t, dir)
	list := story()
	for _, wrong := range [][]chat.Event{list[1:3], {list[0], list[2]}} {
		if err := m.Apply(wrong); !errors.Is(err, jsonl.ErrGap) {
			t.Errorf("got %v", err)
		}
	}
	if m.LastSeq() != 0 || content(t, dir, LogName) != "" {
		t.Error("something was written")
	}
}

// TestFullDisk: /dev/full refuses every byte as a full disk does, for root too.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	list := story()
	for _, file := range []string{LogName, ContextName, sidecarName + ".tmp"} {
		dir := t.TempDir()
		m := open(t, dir)
		if err := os.Symlink("/dev/full", filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		if err := m.Apply(list[:21]); err == nil || m.LastSeq() != 0 {
			t.Fatalf("%s: %v, last %d", file, err, m.LastSeq())
		}
		_ = os.Remove(filepath.Join(dir, file)) // there is room again
		apply(t, m, list[:21])
		want := t.TempDir()
		apply(t, open(t, want), list[:21])
		for _, f := range []string{LogName, ContextName} {
			if got := content(t, dir, f); got != content(t, want, f) {
				t.Errorf("after a full %s: %s\n%s", file, f, got)
			}
		}
	}
}

func TestUnwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(file), "file", "")
	if _, err := Open(filepath.Join(file, "x")); err == nil {
		t.Error("opened below a file")
	}
	dir := t.TempDir()
	m := open(t, dir)
	for _, name := range []string{LogName, ContextName} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := m.Apply(story()); err == nil {
			t.Errorf("a folder called %s was written", name)
		}
		if _, err := Open(dir); err == nil {
			t.Errorf("a folder called %s was opened", name)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if err := m.Apply(story()); !errors.Is(err, os.ErrPermission) {
			t.Errorf("a read-only folder: %v", err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, m, story())
}

func TestSameMessageWithinAMinute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := events(prompt("once"), chat.Steered{From: ada, Blocks: chat.TextBlocks("once")}, prompt("later"))
	for i := range list {
		list[i].PlatformID = "m1"
		list[i].At = at.Add([]time.Duration{0, 30 * time.Second, 3 * time.Minute}[i])
	}
	apply(t, open(t, dir), list)
	if got := strings.Count(content(t, dir, LogName), "\n"); got != 2 {
		t.Errorf("%d lines:\n%s", got, content(t, dir, LogName))
	}
}
