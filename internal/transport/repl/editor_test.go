package repl

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEditor(t *testing.T) {
	t.Parallel()
	// Words in capitals are keys, the rest is typed.
	tests := []struct{ keys, want string }{
		{"abc LEFT LEFT x", "ax|bc"},
		{"abc HOME x END y", "xabcy|"},
		{"abc BACKSPACE BACKSPACE", "a|"},
		{"abc HOME DELETE", "|bc"},
		{"one SPACE two CTRL+W", "one |"},
		{"one SPACE two ALT+B x", "one x|two"},
		{"one SPACE two HOME ALT+F x", "onex| two"},
		{"one SPACE two LEFT CTRL+K", "one tw|"},
		{"one SPACE two LEFT CTRL+U", "|o"},
		{"ab ALT+ENTER cd HOME x", "ab\nx|cd"},
		{"ab SHIFT+ENTER cd UP x", "abx|\ncd"},
		{"ab CTRL+J cd UP HOME DOWN END x", "ab\ncdx|"},
		{"LEFT BACKSPACE DELETE RIGHT DOWN", "|"},
		{"UP", "older|"},
		{"UP UP", "oldest|"},
		{"UP UP UP DOWN", "older|"},
		{"draft UP DOWN", "draft|"},
		{"漢字 LEFT x", "漢x|字"},
	}
	for _, tt := range tests {
		e := newEditor([]string{"oldest", "older"})
		for key := range strings.FieldsSeq(tt.keys) {
			name := strings.ToLower(key)
			switch {
			case key == "SPACE":
				e.insert(" ")
			case key == "UP":
				e.vertical(-1, 20)
			case key == "DOWN":
				e.vertical(1, 20)
			case key == strings.ToUpper(key) && name != key:
				if !e.key(name) {
					t.Errorf("%s means nothing", name)
				}
			default:
				e.insert(key)
			}
		}
		got := string(e.text[:e.cursor]) + "|" + string(e.text[e.cursor:])
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.keys, got, tt.want)
		}
	}
}

func TestPastes(t *testing.T) {
	t.Parallel()
	e := newEditor(nil)
	e.insert("look: ")
	e.insertPaste("small\r\npaste\x1b[31m")
	big := strings.Repeat("line\n", 100_000)
	e.insertPaste(big)
	e.insert(" end")
	if got, want := e.value(), "look: small\npaste"+big+" end"; got != want {
		t.Errorf("value has %d bytes, want %d", len(got), len(want))
	}
	rows, _, _ := e.layout(40)
	if got, want := strings.Join(rows, "/"), "look: small/paste[pasted 100000 lines] end"; got != want {
		t.Errorf("drawn %q, want %q", got, want)
	}
	for range 5 {
		e.key("backspace")
	}
	if got, want := e.value(), "look: small\npaste"; got != want {
		t.Errorf("after one deletion too many: %q", got)
	}
	if e.take(); len(e.past) != 1 || !e.empty() {
		t.Errorf("past %q", e.past)
	}
}

// The cursor stays inside the box, and rows inside the width, whatever happens.
func TestEditorHolds(t *testing.T) {
	t.Parallel()
	keys := []string{"left", "right", "home", "end", "backspace", "delete", "ctrl+w", "ctrl+u", "ctrl+k", "alt+enter", "alt+b", "alt+f", "alt+d"}
	rapid.Check(t, func(t *rapid.T) {
		e := newEditor([]string{"past\ntwo", "漢字"})
		width := rapid.IntRange(0, 12).Draw(t, "width")
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				e.insert(rapid.StringN(0, 6, -1).Draw(t, "text"))
			case 1:
				e.insertPaste(strings.Repeat("x\n", rapid.IntRange(0, 20).Draw(t, "lines")))
			case 2:
				e.vertical(rapid.SampledFrom([]int{-1, 1}).Draw(t, "by"), width)
			case 3:
				e.take()
			default:
				e.key(rapid.SampledFrom(keys).Draw(t, "key"))
			}
			rows, x, y := e.layout(width)
			if e.cursor < 0 || e.cursor > len(e.text) || y < 0 || y >= len(rows) || x < 0 || x > max(width, 2) {
				t.Fatalf("cursor %d of %d at %d,%d in %q", e.cursor, len(e.text), x, y, rows)
			}
		}
	})
}

func TestSlash(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line, name, args string
		ok               bool
	}{
		{"/help", "help", "", true},
		{"  /Mode  plan ", "mode", "plan", true},
		{"/QUIT", "exit", "", true},
		{"/q", "exit", "", true},
		{"/steer do\nthis", "steer", "do\nthis", true},
		{"/usr/bin/env is missing", "", "", false},
		{"hello", "", "", false},
		{"/", "", "", true},
	}
	for _, tt := range tests {
		name, args, ok := slash(tt.line)
		if name != tt.name || args != tt.args || ok != tt.ok {
			t.Errorf("%q: %q %q %v", tt.line, name, args, ok)
		}
	}
	for name, want := range map[string]string{
		"stauts": "no command /stauts; did you mean /status?", "appr": "no command /appr; did you mean /approve-all?",
		"zzzzzzzz": "no command /zzzzzzzz; /help lists them", "": "no command /; /help lists them",
	} {
		if got := unknownWords(name, builtin()); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want verdict
		ok   bool
	}{
		{"y", verdict{ok: true}, true}, {" YES ", verdict{ok: true}, true}, {"a", verdict{ok: true, always: true}, true},
		{"n", verdict{}, true}, {"no, use make", verdict{note: "use make"}, true}, {"n: because", verdict{note: "because"}, true},
		{"", verdict{}, false}, {"yes please delete it all", verdict{}, false}, {"now what", verdict{}, false}, {"fix the bug", verdict{}, false},
	}
	for _, tt := range tests {
		got, ok := readVerdict(tt.line)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %+v %v", tt.line, got, ok)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(count(12), " ", count(12_340), " ", count(123_456), " ", count(2_500_000), " ", money(0), money(1_200_000), " ", money(1_234_000_000),
		" ", duration(0), " ", duration(1500e6), " ", duration(125e9))
	if want := "12 12.3k 123k 2.5M $0.0012 $1.23 1ms 1.5s 2m05s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What was pasted is counted as a person counts it, and is not written out again when it is sent.
func TestLongPastes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line\n", 5000)
	var e editor
	e.insertPaste(long)
	if rows, _, _ := e.layout(60); len(rows) != 1 || rows[0] != "[pasted 5000 lines]" {
		t.Errorf("%q", rows)
	}
	if got := shortened(long); strings.Count(got, "\n") != heardLines || !strings.Contains(got, "\n… 4980 more lines\n") {
		t.Errorf("%q", got)
	}
	if got := shortened("two\nlines"); got != "two\nlines" {
		t.Errorf("%q", got)
	}
}
