package files

import (
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, tool, args, before, want string
		failed                         bool
		after                          string
	}{
		{"one", "str_replace", `{"path":"f","old_str":"l3","new_str":"X"}`, numbered(5),
			"Replaced at line 3 in f\n     1\tl1\n     2\tl2\n     3\tX\n     4\tl4\n     5\tl5", false, "l1\nl2\nX\nl4\nl5\n"},
		{"three lines around", "edit", `{"path":"f","old_string":"l6\nl7","new_string":"X\nY\nZ"}`, numbered(20),
			"Replaced at line 6 in f\n     3\tl3\n     4\tl4\n     5\tl5\n     6\tX\n     7\tY\n     8\tZ\n     9\tl8\n    10\tl9\n    11\tl10", false,
			strings.Replace(numbered(20), "l6\nl7", "X\nY\nZ", 1)},
		{"all", "FileEdit", `{"filePath":"f","oldString":"a","newString":"b","replaceAll":true}`, "a a\na\n", "Replaced 3 occurrences in f\n     1\tb b\n     2\tb", false, "b b\nb\n"},
		{"delete", "edit", `{"path":"f","old_string":"a\n","new_string":""}`, "a\nb\n", "Replaced at line 1 in f\n     1\tb", false, "b\n"},
		{"not found", "edit", `{"path":"f","old_string":"z","new_string":"y"}`, "a\n", "f: old_string was not found. Read the file again: it may have changed.", true, "a\n"},
		{"white space", "edit", `{"path":"f","old_string":"  if x {","new_string":"y"}`, "a\n\tif x {\n", "f: old_string was not found. Line 2 differs from its first line in white space only, if at all: read the file again.", true, "a\n\tif x {\n"},
		{"line numbers", "edit", `{"path":"f","old_string":"     1\ta","new_string":"y"}`, "a\n", "f: old_string was not found. Leave out the line numbers that read shows.", true, "a\n"},
		{"two", "edit", `{"path":"f","old_string":"a","new_string":"b"}`, "a\nx\na\n", "f: old_string appears 2 times (lines 1, 3). Give more of the text around it so that it is unique, or set replace_all.", true, "a\nx\na\n"},
		{"empty", "edit", `{"path":"f","old_string":"","new_string":"b"}`, "a\n", "f: old_string is empty. Use write for a new file.", true, "a\n"},
		{"same", "edit", `{"path":"f","old_string":"a","new_string":"a"}`, "a\n", "f: old_string and new_string are identical: nothing would change.", true, "a\n"},
		{"missing", "edit", `{"path":"g","old_string":"a","new_string":"b"}`, "a\n", "g does not exist.", true, "a\n"},
		{"crlf file", "edit", `{"path":"f","old_string":"a\nb","new_string":"x\ny"}`, "a\r\nb\r\nc\r\n", "Replaced at line 1 in f\n     1\tx\n     2\ty\n     3\tc", false, "x\r\ny\r\nc\r\n"},
		{"crlf file, one line", "edit", `{"path":"f","old_string":"b","new_string":"x\ny"}`, "a\r\nb\r\n", "Replaced at line 2 in f\n     1\ta\n     2\tx\n     3\ty", false, "a\r\nx\r\ny\r\n"},
		{"crlf text", "edit", `{"path":"f","old_string":"a\r\nb","new_string":"x\r\ny"}`, "a\nb\n", "Replaced at line 1 in f\n     1\tx\n     2\ty", false, "x\ny\n"},
		{"only endings differ", "edit", `{"path":"f","old_string":"a\nb","new_string":"a\r\nb"}`, "a\r\nb\r\n", "f: old_string and new_string are identical: nothing would change.", true, "a\r\nb\r\n"},
		{"bom", "edit", `{"path":"f","old_string":"a","new_string":"b"}`, "\ufeffa\n", "Replaced at line 1 in f\n     1\t\ufeffb", false, "\ufeffb\n"},
		{"bad json", "edit", `{"path":"x.json","old_string":"1","new_string":","}`, "[1]", "Replaced at line 1 in x.json\n     1\t[,]\nWarning: x.json is not valid JSON: invalid character ',' looking for beginning of value (line 1)", false, "[,]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := "f"
			if strings.Contains(tt.args, "x.json") {
				name = "x.json"
			}
			p := newPlace(t, map[string]string{name: tt.before})
			want(t, p.call(tt.tool, tt.args), tt.want, tt.failed)
			if got := p.get(name); got != tt.after {
				t.Errorf("%s holds %q, want %q", name, got, tt.after)
			}
		})
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "x\ny", false)
	f.Add("a\r\nb\r\n", "a\nb", "c", true)
	f.Add("aaa", "aa", "a", true)
	f.Add("a\nb\n", "a\r\nb", "x", false)
	f.Fuzz(func(t *testing.T, content, from, to string, all bool) {
		made, err := replace(content, from, to, all)
		if err != nil {
			return
		}
		if from == "" || made.content == content {
			t.Fatalf("nothing changed: %q %q %q", content, from, to)
		}
		if !strings.Contains(content, "\r") && !strings.Contains(from, "\r") && !strings.Contains(to, "\r") {
			if made.content != strings.ReplaceAll(content, from, to) || made.count != strings.Count(content, from) || made.count > 1 && !all {
				t.Fatalf("%q with %q for %q became %q (%d)", content, to, from, made.content, made.count)
			}
		}
		if n := strings.Count(made.content, "\n"); made.line < 1 || made.line > n+1 {
			t.Fatalf("line %d of %d", made.line, n)
		}
		_ = made.snippet()
	})
}
