package files

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The vectors were computed with the coding agent's own rule.
func TestLineHash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"line1", 1, "ZM"}, {"line2", 2, "XM"}, {"line3", 3, "NQ"}, {"aaa", 1, "RH"}, {"bbb", 2, "WS"}, {"ccc", 3, "ZZ"},
		{"hello world", 1, "MM"}, {"hello world", 99, "MM"}, {"hello world \t\r", 7, "MM"}, {"}", 5, "WN"}, {"}", 6, "JV"},
	} {
		if got := lineHash(c.text, c.line); got != c.want {
			t.Errorf("%q in line %d: %s, want %s", c.text, c.line, got, c.want)
		}
	}
	// Published values of XXH32, of short and of long texts.
	for text, want := range map[string]uint32{"": 0x02CC5D05, "a": 0x550D7456, "abc": 0x32D153FF, "Nobody inspects the spammish repetition": 0xE2293B2F} {
		if got := xxh32(text, 0); got != want {
			t.Errorf("%q: %08x, want %08x", text, got, want)
		}
	}
}

// HashlineEdit was a word in rules only: there was no such tool.
func TestHashlineEdit(t *testing.T) {
	t.Parallel()
	const abc = "aaa\nbbb\nccc\n"
	tests := []struct {
		name, tool, args, before, want string
		failed                         bool
		after                          string
	}{
		{"replace", "hashline_edit", `{"path":"f","edits":[{"op":"replace","pos":"2#WS","lines":["x","y"]}]}`, abc,
			"Made 1 edit in f\n1#RH|aaa\n2#" + lineHash("x", 2) + "|x\n3#" + lineHash("y", 3) + "|y\n4#ZZ|ccc", false, "aaa\nx\ny\nccc\n"},
		{"a stale hash", "hashline_edit", `{"path":"f","edits":[{"op":"replace","pos":"1#RH","lines":["x"]},{"op":"replace","pos":"2#ZZ","lines":["x"]}]}`, abc,
			"f: the file has changed since it was read, so nothing was edited. The lines that were named are now (marked >>>):\n    1#RH|aaa\n>>> 2#WS|bbb\n    3#ZZ|ccc", true, abc},
		{"the other spelling", "HashlineEdit", `{"filePath":"f","edits":[{"op":"replace","pos":"2#WS","end":null,"lines":"x\ny"}]}`, abc, "Made 1 edit in f", false, "aaa\nx\ny\nccc\n"},
		{"delete", "HashlineEdit", `{"filePath":"f","edits":[{"op":"replace","pos":"1#RH","end":"2#WS","lines":null}]}`, abc, "Made 1 edit in f", false, "ccc\n"},
		{"several refer to what was read", "hashline_edit", `{"path":"f","edits":[{"op":"append","pos":"1#RH","lines":["1"]},{"op":"prepend","pos":"2#WS","lines":["2"]},{"op":"replace","pos":"2#WS","lines":["B"]},{"op":"append","lines":["end"]},{"op":"prepend","lines":["top"]}]}`, abc,
			"Made 5 edits in f", false, "top\naaa\n1\n2\nB\nccc\nend\n"},
		{"said twice", "hashline_edit", `{"path":"f","edits":[{"op":"append","pos":"3#ZZ","lines":["1"]},{"op":"append","pos":"3#ZZ","lines":["1"]}]}`, abc, "Made 2 edits in f", false, abc + "1\n"},
		{"copied prefixes", "hashline_edit", `{"path":"f","edits":[{"op":"replace","pos":">>> 2#WS|bbb","lines":["2#WS|xxx","yyy"]}]}`, abc, "Made 1 edit in f", false, "aaa\nxxx\nyyy\nccc\n"},
		{"overlap", "hashline_edit", `{"path":"f","edits":[{"op":"replace","pos":"1#RH","end":"2#WS"},{"op":"replace","pos":"2#WS","lines":["x"]}]}`, abc,
			"f: edits 1 and 2 are about the same lines: make one of them.", true, abc},
		{"inside of a range", "hashline_edit", `{"path":"f","edits":[{"op":"append","pos":"2#WS","lines":["x"]},{"op":"replace","pos":"1#RH","end":"3#ZZ"}]}`, abc,
			"f: edits 1 and 2 are about the same lines: make one of them.", true, abc},
		{"nothing changes", "hashline_edit", `{"path":"f","edits":[{"op":"replace","pos":"2#WS","lines":["bbb"]}]}`, abc, "Nothing changed: f has these lines already.", false, abc},
		{"past the end", "hashline_edit", `{"path":"f","edits":[{"op":"replace","pos":"9#WS"}]}`, abc, "f: edit 1: there is no line 9; the file has 3.", true, abc},
		{"no line", "hashline_edit", `{"path":"f","edits":[{"op":"replace","pos":"bbb"}]}`, abc, `f: edit 1: "bbb" is not a line: write number#hash as read shows it, such as 12#MM.`, true, abc},
		{"unknown", "hashline_edit", `{"path":"f","edits":[{"op":"drop","pos":"2#WS","lines":["x"]}]}`, abc, `f: edit 1: unknown op "drop"; there are replace, append and prepend.`, true, abc},
		{"unknown, without a line", "hashline_edit", `{"path":"f","edits":[{"op":"drop","lines":["x"]}]}`, abc, `f: edit 1: unknown op "drop"; there are replace, append and prepend.`, true, abc},
		{"missing", "hashline_edit", `{"path":"g","edits":[{"op":"append","lines":["x"]}]}`, abc, "g does not exist. Use write for a new file.", true, abc},
		{"crlf and bom", "hashline_edit", `{"path":"f","edits":[{"op":"append","pos":"1#RH","lines":["x"]}]}`, "\ufeffaaa\r\nbbb", "Made 1 edit in f", false, "\ufeffaaa\r\nx\r\nbbb"},
		{"no newline at the end", "hashline_edit", `{"path":"f","edits":[{"op":"append","lines":["x"]}]}`, "aaa", "Made 1 edit in f", false, "aaa\nx"},
		{"an empty file", "hashline_edit", `{"path":"f","edits":[{"op":"append","lines":["x"]}]}`, "", "Made 1 edit in f", false, "x\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, map[string]string{"f": tt.before})
			res := p.call(tt.tool, tt.args)
			if text := res.Blocks.Text(); !strings.HasPrefix(text, tt.want) || res.Failed != tt.failed {
				t.Errorf("failed %v: %q, want %q", res.Failed, text, tt.want)
			}
			if got := p.get("f"); got != tt.after {
				t.Errorf("f holds %q, want %q", got, tt.after)
			}
		})
	}
}

