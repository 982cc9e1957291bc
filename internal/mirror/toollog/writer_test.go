package toollog

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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

const thread = chat.ThreadID("discord:guild/room:77@claude")

var start = time.Date(2026, 1, 2, 3, 50, 0, 678_000_000, time.UTC)

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func use(id, name, args string) chat.ToolUse {
	return chat.ToolUse{ID: id, Name: name, Args: json.RawMessage(args)}
}

func ran(call, text string) chat.ToolRan {
	return chat.ToolRan{Call: call, Name: "read", Outcome: chat.Ran, Blocks: chat.TextBlocks(text)}
}

// story has everything that the files know; an event every seven minutes from ten to four on.
func story() []chat.Event {
	bodies := []chat.Body{
		chat.Received{Prompt: true, Blocks: chat.TextBlocks("look")}, // 1
		chat.Received{Blocks: chat.TextBlocks("only said")},          // 2
		chat.Received{Prompt: true, Blocks: chat.TextBlocks("too")},  // 3
		chat.Received{Prompt: true},                                  // 4
		chat.Refused{Seq: 4},                                         // 5
		chat.RunStarted{Run: "r1"},                                   // 6
		chat.Took{Run: "r1", Seqs: []int64{1, 3}},                    // 7
		chat.Said{Error: &chat.Failure{Message: "overloaded"}, Blocks: chat.Blocks{use("c0", "read", "{}")}},                                                                       // 8
		chat.Said{Stop: chat.StopTools, Blocks: chat.Blocks{chat.Text{Text: "I <look>."}, use("c1", "read", `{"path":"a"}`), use("c2", "x", "{oo")}},                               // 9
		chat.ToolRan{Call: "c1", Name: "read", Outcome: chat.Ran, Blocks: chat.Blocks{chat.Text{Text: "text\n2"}, chat.Image{Blob: "pic", MediaType: "image/png", Name: "p.png"}}}, // 10: 04:53, the next ones after five
		chat.ToolRan{Call: "c2", Name: "x", Outcome: chat.Denied, Failed: true, Blocks: chat.TextBlocks("no")},                                                                     // 11
		chat.Steered{Blocks: chat.TextBlocks("hurry")},                                // 12
		chat.Took{Run: "r1", Seqs: []int64{12}},                                       // 13
		chat.Said{Stop: chat.StopTools, Blocks: chat.Blocks{use("c3", "list", "")}},   // 14
		chat.ToolRan{Call: "c3", Name: "list", Outcome: chat.Interrupted},             // 15
		chat.Said{Stop: chat.StopEnd, Blocks: chat.TextBlocks("done")},                // 16
		chat.RunEnded{Run: "r1"},                                                      // 17
		chat.Received{Prompt: true},                                                   // 18
		chat.Received{Prompt: true},                                                   // 19
		chat.Deleted{Seq: 18},                                                         // 20
		chat.RunStarted{Run: "r2"},                                                    // 21
		chat.Took{Run: "r2", Seqs: []int64{19}},                                       // 22
		chat.Said{Stop: chat.StopTools, Blocks: chat.Blocks{use("c4", "read", "{}")}}, // 23
		ran("c4", "silent"),                                                           // 24
		chat.RunEnded{Run: "r2", Reason: chat.EndAborted},                             // 25
		chat.Received{Prompt: true},                                                   // 26
		chat.RunStarted{Run: "r3"},                                                    // 27
		chat.Took{Run: "r3", Seqs: []int64{26}},                                       // 28
		chat.Said{Stop: chat.StopTools, Blocks: chat.Blocks{chat.Text{Text: "again"}, use("c5", "read", "{}"), use("c6", "read", "{}")}}, // 29
		ran("c5", "five"),            // 30
		ran("c6", "six"),             // 31
		ran("c7", "asked by nobody"), // 32
		chat.RunEnded{Run: "r3"},     // 33
		chat.Deleted{Seq: 16},        // 34: the answer of r1
		chat.Rolled{KeepFrom: 31},    // 35
		chat.Received{Prompt: true},  // 36
		chat.RunStarted{Run: "r4"},   // 37
		chat.Took{Seqs: []int64{36}}, // 38
		chat.Said{Stop: chat.StopTools, Blocks: chat.Blocks{use("c8", "read", "{}")}}, // 39
		ran("c8", "eight"), // 40
	}
	var list []chat.Event
	run := ""
	for i, b := range bodies {
		if s, ok := b.(chat.RunStarted); ok {
			run = s.Run
		}
		list = append(list, chat.Event{Thread: thread, Seq: int64(i + 1), At: start.Add(time.Duration(i) * 7 * time.Minute), Run: run, Body: b})
	}
	list[0].Platform, list[0].PlatformID = "discord", "m1"
	list[15].Platform, list[15].PlatformID = "discord", "b1"
	list[23].At = start // the clock went back
	return list
}

