package session

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

// describe writes lines shortly: "user:hi", "assistant:ok+read(c1)", "tool:c1/read=text!".
func describe(lines []chat.Line) []string {
	var out []string
	for _, l := range lines {
		text := l.Role + ":" + l.Blocks.Text()
		for _, block := range l.Blocks {
			switch b := block.(type) {
			case chat.ToolUse:
				text += "+" + b.Name + "(" + b.ID + ")" + string(b.Args)
			case chat.ToolResult:
				text += b.Call + "/" + b.Name + "=" + b.Blocks.Text()
				if b.Failed {
					text += "!"
				}
			case chat.File:
				text += "@" + b.Name
			}
		}
		out = append(out, text)
	}
	return out
}

func read(t *testing.T, text string) (Log, []string) {
	t.Helper()
	var warnings []string
	log, err := Read(strings.NewReader(text), func(w string) { warnings = append(warnings, w) })
	if err != nil {
		t.Fatal(err)
	}
	return log, warnings
}

func logOf(data ...string) string {
	var out strings.Builder
	for _, d := range data {
		out.WriteString(`{"timestamp":"2024-01-15T10:30:00Z","data":` + d + "}\n")
	}
	return out.String()
}

const (
	user1      = `{"type":"message","role":"user","content":"hi"}`
	assistant1 = `{"type":"message","role":"assistant","content":"ok","toolCalls":[{"callId":"c1","name":"read","argsJson":"{\"path\":\"a\"}"}]}`
	tool1      = `{"type":"message","role":"tool","callId":"c1","toolName":"read","result":{"ok":true,"stdout":"text"}}`
)

func TestRead(t *testing.T) {
	t.Parallel()
	whole := []string{"user:hi", `assistant:ok+read(c1){"path":"a"}`, "tool:c1/read=text"}
	dangling := []string{"user:hi", `assistant:ok+read(c1){"path":"a"}`, "tool:c1/read=" + interrupted + "!"}
	tests := []struct {
		name, text string
		want       []string
		warns      []string // one substring per warning
	}{
		{"empty", "", nil, nil},
		{"three messages with their ids", logOf(user1, assistant1, tool1), whole, nil},
		{"a BOM and CRLF", "\ufeff" + strings.ReplaceAll(logOf(user1, assistant1, tool1), "\n", "\r\n"), whole, nil},
		{"no toolName, as in the document", logOf(user1, assistant1, strings.Replace(tool1, `"toolName":"read",`, "", 1)), whole, nil},
		{"types in capitals", logOf(`{"type":"Message","role":"User","content":"hi"}`), []string{"user:hi"}, nil},
		{"only messages count", logOf(`{"type":"user_prompt","content":"no"}`, user1, `{"type":"event","eventType":"TextDelta","data":{"text":"x"}}`), []string{"user:hi"}, nil},
		{"blank lines", "\n \n" + logOf(user1) + "\n\n", []string{"user:hi"}, nil},
		{"not JSON", logOf(user1) + "{oops\n" + logOf(`{"type":"message","role":"assistant","content":"yes"}`), []string{"user:hi", "assistant:yes"}, []string{"line 2: skipped"}},
		{"a torn last line", logOf(user1) + `{"timestamp":"2024-01-15T10:30:00Z","data":{"ty`, []string{"user:hi"}, []string{"line 2: it was cut off"}},
		{"a whole last line without its end", strings.TrimSuffix(logOf(user1), "\n"), []string{"user:hi"}, nil},
		{"JSON that is no entry", logOf(user1) + `{"timestamp":"x","error":"e"}` + "\n[]\n3\n" + logOf(`{"role":"user"}`), []string{"user:hi"}, []string{"line 3", "line 4"}},
		{"an unknown role", logOf(`{"type":"message","role":"narrator","content":"x"}`), nil, []string{`"narrator"`}},
		{"empty messages", logOf(`{"type":"message","role":"user","content":""}`, `{"type":"message","role":"assistant"}`), nil, nil},
		{"a call without its result", logOf(user1, assistant1), dangling, []string{"never got a result"}},
		{"a result without its call", logOf(user1, tool1), []string{"user:hi"}, []string{"unknown or already answered"}},
		{"two results for one call", logOf(user1, assistant1, tool1, tool1), whole, []string{"already answered"}},
		{"a tool message without a result", logOf(user1, assistant1, `{"type":"message","role":"tool","callId":"c1"}`), dangling, []string{"line 3", "never got a result"}},
		{"a result of the wrong kind", logOf(user1, assistant1, `{"type":"message","role":"tool","callId":"c1","result":{"ok":"maybe"}}`), dangling, []string{"line 3", "never got a result"}},
		{"a result that is text", logOf(user1, assistant1, `{"type":"message","role":"tool","callId":"c1","result":"text"}`), whole, nil},
		{"words between call and result", logOf(assistant1, user1, tool1), []string{whole[1], whole[2], "user:hi"}, nil},
		{"a malformed call", logOf(`{"type":"message","role":"assistant","content":"x","toolCalls":[{"name":"read"},7]}`), []string{"assistant:x"}, []string{"was dropped", "was dropped"}},
		{"arguments as an object, none, and broken", logOf(`{"type":"message","role":"assistant","toolCalls":[{"callId":"a","name":"x","argsJson":{"k":1}},{"callId":"b","name":"y"},{"callId":"c","name":"z","argsJson":"{"}]}`),
			[]string{`assistant:+x(a){"k":1}+y(b){}+z(c)"{"`, "tool:a/x=" + interrupted + "!", "tool:b/y=" + interrupted + "!", "tool:c/z=" + interrupted + "!"}, []string{"", "", ""}},
		{"an id used twice", logOf(assistant1, tool1, assistant1, tool1), []string{whole[1], whole[2], `assistant:ok+read(c1-2){"path":"a"}`, "tool:c1-2/read=text"}, nil},
		{"an id used again before its result", logOf(assistant1, assistant1, tool1),
			[]string{whole[1], dangling[2], `assistant:ok+read(c1-2){"path":"a"}`, "tool:c1-2/read=text"}, []string{"never"}},
		{"cleared", logOf(user1, `{"type":"event","eventType":"Cleared","data":{"upTo":4}}`, `{"type":"message","role":"user","content":"anew"}`), []string{"user:anew"}, nil},
		{"attachments", logOf(`{"type":"message","role":"user","content":"see","attachments":[{"name":"a.png","blob":"ff"}]}`), []string{"user:see@a.png"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log, warnings := read(t, tt.text)
			if got := describe(log.Lines()); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if len(warnings) != len(tt.warns) {
				t.Fatalf("warnings %q, want %q", warnings, tt.warns)
			}
			for i, w := range tt.warns {
				if !strings.Contains(warnings[i], w) {
					t.Errorf("warning %q does not say %q", warnings[i], w)
				}
			}
		})
	}
}