// TestReadShowsHashes: only while hashline_edit is offered, and what is shown can be edited.
func TestReadShowsHashes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"f": "\ufeffaaa\r\nbbb \n}\n" + strings.Repeat("x", 3000)})
	want(t, p.call("read", `{"path":"f","limit":1}`), "     1\taaa\n[Showing lines 1-1 of 4. Continue with offset=2.]", false)
	p.roots.ShowLineHashes(true)
	text := p.call("read", `{"path":"f"}`).Blocks.Text()
	if want := "1#RH|aaa\n2#WS|bbb \n3#" + lineHash("}", 3) + "|}\n4|xxx"; !strings.HasPrefix(text, want) {
		t.Errorf("%.80q, want %q", text, want)
	}
	p.roots.ShowLineHashes(false)
	want(t, p.call("read", `{"path":"f","offset":2,"limit":1}`), "     2\tbbb \n[Showing lines 2-2 of 4. Continue with offset=3.]", false)
}

// TestHashlineRule: lines that no edit names are the same bytes as before, edits in any order
// give one text, and edits on a text that was changed at the named line change nothing.
func TestHashlineRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringMatching(`(\x{FEFF})?([a-c} ]{0,3}(\r?\n)){0,8}([a-c]{0,2})?`).Draw(t, "content")
		lines := splitLines(strings.TrimPrefix(content, bom))
		var edits []hashlineEdit
		touched := map[int]bool{}
		for i := range lines {
			if !rapid.Bool().Draw(t, "edit") {
				continue
			}
			touched[i] = true
			edits = append(edits, hashlineEdit{Op: "replace", Pos: fmt.Sprintf("%d#%s", i+1, lineHash(lines[i].text, i+1)),
				Lines: rapid.SliceOfN(rapid.StringMatching(`[x-z]{1,3}`), 0, 3).Draw(t, "lines")})
		}
		if len(edits) == 0 {
			return
		}
		got, err := hashlineApply(content, edits)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for i, l := range lines {
			if !touched[i] {
				kept = append(kept, l.text)
			}
		}
		var left []string
		for _, l := range splitLines(strings.TrimPrefix(got, bom)) {
			if !strings.ContainsAny(l.text, "xyz") {
				left = append(left, l.text)
			}
		}
		if strings.Join(kept, "\n") != strings.Join(left, "\n") || strings.HasPrefix(got, bom) != strings.HasPrefix(content, bom) {
			t.Fatalf("%q became %q", content, got)
		}
		other, err := hashlineApply(content, rapid.Permutation(edits).Draw(t, "order"))
		if err != nil || other != got {
			t.Fatalf("in another order: %q, %v; want %q", other, err, got)
		}
		stale := edits[0]
		stale.Pos = stale.Pos[:len(stale.Pos)-2] + map[bool]string{true: "ZP", false: "ZZ"}[strings.HasSuffix(stale.Pos, "ZZ")]
		if _, err := hashlineApply(content, append(edits[1:], stale)); err == nil || !strings.Contains(err.Error(), ">>> ") {
			t.Fatalf("a stale hash: %v", err)
		}
	})
}

func FuzzHashlineEdit(f *testing.F) {
	f.Add("a\nb\n", "replace", "1#RH", "", "x")
	f.Add("\ufeffa\r\nb", "append", "", "", "2#WS|x")
	f.Add("", "prepend", "0#ZZ", "9#ZZ", "")
	f.Fuzz(func(t *testing.T, content, op, pos, end, line string) {
		got, err := hashlineApply(content, []hashlineEdit{{Op: op, Pos: pos, End: end, Lines: []string{line}}})
		if err == nil && utf8.ValidString(content) && utf8.ValidString(line) && !utf8.ValidString(got) {
			t.Fatalf("%q", got)
		}
		if n := len(splitLines(content)); err == nil && op != "replace" && len(splitLines(got)) < n {
			t.Fatalf("an insertion took lines away: %q", got)
		}
	})
}
