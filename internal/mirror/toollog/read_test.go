package toollog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/mirror/jsonl"
)

func TestReadChapter3(t *testing.T) {
	t.Parallel()
	channels, problems, err := Read(filepath.Join("testdata", "chapter3"))
	if err != nil {
		t.Fatal(err)
	}
	if len(channels) != 2 || channels[0].Agent != "Claude" || channels[0].Name != "123456" || channels[1].Agent != "opus-3" || channels[1].Name != "99" {
		t.Fatalf("%+v", channels)
	}
	var got []string
	for _, c := range channels {
		for _, e := range c.Entries {
			got = append(got, strings.Join([]string{e.At.Format(time.RFC3339Nano), e.Call.ID, e.Call.Name, string(e.Call.Input), e.Call.MessageID,
				strings.Join(e.Call.BotMessageIDs, "+"), e.Result.Answer(), e.Result.Error}, " | "))
		}
	}
	want := []string{
		`2025-01-02T10:15:00.123Z | call_1 | read | {"path":"a.txt"} | m1 | b1+b2 | hello <world> | `,
		`2025-01-02T10:15:01Z | call_2 | list | {} | m1 | b1 | {"files":["a","b"]} | `,
		`2025-01-02T10:16:40Z | call_3 | draw | "a cat" | 1234 |  |  | `,
		`2025-01-02T10:16:40Z | call_1 | read | {"path":"b.txt"} | m2 |  | no such file | no such file`,
		`2025-01-02T09:30:00Z | w1 | web | {"q":1} | m9 |  | r | `,
		`2025-01-02T09:31:00Z | w2 | web | {} | m9 |  | s | `,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var told []string
	for _, p := range problems {
		told = append(told, strings.TrimPrefix(filepath.ToSlash(p.String()), "testdata/chapter3/"))
	}
	wantTold := []string{
		"Claude/123456/2025-01-02T10.jsonl:6:36: broken line, left out: unexpected end of JSON input",
		"Claude/123456/2025-01-02T10.jsonl:7: no time in it; that of the line before or the file's hour is taken",
		"Claude/123456/2025-01-02T10.jsonl:8: no call in it, left out",
		"Claude/123456/2025-01-02T10.jsonl:9: the call of gone has no result, left out",
		"opus-3/99/2025-13-40T99.jsonl: its name is no date and hour; left out",
		"opus-3/99/notes.jsonl: not named by an hour (YYYY-MM-DDTHH.jsonl); left out",
	}
	if !slices.Equal(told, wantTold) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(wantTold, "\n"))
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	c, _, err := ReadChannel(filepath.Join("testdata", "chapter3", "Claude", "123456"))
	if err != nil {
		t.Fatal(err)
	}
	lines, blobs := c.Lines()
	got, err := json.MarshalIndent(lines, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "lines.json")
	if *update {
		put(t, golden, string(got)+"\n")
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(blobs) != 1 || blobs[0].Hash != chat.NewBlob(blobs[0].Data).Hash || !bytes.Contains(want, []byte(blobs[0].Hash)) {
		t.Errorf("%d blobs", len(blobs))
	}
	paired(t, lines)
}

// paired checks that every call has an id of its own and one result right behind it.
func paired(t testing.TB, lines []chat.Line) {
	t.Helper()
	seen := map[string]bool{}
	for i := 0; i < len(lines); i += 2 {
		if lines[i].Role != "assistant" || i+1 >= len(lines) || lines[i+1].Role != "tool" {
			t.Fatalf("line %d is out of order", i)
		}
		calls, results := lines[i].Blocks.Calls(), lines[i+1].Blocks
		if len(calls) == 0 || len(calls) != len(results) {
			t.Fatalf("line %d: %d calls, %d results", i, len(calls), len(results))
		}
		for n, call := range calls {
			if seen[call.ID] || results[n].(chat.ToolResult).Call != call.ID || !json.Valid(call.Args) || call.Args[0] != '{' {
				t.Fatalf("line %d: %+v %+v", i, call, results[n])
			}
			seen[call.ID] = true
		}
	}
}

func TestReadNothing(t *testing.T) {
	t.Parallel()
	if _, _, err := Read(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing folder is no error")
	}
	if channels, problems, err := Read(t.TempDir()); err != nil || len(channels)+len(problems) != 0 {
		t.Errorf("%v %v %v", channels, problems, err)
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	line := func(id string, n int) string {
		return `{"call":{"id":"` + id + `","name":"x"},"result":{"output":"` + strings.Repeat("a", n) + `"},"timestamp":1}` + "\n"
	}
	entries, problems := readLines(strings.NewReader(line("a", 200_000)+line("b", 300_000)+line("c", 1)), "f", time.Unix(0, 0), 300_000)
	if len(entries) != 2 || len(entries[0].Result.Answer()) != 200_000 || entries[1].Call.ID != "c" {
		t.Errorf("%d entries", len(entries))
	}
	if len(problems) != 1 || problems[0].Line != 2 {
		t.Errorf("%v", problems)
	}
}

// FuzzRead: no file stops the reader; whatever it gives can be imported, and every
// line that holds something is either given or told about.
func FuzzRead(f *testing.F) {
	for _, path := range []string{"Claude/123456/2025-01-02T10.jsonl", "opus-3/99/2025-01-02-09.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", "chapter3", filepath.FromSlash(path)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"call":{"name":["a"],"input":[1],"botMessageIds":[1,null,"x"]},"result":{"images":[{"blob":"b"},{},null,7]},"timestamp":-1}`))
	f.Add([]byte("null\n[]\n\"\"\n{}\n\xff\xfe\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, problems := readLines(bytes.NewReader(data), "f", time.Unix(0, 0).UTC(), jsonl.MaxLine)
		full := 0
		for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
			if len(bytes.TrimSpace(line)) > 0 {
				full++
			}
		}
		if len(entries)+len(problems) < full {
			t.Fatalf("%d lines, %d entries, %d problems", full, len(entries), len(problems))
		}
		c := Channel{Agent: "a", Name: "c", Entries: tidy(entries)}
		lines, _ := c.Lines()
		paired(t, lines)
		if _, err := json.Marshal(lines); err != nil {
			t.Fatal(err)
		}
	})
}