func open(t testing.TB, dir string) *Writer {
	t.Helper()
	agent, channel := Dir(thread)
	w, err := Open(dir, agent, channel)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func apply(t testing.TB, w *Writer, list []chat.Event) {
	t.Helper()
	if err := w.Apply(list); err != nil {
		t.Fatal(err)
	}
}

// content is all hour files, each with its name in front.
func content(t testing.TB, w *Writer) string {
	t.Helper()
	hours, err := w.hours()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, hour := range hours {
		data, err := os.ReadFile(filepath.Join(w.dir, hour))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "-- %s --\n%s", hour, data)
	}
	return out.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	list := story()
	for name, upTo := range map[string]int{"asked": 15, "answered": 17, "third": 33, "deleted": 34, "whole": len(list)} {
		w := open(t, t.TempDir())
		apply(t, w, list[:upTo])
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			put(t, golden, content(t, w))
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, w); got != string(want) {
			t.Errorf("%s\ngot\n%s\nwant\n%s", golden, got, want)
		}
		if left, _ := filepath.Glob(filepath.Join(w.dir, "*.tmp")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestDir(t *testing.T) {
	t.Parallel()
	for id, want := range map[chat.ThreadID]string{
		thread:                  "claude discord:guild/room:77",
		"cli:/home/ada:01J":     "bot cli:/home/ada:01J",
		"web:ada:a@b.c@helper":  "helper web:ada:a@b.c",
		"web:ada:not@An Agent!": "bot web:ada:not@An Agent!",
	} {
		if agent, channel := Dir(id); agent+" "+channel != want {
			t.Errorf("%s: %s %s", id, agent, channel)
		}
	}
	dir := t.TempDir()
	w := open(t, dir)
	if rel, err := filepath.Rel(dir, w.dir); err != nil || strings.Count(filepath.ToSlash(rel), "/") != 1 {
		t.Errorf("%s %v", rel, err)
	}
}

// TestWhatIsWrittenIsReadBack: our own files are read like Chapter3's.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	apply(t, open(t, dir), story()[:33])
	channels, problems, err := Read(dir)
	if err != nil || len(problems) > 0 || len(channels) != 1 {
		t.Fatalf("%v %v %v", channels, problems, err)
	}
	c := channels[0]
	if c.Agent != "claude" || c.Name != "discord:guild/room:77" || len(c.Entries) != 7 {
		t.Errorf("%s %s %d", c.Agent, c.Name, len(c.Entries))
	}
	lines, _ := c.Lines()
	paired(t, lines)
	if img := lines[3].Blocks[0].(chat.ToolResult).Blocks[1]; img != (chat.Image{Blob: "pic", MediaType: "image/png", Name: "p.png"}) {
		t.Errorf("%+v", img)
	}
}

// TestAnyBatches: however the events are dealt out, also twice and after crashes that
// tear a line or lose the sidecar, the files are the same.
func TestAnyBatches(t *testing.T) {
	t.Parallel()
	list := story()
	whole := open(t, t.TempDir())
	apply(t, whole, list)
	want := content(t, whole)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "w")
		if err != nil {
			rt.Fatal(err)
		}
		w := open(t, dir)
		sidecar := filepath.Join(w.dir, sidecarName)
		for crashes := 0; w.LastSeq() < int64(len(list)); {
			before, _ := os.ReadFile(sidecar)
			from := rapid.IntRange(0, int(w.LastSeq())).Draw(rt, "from")
			to := min(int(w.LastSeq())+rapid.SampledFrom([]int{40, 17, 11, 6, 3, 1, 0}).Draw(rt, "more"), len(list))
			if err := w.Apply(list[from:to]); err != nil {
				rt.Fatal(err)
			}
			switch rapid.IntRange(0, 3).Draw(rt, "then") {
			case 0: // the machine died before the sidecar was written, perhaps in the middle of a line
				if crashes++; crashes > 5 {
					break
				}
				if len(before) > 0 {
					put(t, sidecar, string(before))
				} else {
					os.Remove(sidecar)
				}
				if hours, _ := w.hours(); len(hours) > 0 && rapid.Bool().Draw(rt, "torn") {
					path := filepath.Join(w.dir, hours[len(hours)-1])
					f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
					if err != nil {
						rt.Fatal(err)
					}
					fmt.Fprint(f, `{"call":{"id":"torn`)
					f.Close()
				}
				w = open(t, dir)
			case 1:
				w = open(t, dir)
			}
		}
		if got := content(t, w); got != want {
			rt.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestCutAnywhere: whatever byte a file ends with, the next Apply makes it right.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	list := story()[:16]
	dir := t.TempDir()
	w := open(t, dir)
	apply(t, w, list[:9])
	sidecar, err := os.ReadFile(filepath.Join(w.dir, sidecarName))
	if err != nil {
		t.Fatal(err)
	}
	apply(t, w, list)
	want := content(t, w)
	path := filepath.Join(w.dir, hourOf(list[10].At))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.IndexByte(string(data), '\n')
	for cut := range len(data) + 1 {
		if near := min(cut, max(cut-first, first-cut), len(data)-cut); near > 3 && cut%17 != 0 {
			continue // the ends of lines are where it matters
		}
		put(t, filepath.Join(w.dir, sidecarName), string(sidecar))
		put(t, path, string(data[:cut]))
		w := open(t, dir)
		apply(t, w, list)
		if got := content(t, w); got != want {
			t.Fatalf("cut at %d: got\n%s\nwant\n%s", cut, got, want)
		}
	}
}

// TestLongTail: the last line is found also where it is longer than what is read at once.
func TestLongTail(t *testing.T) {
	t.Parallel()
	list := story()[:11]
	list[9].Body, list[9].At = ran("c1", strings.Repeat("long ", 40_000)), list[10].At
	list[10].Body = ran("c2", strings.Repeat("longer ", 40_000))
	dir := t.TempDir()
	w := open(t, dir)
	apply(t, w, list)
	want := content(t, w)
	put(t, filepath.Join(w.dir, hourOf(list[10].At)), strings.TrimSuffix(strings.SplitAfterN(want, "\n", 2)[1], "}\n"))
	if err := os.Remove(filepath.Join(w.dir, sidecarName)); err != nil {
		t.Fatal(err)
	}
	w = open(t, dir)
	apply(t, w, list)
	if content(t, w) != want {
		t.Error("not mended")
	}
}

// TestForeignLinesStay: Chapter3's own lines, and broken ones, in the same folder are left as they are.
func TestForeignLinesStay(t *testing.T) {
	t.Parallel()
	list := story()
	dir := t.TempDir()
	w := open(t, dir)
	foreign := `{"call":{"id":"old","name":"x","input":{},"messageId":"m","originalCompletionText":""},"result":{"output":"o"},"timestamp":"2026-01-02T03:00:00.000Z","extra":1}` + "\n" + "not JSON\n"
	put(t, filepath.Join(w.dir, hourOf(list[31].At)), foreign)
	w = open(t, dir)
	apply(t, w, list)
	if !strings.Contains(content(t, w), foreign) {
		t.Errorf("changed:\n%s", content(t, w))
	}
	if err := os.Remove(filepath.Join(w.dir, sidecarName)); err != nil {
		t.Fatal(err)
	}
	want := content(t, w)
	w = open(t, dir)
	apply(t, w, list)
	if got := content(t, w); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestGap(t *testing.T) {
	t.Parallel()
	list := story()
	w := open(t, t.TempDir())
	if err := w.Apply(list[1:]); !errors.Is(err, jsonl.ErrGap) {
		t.Error(err)
	}
	apply(t, w, list[:5])
	if err := w.Apply(list[6:]); !errors.Is(err, jsonl.ErrGap) {
		t.Error(err)
	}
	apply(t, w, list[2:])
}

// TestFailedWrite: after an error nothing counts as written, and the same events
// bring everything once.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	list := story()[:17]
	dir := t.TempDir()
	w := open(t, dir)
	apply(t, w, list[:8])
	blocked := filepath.Join(w.dir, hourOf(list[14].At)+".tmp") // where the rewritten file should go
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.Apply(list); err == nil {
		t.Fatal("no error")
	}
	if w.LastSeq() != 8 {
		t.Errorf("at %d", w.LastSeq())
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	apply(t, w, list)
	fresh := open(t, t.TempDir())
	apply(t, fresh, list)
	if got, want := content(t, w), content(t, fresh); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// FuzzOpen: no file and no sidecar keeps a writer from opening and going on.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"seq":3,"waiting":{"1":"m1"}}`), []byte(`{"call":{"id":"a"},"result":{},"timestamp":"2026-01-02T03:00:00Z","seq":2}`))
	f.Add([]byte(`{"seq":-1}`), []byte("\n\n{\n"))
	f.Add([]byte(`{`), []byte(`{"seq":9}`+"\n"+`{"seq":4`))
	f.Fuzz(func(t *testing.T, sidecar, file []byte) {
		dir := t.TempDir()
		w := open(t, dir)
		put(t, filepath.Join(w.dir, sidecarName), string(sidecar))
		put(t, filepath.Join(w.dir, hourOf(start)), string(file))
		w = open(t, dir)
		if w.LastSeq() > 0 {
			return
		}
		apply(t, w, story())
		if got := content(t, w); strings.Count(got, `"id":"c8"`) != 1 && !strings.Contains(string(file), "c8") {
			t.Fatalf("got\n%s", got)
		}
	})
}
