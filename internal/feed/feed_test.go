package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/chat"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const thread = chat.ThreadID("web:ada:01J0000000000000000000000A@helper")

var at = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func event(seq int64, run string, body chat.Body) chat.Event {
	return chat.Event{Thread: thread, Seq: seq, At: at.Add(time.Duration(seq) * time.Second), Run: run, Body: body}
}

// story is every kind of body at least once, in an order that could happen.
func story() []chat.Event {
	ada := chat.Participant{ID: "ada", Name: "Ada", Kind: chat.Person}
	received := event(1, "", chat.Received{From: ada, Prompt: true, Intake: chat.Queue, ReplyTo: "m0",
		Blocks: chat.Blocks{chat.Text{Text: "look at <a> & b"}, chat.Image{Blob: "ab12", MediaType: "image/png", Name: "x.png", Size: 7},
			chat.File{Name: "n.txt", MediaType: "text/plain", Path: "@attachments/n.txt", Size: 3}}})
	received.Platform, received.PlatformID = "local", "m1"
	zero := 0.0
	return []chat.Event{
		received,
		event(2, "r1", chat.RunStarted{Run: "r1", Model: "demo/echo", Head: "h", Renderer: "1",
			Settings: chat.Settings{Mode: "plan", Profile: "standard", MaxSteps: 20, Temperature: &zero}}),
		event(3, "r1", chat.Took{Run: "r1", Step: 1, Seqs: []int64{1}}),
		event(4, "r1", chat.Noted{What: "date", Text: "today is friday"}),
		event(5, "r1", chat.Asked{Step: 1, Attempt: 1, Model: "demo/echo", Purpose: chat.ForTurn, Sees: 4, Digest: "d", Tokens: 9}),
		event(6, "r1", chat.Said{Step: 1, Attempt: 1, Stop: chat.StopError, Error: &chat.Failure{Kind: "overloaded", Message: "try later", RetryMS: 1000}}),
		event(7, "r1", chat.Said{Step: 1, Attempt: 2, Stop: chat.StopTools, Usage: chat.Usage{Input: 10, Output: 4, CacheRead: 2, CacheWrite: 1},
			Blocks: chat.Blocks{chat.Thinking{Text: "hm", Signature: "s"}, chat.Text{Text: "I will look. "}, chat.Text{Text: "Now."},
				chat.ToolUse{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"a.go"}`)},
				chat.ToolUse{ID: "c2", Name: "bash", Args: json.RawMessage(`"{broken"`)},
				chat.ToolUse{ID: "c3", Name: "git_status"}}}),
		event(8, "r1", chat.ApprovalAsked{ID: "p1", Call: "c1", Name: "read", Actions: []string{"tool:read:a.go"}, Rule: "ask .*", Preview: "-a\n+b", Until: at.Add(24 * time.Hour)}),
		event(9, "r1", chat.ApprovalAnswered{ID: "p1", Call: "c1", By: "local:ada", OK: true, Note: "go on"}),
		event(10, "r1", chat.ToolBegan{Call: "c1", Name: "read"}),
		event(11, "r1", chat.ToolRan{Call: "c1", Name: "read", Outcome: chat.Ran, TookMS: 12, Read: []string{"a.go"}, Changed: []string{"b.go"},
			Blocks: chat.Blocks{chat.Text{Text: "1\tpackage a"}, chat.Image{Blob: "cd34", MediaType: "image/png"}}}),
		event(12, "r1", chat.ToolRan{Call: "c2", Name: "bash", Outcome: chat.Denied, Failed: true, Blocks: chat.TextBlocks("denied by a rule")}),
		event(13, "r1", chat.ToolRan{Call: "c3", Name: "git_status", Outcome: chat.Ran, Failed: true, Blocks: chat.TextBlocks("not a repository")}),
		event(14, "", chat.Steered{From: ada, Mode: chat.Interrupt, Blocks: chat.TextBlocks("stop that")}),
		event(15, "", chat.Received{From: ada, Blocks: chat.TextBlocks("only heard")}),
		event(16, "", chat.Refused{Seq: 15, Why: "five prompts wait already"}),
		event(17, "", chat.Edited{Seq: 15, Blocks: chat.TextBlocks("heard, mended")}),
		event(18, "", chat.Deleted{Seq: 15}),
		event(19, "", chat.Reacted{Seq: 1, By: ada, Emoji: "👀", Added: true}),
		event(20, "r1", chat.Compacted{Step: 2, Attempt: 1, UpTo: 9, Summary: "so far", How: "model", Read: []string{"a.go"}, Modified: []string{"b.go"}, Usage: chat.Usage{Input: 5, Output: 1}, Tokens: 80}),
		event(21, "r1", chat.Rolled{KeepFrom: 4, Because: "budget"}),
		event(22, "", chat.AbortAsked{Run: "r1", By: "local:ada"}),
		event(23, "r1", chat.Said{Step: 2, Attempt: 1, Stop: chat.StopAborted, Partial: true, Blocks: chat.TextBlocks("half an ans")}),
		event(24, "r1", chat.RunEnded{Run: "r1", Reason: chat.EndAborted, Text: "stopped", Steps: 2, Usage: chat.Usage{Input: 15, Output: 5}, Cost: 1_234_500_000}),
		event(25, "", chat.Cleared{UpTo: 24, By: "local:ada"}),
		event(26, "", chat.Imported{Source: "session", Blob: "ef56", Count: 3}),
		event(27, "", chat.Forked{From: "web:ada:01J0000000000000000000000B@helper", AtSeq: 9}),
		event(28, "r2", chat.RunEnded{Run: "r2", Reason: chat.EndFailed, Error: &chat.Failure{Kind: "auth", Message: "the key is wrong", Final: true}, Steps: 1, Cost: 7}),
	}
}

func options() Options {
	return Options{
		Label: func(name string, args []byte) string { return name + " it" },
		Args:  func(call string) []byte { return []byte(`{"path":"a.go"}`) },
		Model: "demo/echo",
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	write := func(item Item) {
		line, err := Encode(item)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(line, '\n'))
	}
	for _, ev := range story() {
		for _, item := range Translate(ev, options()) {
			write(item)
		}
	}
	for _, live := range []chat.Live{
		chat.Delta{Run: "r1", Step: 1, Attempt: 2, What: chat.DeltaText, Offset: 0, Text: "I will"},
		chat.Delta{Run: "r1", Step: 1, Attempt: 2, What: chat.DeltaThinking, Offset: 3, Text: "hm"},
		chat.Progress{Run: "r1", Call: "c1", Tool: "bash", Text: "10 lines"},
		chat.Delta{Run: "r1", Step: 1, Attempt: 2, What: chat.DeltaArgs, Call: "c1", Offset: 1, Text: "\"pa"},
		chat.Progress{Run: "r1", Text: "waiting 2 s before the next attempt"},
	} {
		write(liveAt(thread, live, at))
	}
	path := filepath.Join("testdata", "golden.jsonl")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := lineAt(gotLines, i), lineAt(wantLines, i)
		if g != w {
			t.Errorf("line %d\n got %s\nwant %s", i+1, g, w)
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(none)"
}

func TestEveryObjectHasItsHead(t *testing.T) {
	t.Parallel()
	for _, ev := range story() {
		items := Translate(ev, Options{})
		if len(items) == 0 {
			t.Errorf("%s became nothing", ev.Body.Kind())
		}
		for _, item := range items {
			line, err := Encode(item)
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			if m["type"] == "" || m["sessionId"] != "01J0000000000000000000000A" || m["seq"] != float64(ev.Seq) || m["at"] == nil {
				t.Errorf("head of %s: %s", ev.Body.Kind(), line)
			}
		}
	}
}

func TestParseReadsWhatEncodeWrote(t *testing.T) {
	t.Parallel()
	for _, ev := range story() {
		for _, item := range Translate(ev, options()) {
			line, err := Encode(item)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, item) {
				t.Errorf("got  %#v\nwant %#v", back, item)
			}
		}
	}
	if _, err := Parse([]byte(`{"type":"from_the_future"}`)); !errors.Is(err, ErrUnknownType) {
		t.Errorf("a new type: %v", err)
	}
	if _, err := Parse([]byte(`{"type":`)); err == nil || errors.Is(err, ErrUnknownType) {
		t.Errorf("half an object: %v", err)
	}
}

func TestAllButTheLastSayThatThereIsMore(t *testing.T) {
	t.Parallel()
	for _, ev := range story() {
		items := Translate(ev, Options{})
		for i, item := range items {
			if more := item.Header().More; more != (i < len(items)-1) {
				t.Errorf("event %d: object %d of %d says more: %v", ev.Seq, i+1, len(items), more)
			}
		}
	}
}

func TestOneTerminalPerRun(t *testing.T) {
	t.Parallel()
	want := map[chat.Reason]Type{
		chat.EndDone: TypeCompleted, chat.EndAborted: TypeCompleted, chat.EndLimit: TypeCompleted, chat.EndDenied: TypeCompleted,
		chat.EndFailed: TypeError, chat.EndBudget: TypeError,
	}
	for reason, typ := range want {
		items := Translate(event(9, "r1", chat.RunEnded{Run: "r1", Reason: reason}), Options{})
		if len(items) != 1 || items[0].Header().Type != typ || items[0].Header().Run != "r1" {
			t.Errorf("%s became %+v, want one %s", reason, items, typ)
		}
		if e, ok := items[0].(Error); ok && e.Message == "" {
			t.Errorf("%s: an error without a message", reason)
		}
	}
	for _, ev := range story() {
		for _, item := range Translate(ev, Options{}) {
			_, ended := ev.Body.(chat.RunEnded)
			if item.Header().Type.Terminal() != ended {
				t.Errorf("%s became %s", ev.Body.Kind(), item.Header().Type)
			}
		}
	}
}

func TestSessionStartedIsFirst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		body chat.Body
		want SessionStarted
	}{
		{"a prompt", chat.Received{Prompt: true}, SessionStarted{Agent: "helper"}},
		{"an import", chat.Imported{Source: "session"}, SessionStarted{Agent: "helper", Resumed: true}},
		{"a fork", chat.Forked{From: "web:ada:OLD"}, SessionStarted{Agent: "helper", Resumed: true, ForkedFrom: "OLD"}},
	}
	for _, tt := range tests {
		items := Translate(event(1, "", tt.body), Options{})
		got, ok := items[0].(SessionStarted)
		got.Head = Head{}
		if !ok || got != tt.want || len(items) != 2 {
			t.Errorf("%s: got %+v", tt.name, items)
		}
		if again := Translate(event(2, "", tt.body), Options{}); again[0].Header().Type == TypeSessionStarted {
			t.Errorf("%s: started again at 2", tt.name)
		}
	}
}

func TestSaidWithNothingToShow(t *testing.T) {
	t.Parallel()
	items := Translate(event(3, "r1", chat.Said{Stop: chat.StopEnd}), Options{})
	if len(items) != 1 || items[0].Header().Type != TypeTrace {
		t.Errorf("an empty answer became %+v", items)
	}
	if items := Translate(chat.Event{Thread: thread, Seq: 3}, Options{}); items != nil {
		t.Errorf("no body became %+v", items)
	}
}

func TestCallsRemembersArguments(t *testing.T) {
	t.Parallel()
	calls := Calls{}
	var asked []Item
	for _, ev := range story() {
		calls.Note(ev)
		if _, ok := ev.Body.(chat.ApprovalAsked); ok {
			asked = Translate(ev, Options{Args: calls.Args})
		}
	}
	if got := asked[0].(ApprovalRequired).ArgsJSON; got != `{"path":"a.go"}` {
		t.Errorf("argsJson %q", got)
	}
	if len(calls) != 0 {
		t.Errorf("calls with results are still remembered: %v", calls)
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		item := Live(thread, chat.Delta{Run: "r1", What: chat.DeltaText, Text: "x"})
		if h := item.Header(); !h.At.Equal(time.Now()) || h.Seq != 0 || h.Run != "r1" {
			t.Errorf("head %+v", h)
		}
	})
	if item, err := Encode(Live(thread, nil)); err != nil || item == nil {
		t.Errorf("nothing live: %s, %v", item, err)
	}
	if _, err := Encode(nil); err == nil {
		t.Error("nothing was encoded")
	}
}

func TestUSD(t *testing.T) {
	t.Parallel()
	for nanos, want := range map[USD]string{
		0: "0", 1: "0.000000001", 10: "0.00000001", 1_000_000_000: "1", 1_230_000_000: "1.23",
		120_000_000_000: "120", -5_000_000: "-0.005", -1 << 63: "-9223372036.854775808",
	} {
		got, err := json.Marshal(nanos)
		if err != nil || string(got) != want {
			t.Errorf("%d: got %s (%v), want %s", nanos, got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := USD(rapid.Int64Range(-1_000_000*nanosPerDollar, 1_000_000*nanosPerDollar).Draw(t, "nanos"))
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var back USD
		if err := json.Unmarshal(data, &back); err != nil || back != want {
			t.Fatalf("%d became %s became %d (%v)", want, data, back, err)
		}
	})
}

// A part of a stream that could not be read is an event of its own, and what was said follows.
func TestUnreadablePartsAreTraces(t *testing.T) {
	t.Parallel()
	ev := chat.Event{Thread: "web:a:b@c", Seq: 2, Body: chat.Said{Blocks: chat.TextBlocks("hi"), Unreadable: []string{`{"half":`}}}
	items := Translate(ev, Options{})
	if len(items) != 2 {
		t.Fatalf("%+v", items)
	}
	trace, ok := items[0].(Trace)
	if _, said := items[1].(AssistantMessage); !ok || !said || trace.Kind != "parse_error" || string(trace.Data) != `"{\"half\":"` || !trace.More {
		t.Errorf("%+v", items)
	}
}
