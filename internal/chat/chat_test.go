package chat

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestThreadIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, transport, place, thread, agent string }{
		{"cli:ab12:01h@helper", "cli", "ab12", "01h", "helper"},
		{"gchat:spaces/A:thread:with:colons", "gchat", "spaces/A", "thread:with:colons", ""},
		{"discord:1/2:3@my-agent", "discord", "1/2", "3", "my-agent"},
		{"web:ada@home.example:x@y z@ab", "web", "ada@home.example", "x@y z", "ab"},
		{"web:o:t@-bad-", "web", "o", "t@-bad-", ""},
	} {
		id, err := ParseThreadID(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		tr, p, th, a := id.Parts()
		if tr != c.transport || p != c.place || th != c.thread || a != c.agent {
			t.Errorf("%s: %q %q %q %q", c.in, tr, p, th, a)
		}
	}
	for _, bad := range []string{"", "nocolons", "cli:", "cli:x", "cli::x", "cli:x:", "cli:x:@helper", "Cli:x:y", "agents:x:y", "../x:y:z", "cli:x:\xff", "cli:" + strings.Repeat("x", 2000) + ":y"} {
		if id, err := ParseThreadID(bad); err == nil {
			t.Errorf("%q was taken as %q", bad, id)
		}
	}
	if _, err := NewThreadID("cli", "a:b", "c", "helper"); err == nil {
		t.Error("a colon in the place was taken")
	}
}

func TestSegmentsAreSafeAndDistinct(t *testing.T) {
	t.Parallel()
	names := []string{"", ".", "..", "...", ".hidden", "a", "A", "skills", "Skills", "SKILLS", "log.jsonl", "MEMORY.md", "memory.md", "con",
		"spaces/ABC123", "spaces/abc123", "a b", " a", "a ", "a.", "x%2Fy", "x/y", "x~y", "~", "~~", "\x00", "\n", "\xff", "ж", "Ж", "\\srv", "C:x",
		strings.Repeat("a", 300), strings.Repeat("a", 301), strings.Repeat("ж", 200), strings.Repeat("/", 100)}
	seen := map[string]string{}
	for _, name := range names {
		enc := EncodeSegment(name)
		low := strings.ToLower(enc)
		if other, twice := seen[low]; twice {
			t.Errorf("%q and %q both become %q", name, other, enc)
		}
		seen[low] = name
		checkSegment(t, name, enc)
	}
	if got := EncodeSegment("1/2"); got != "1%2F2" {
		t.Error(got)
	}
}

func checkSegment(t *testing.T, name, enc string) {
	t.Helper()
	if enc == "" || enc == "." || enc == ".." || len(enc) > 255 || strings.ContainsAny(enc, "/\\:*?\"<>|\x00\n") || takenNames[strings.ToLower(enc)] {
		t.Errorf("%q becomes %q", name, enc)
	}
	if strings.Contains(enc, "~~") {
		return // too long to be read back
	}
	if back, err := DecodeSegment(enc); err != nil || back != name {
		t.Errorf("%q becomes %q becomes %q (%v)", name, enc, back, err)
	}
}

func FuzzThreadID(f *testing.F) {
	for _, s := range []string{"cli:ab12:01h@helper", "gchat:spaces/A:thread:with:colons", "discord:1/2:3@a-b", "a:..:..", "x:\x00:~", "cli:A:a@bb", "web:skills:log.jsonl"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkSegment(t, s, EncodeSegment(s))
		_, _ = DecodeSegment(s)
		id, err := ParseThreadID(s)
		if err != nil {
			return
		}
		tr, p, th, a := id.Parts()
		again, err := NewThreadID(tr, p, th, a)
		if err != nil || again != id {
			t.Fatalf("%q: %q %v", id, again, err)
		}
		dir := id.Dir()
		if path.Clean(dir) != dir || path.IsAbs(dir) || strings.Count(dir, "/") != 2 || strings.HasPrefix(dir, "..") {
			t.Fatalf("%q lies in %q", id, dir)
		}
	})
}