func TestReadDetails(t *testing.T) {
	t.Parallel()
	log, _ := read(t, logOf(`{"type":"session_start","sessionId":"abc123","repoRoot":"/r","provider":"openai","model":"m","mode":"repl","resumed":true}`,
		`{"type":"message","role":"user","content":"hi","userId":"7","userName":"Ada"}`))
	if log.Start.SessionID != "abc123" || !log.Start.Resumed || log.Start.RepoRoot != "/r" || log.Start.Model != "m" {
		t.Errorf("start %+v", log.Start)
	}
	l := log.Lines()[0]
	if l.At.Year() != 2024 || l.From != (chat.Participant{ID: "7", Name: "Ada", Kind: chat.Person}) {
		t.Errorf("line %+v", l)
	}
	if lines := log.Lines(); len(lines) == 1 {
		lines[0].Role = "changed"
		if log.Lines()[0].Role != "user" {
			t.Error("a caller changed the log")
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	const setA, setB = `{"type":"work_note","key":"a","value":"1"}`, `{"type":"work_note","key":"b","value":""}`
	tests := []struct {
		name string
		data []string
		want map[string]string
	}{
		{"none", nil, map[string]string{}},
		{"set a, set b, clear a", []string{setA, setB, `{"type":"work_note","key":"a"}`}, map[string]string{"b": ""}},
		{"a null clears too", []string{setA, `{"type":"work_note","key":"a","value":null}`}, map[string]string{}},
		{"clear all", []string{setA, setB, `{"type":"Work_Note_Clear_All"}`}, map[string]string{}},
		{"set again", []string{setA, `{"type":"work_note","key":"a","value":"2"}`}, map[string]string{"a": "2"}},
		{"a value that is no text", []string{`{"type":"work_note","key":"a","value":{"x":1}}`, `{"type":"work_note","value":"keyless"}`}, map[string]string{"a": `{"x":1}`}},
	}
	for _, tt := range tests {
		if log, _ := read(t, logOf(tt.data...)); !maps.Equal(log.Notes, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, log.Notes, tt.want)
		}
	}
}

func TestResultText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"ok":true}`: "OK", `{"ok":false}`: "Error",
		`{"ok":true,"stdout":"out","data":{"exitCode":0}}`:                                            "{\"exitCode\":0}\nout",
		`{"ok":false,"stdout":"out","stderr":"err"}`:                                                  "out\nerr",
		`{"ok":false,"stderr":"bad","diagnostics":[{"message":"bad"},{"code":"Hint","message":"x"}]}`: "bad\nx",
		`{"ok":true,"data":null,"stdout":"o"}`:                                                        "o",
	} {
		log, _ := read(t, logOf(assistant1, `{"type":"message","role":"tool","callId":"c1","result":`+in+`}`))
		got := log.Lines()[1].Blocks[0].(chat.ToolResult)
		if got.Blocks.Text() != want || got.Failed != strings.Contains(in, `"ok":false`) {
			t.Errorf("%s: got %q, failed %v", in, got.Blocks.Text(), got.Failed)
		}
	}
}

func TestHugeLines(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 10<<20)
	log, warnings := read(t, logOf(`{"type":"message","role":"user","content":"`+huge+`"}`, user1))
	if len(warnings) != 0 || len(log.Lines()) != 2 || len(log.Lines()[0].Blocks.Text()) != len(huge) {
		t.Errorf("10 MB: %d lines, %v", len(log.Lines()), warnings)
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	_, err := Read(io.MultiReader(strings.NewReader(logOf(user1)), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("got %v", err)
	}
}

// paired says what is wrong with a conversation, or "".
func paired(lines []chat.Line) string {
	ids := map[string]bool{}
	var open []chat.ToolUse
	for _, l := range lines {
		if l.Role == "tool" {
			r, ok := l.Blocks[0].(chat.ToolResult)
			if !ok || len(l.Blocks) != 1 || len(open) == 0 || r.Call != open[0].ID || r.Name != open[0].Name {
				return "a result out of place"
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return "a call without a result"
		}
		if len(l.Blocks) == 0 {
			return "an empty line"
		}
		open = l.Blocks.Calls()
		for _, c := range open {
			if ids[c.ID] {
				return "an id twice"
			}
			ids[c.ID] = true
		}
	}
	if len(open) > 0 {
		return "a call without a result at the end"
	}
	return ""
}

func TestRepairAlwaysPairs(t *testing.T) {
	t.Parallel()
	id := rapid.SampledFrom([]string{"", "a", "b", "a-2", "c"})
	block := rapid.Custom(func(t *rapid.T) chat.Block {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return chat.ToolUse{ID: id.Draw(t, "id"), Name: "x"}
		case 1:
			return chat.ToolResult{Call: id.Draw(t, "call"), Blocks: chat.TextBlocks("r")}
		default:
			return chat.Text{Text: "t"}
		}
	})
	line := rapid.Custom(func(t *rapid.T) chat.Line {
		return chat.Line{
			Role:   rapid.SampledFrom([]string{"user", "assistant", "tool", "odd"}).Draw(t, "role"),
			Blocks: rapid.SliceOfN(block, 0, 4).Draw(t, "blocks"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 12).Draw(t, "lines")
		once := Repair(lines, nil)
		if wrong := paired(once); wrong != "" {
			t.Fatalf("%s in %q", wrong, describe(once))
		}
		if twice := Repair(once, func(w string) { t.Fatal(w) }); strings.Join(describe(twice), "\n") != strings.Join(describe(once), "\n") {
			t.Fatalf("repairing again changed %q to %q", describe(once), describe(twice))
		}
	})
}

func FuzzSessionLog(f *testing.F) {
	f.Add([]byte(logOf(user1, assistant1, tool1)))
	f.Add([]byte("\ufeff" + logOf(assistant1, user1)))
	f.Add([]byte(logOf(`{"type":"work_note","key":"a","value":"1"}`, `{"type":"work_note_clear_all"}`) + `{"timestamp":"x","da`))
	f.Add([]byte(logOf(`{"type":"message","role":"assistant","toolCalls":[null,{"callId":"a","name":"b","argsJson":7}],"seq":9,"left":2}`)))
	f.Add([]byte("{\"timestamp\":1,\"data\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"\x00\xff\"}}\n\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := Read(strings.NewReader(string(data)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := paired(log.Lines()); wrong != "" {
			t.Fatal(wrong)
		}
		for _, mode := range []string{"full", "last-1", "summary"} {
			if wrong := paired(Resume(log.Lines(), mode, nil)); wrong != "" {
				t.Fatal(mode, wrong)
			}
		}
	})
}