func TestEveryBodyComesBack(t *testing.T) {
	t.Parallel()
	blocks := Blocks{Text{Text: "a <b> & c", Signature: "s"}, Image{Blob: "h", MediaType: "image/png"}, Thinking{Text: "hm", Signature: "s"},
		ToolUse{ID: "1", Name: "bash", Args: json.RawMessage(`{"x":1}`), Signature: "s"},
		ToolResult{Call: "1", Blocks: Blocks{Text{Text: "out"}}, Failed: true}, File{Name: "f", Path: "@attachments/f"}}
	temp, two := 0.0, 2
	all := []Body{
		Received{From: Participant{ID: "1", Name: "Ada", Kind: Person}, Principal: Principal{Kind: OtherAgent, ID: "bo", For: &Principal{Kind: LocalUser, ID: "ada", Roles: []string{"x"}}}, Blocks: blocks, Intake: Queue, Prompt: true},
		Refused{1, "full"}, Edited{Seq: 1, Blocks: blocks, Files: true}, Deleted{Seq: 1}, Reacted{1, Participant{Name: "Ada"}, "x", true}, Imported{Source: "lca", Blob: "h", Count: 3, Instead: true},
		RunStarted{Run: "r", Model: "demo/echo", Settings: Settings{Temperature: &temp}, Head: "h"}, Took{"r", 1, []int64{1}},
		Asked{1, 2, "m", ForTurn, 9, "d", 5, 4, []string{"x"}}, Said{1, 1, blocks, Usage{1, 2, 3, 4}, StopEnd, false, &Failure{Kind: "x"}, false, []string{"{"}, 8, 7},
		ToolBegan{"1", "bash"}, ToolRan{Call: "1", Blocks: blocks[:1], Outcome: Ran, Read: []string{"a"}}, ApprovalAsked{ID: "a", Actions: []string{"x"}, Until: time.UnixMicro(5).UTC()},
		ApprovalAnswered{"a", "1", "ada", true, "n"}, Steered{Blocks: blocks[:1], Mode: Inject, Terms: Terms{Yes: true, By: "s"}}, AbortAsked{"r", "ada", true},
		Noted{What: "date", Text: "t", Whole: "w"}, ApprovalNoted{"a", "c", FirstYes, "ada", "n"}, Rolled{3, &two, "x"}, Compacted{UpTo: 3, Summary: "s", Read: []string{"a"}}, Cleared{3, "ada"},
		RunEnded{Run: "r", Reason: EndDone, Cost: 5}, Forked{"cli:a:b", 3},
	}
	if len(all) != 23 {
		t.Fatalf("%d bodies; the set has 23", len(all))
	}
	for _, body := range all {
		ev := Event{Thread: "cli:a:b", Seq: 1, At: time.UnixMicro(7).UTC(), Body: body}
		data, err := json.Marshal(ev)
		if err != nil {
			t.Errorf("%s: %v", body.Kind(), err)
			continue
		}
		var back Event
		if err := json.Unmarshal(data, &back); err != nil {
			t.Errorf("%s: %v", body.Kind(), err)
			continue
		}
		if !reflect.DeepEqual(back, ev) {
			t.Errorf("%s:\n%+v\n%+v", body.Kind(), ev, back)
		}
	}
	if _, err := DecodeBody("from_the_future", []byte("{}")); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("unknown kind: %v", err)
	}
}

func TestArgumentsThatAreNoJSONAreKept(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(Blocks{ToolUse{ID: "1", Name: "bash", Args: json.RawMessage(`{"cut of`)}, ToolUse{ID: "2", Name: "bash"}})
	if err != nil {
		t.Fatal(err)
	}
	var back Blocks
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if got := string(back.Calls()[0].Args); got != `"{\"cut of"` {
		t.Error(got)
	}
	if got := string(back.Calls()[1].Args); got != `{}` {
		t.Error(got)
	}
	for _, bad := range []string{`[{"type":"hologram"}]`, `[1]`, `{}`, `[{"type":"text","text":5}]`} {
		if err := json.Unmarshal([]byte(bad), new(Blocks)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestAgentNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"ab": true, strings.Repeat("a", 32): true, "a": false, "a_b": false, "-a": false, "a-": false, "A1": false, strings.Repeat("a", 33): false} {
		if ValidAgentName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
