package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"chorus/internal/programtest"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func put(t testing.TB, dir, name, content string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newSet(t testing.TB, dir, rg string) *tool.Set {
	t.Helper()
	roots, err := files.NewRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roots.Close() })
	set, err := tool.NewSet(New(roots, Options{Ripgrep: rg}))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func call(t testing.TB, set *tool.Set, name string, args string) (string, bool) {
	t.Helper()
	search, corrected, err := set.Resolve(name, []byte(args))
	if err != nil {
		return err.Error(), true
	}
	res, err := search.Run(t.Context(), corrected)
	if err != nil {
		t.Fatal(err)
	}
	return res.Blocks.Text(), res.Failed
}

// rg is ripgrep, or the test is skipped, loudly.
func rg(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("rg")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("ripgrep is needed in CI")
		}
		t.Skip("SKIPPED: ripgrep is not installed, its answers were not compared")
	}
	return path
}

func TestSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a.go": "one\nTwo func\nthree\nfour\nfive func\n", "b/c.go": "func c\n", "b/d.ts": "func d\n", "node_modules/x.go": "func x\n",
		".gitignore": "*.log\n", "x.log": "func log\n", "bin": "func\x00", "crlf": "a\r\nfunc\r\n", "latin": "caf\xe9 func\n",
		"long": strings.Repeat("é", 300) + " func\n", "deep.ts/f": "func f\n", ".git/x": "func\n", "@odd": "func odd\n",
	} {
		put(t, dir, name, content)
	}
	if err := os.Symlink("a.go", filepath.Join(dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, tool, args, want string
		failed                 bool
	}{
		{"by path and line", "search_files", `{"query":"func","include":["*.go"],"exclude":["node_modules"]}`, "a.go:2:Two func\na.go:5:five func\nb/c.go:1:func c", false},
		{"a directory", "search_files", `{"query":"func","path":"b"}`, "b/c.go:1:func c\nb/d.ts:1:func d", false},
		{"a file", "search_files", `{"query":"func","path":"b/c.go"}`, "b/c.go:1:func c", false},
		{"any case", "search_files", `{"query":"TWO"}`, "a.go:2:Two func", false},
		{"that case", "search_files", `{"query":"TWO","case_sensitive":true}`, "No matches found.", false},
		{"context", "SearchText", `{"query":"^t","includeGlobs":["a.*"],"contextLines":1,"caseSensitive":true}`, "a.go-2-Two func\na.go:3:three\na.go-4-four", false},
		{"context of two", "search_files", `{"query":"^T|^five","path":"a.go","context_lines":1}`, "a.go-1-one\na.go:2:Two func\na.go-3-three\n--\na.go-2-Two func\na.go:3:three\na.go-4-four\n--\na.go-4-four\na.go:5:five func", false},
		{"limit", "SearchText", `{"query":"func","includeGlobs":"*.go","excludeGlobs":"node_modules/**","maxResults":2}`, "a.go:2:Two func\na.go:5:five func\n[Only the first 2 matches are shown; narrow the query or the path.]", false},
		{"crlf", "search_files", `{"query":"func$","path":"crlf"}`, "crlf:2:func", false},
		{"not UTF-8", "search_files", `{"query":"caf. func","path":"latin"}`, "latin:1:caf\ufffd func", false},
		{"long line", "search_files", `{"query":" func","path":"long"}`, "long:1:" + strings.Repeat("é", 200) + "…", false},
		{"binary", "search_files", `{"query":"func","path":"bin"}`, "No matches found.", false},
		{"ignored", "search_files", `{"query":"log"}`, ".gitignore:1:*.log", false},
		{"an odd name", "search_files", `{"query":"odd"}`, "./@odd:1:func odd", false},
		{"bad regex", "search_files", `{"query":"("}`, "The query is not a regular expression: error parsing regexp: missing closing ): `(`. Escape special characters with a backslash.", true},
		{"what Go does not know", "search_files", `{"query":"(?=x)"}`, "The query is not a regular expression: error parsing regexp: invalid or unsupported Perl syntax: `(?=`. Escape special characters with a backslash.", true},
		{"empty", "search_files", `{"query":""}`, "The query is empty.", true},
		{"bad glob", "search_files", `{"query":"x","include":["[a"]}`, `"[a" is not a glob.`, true},
		{"outside", "search_files", `{"query":"x","path":".."}`, ".. is outside of the workspace. Only paths in the workspace can be used.", true},
		{"missing", "search_files", `{"query":"x","path":"none"}`, "none does not exist.", true},
	}
	for _, rg := range []string{"-", ""} {
		set := newSet(t, dir, rg)
		for _, tt := range tests {
			text, failed := call(t, set, tt.tool, tt.args)
			if text != tt.want || failed != tt.failed {
				t.Errorf("%s, rg %q: got %q failed=%v\nwant %q", tt.name, rg, text, failed, tt.want)
			}
		}
	}
}

// TestSameAnswers searches generated trees with and without ripgrep, and checks
// that ripgrep really had a part in it.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	real := rg(t)
	random := rand.New(rand.NewPCG(7, 11))
	words := []string{"alpha", "BETA", "gamma", "needle", "NeedLE", "foo.bar", "K\u212Aelvin", "\u017Ftrange", "x", "caf\xe9", "日本", "\r", "\x1b[0m", "a\x00b", "\ufeff", "tab\t", "func main() {", "id_42"}
	dir := t.TempDir()
	for i := range 120 { // enough for more than one batch
		var text strings.Builder
		for range random.IntN(30) {
			for range random.IntN(6) {
				text.WriteString(words[random.IntN(len(words))] + " ")
			}
			text.WriteString("\n")
		}
		if random.IntN(20) == 0 {
			text.WriteString(strings.Repeat("long ", 2000) + "needle")
		}
		put(t, dir, fmt.Sprintf("d%d/e%d/f%d.%s", random.IntN(4), random.IntN(3), i, []string{"go", "txt", "log"}[random.IntN(3)]), text.String())
	}
	put(t, dir, "-dash.txt", "needle\n")
	put(t, dir, ".hidden", "needle\n")
	put(t, dir, "d1/.gitignore", "*.log\n!f1*.log\n")
	put(t, dir, "d2/.ignore", "e1/\n")
	wide := append([]byte{0xff, 0xfe}, []byte("n\x00e\x00e\x00d\x00l\x00e\x00")...)
	put(t, dir, "utf16", string(wide))
	used := filepath.Join(t.TempDir(), "used")
	spy := filepath.Join(t.TempDir(), "rg")
	programtest.Write(t, spy, "#!/bin/sh\necho x >> "+used+"\nexec "+real+" \"$@\"\n")
	with, without := newSet(t, dir, spy), newSet(t, dir, "-")
	queries := []string{
		"needle", "NEEDLE", `foo\.bar`, "foo.bar", "kkelvin", "kelvin", "strange", `func \w+\(`, `id_\d+`, "(alpha|beta) gamma", "al(pha)+", "(?i)Beta", "(?-i)BETA", "^alpha", "gamma $", `\bneedle\b`, "日本", "caf.", "x", "", "a.*needle", "(needle){2}", `tab\t`, `\x1b\[0m`, "(?s)alpha.*", "nee[d]le", "needle|x", "none-of-it", "[", "--", "-e", `\Qfoo.bar\E`,
	}
	rests := []string{``, `,"case_sensitive":true`, `,"max_results":7`, `,"context_lines":2`, `,"include":["*.go"],"exclude":["e1"]`, `,"path":"d2"`, `,"max_results":500,"exclude":["*.txt"]`}
	for i, query := range queries {
		for _, rest := range []string{rests[0], rests[1+i%3], rests[4+i%3]} {
			quoted, _ := json.Marshal(query)
			args := `{"query":` + string(quoted) + rest + `}`
			a, failedA := call(t, with, "search_files", args)
			b, failedB := call(t, without, "search_files", args)
			if a != b || failedA != failedB {
				t.Errorf("%s\nwith ripgrep:    %.300q\nwithout ripgrep: %.300q", args, a, b)
			}
			if !utf8.ValidString(a) || len(a) > tool.MaxBytes {
				t.Errorf("%s: %d bytes", args, len(a))
			}
		}
	}
	if _, err := os.Stat(used); err != nil {
		t.Error("ripgrep was never asked")
	}
}

func TestBrokenRipgrepIsNoHarm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 100 {
		put(t, dir, fmt.Sprint("f", i), "needle\n")
	}
	for name, body := range map[string]string{"fails": "exit 2", "lies about nothing": "exit 127", "missing": ""} {
		fake := filepath.Join(t.TempDir(), "rg")
		if body != "" {
			programtest.Write(t, fake, "#!/bin/sh\n"+body+"\n")
		}
		if text, _ := call(t, newSet(t, dir, fake), "search_files", `{"query":"needle","max_results":200}`); strings.Count(text, "needle") != 100 {
			t.Errorf("%s: %d matches", name, strings.Count(text, "needle"))
		}
	}
}

func TestRequired(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]literal{
		"needle":        {"needle", false},
		"a+needle(x|y)": {"needle", false},
		"(foo)?":        {},
		"(foo){2,}":     {"foo", false},
		"foo|bar":       {},
		"fo*bar":        {"bar", false},
		"日本語":           {},
		"[xyz]":         {},
	} {
		if got := required(pattern); got != want {
			t.Errorf("%s: %+v, want %+v", pattern, got, want)
		}
	}
	if got := required("(?i)needle"); !got.folded || !strings.EqualFold(got.text, "needle") {
		t.Errorf("folded: %+v", got)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "f", "x\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	roots, err := files.NewRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	s := &searcher{roots: roots, rg: ripgrep("-")}
	if _, err := s.search(ctx, input{Query: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Files that rules keep from being read are not searched, by whatever name the search comes to them.
func TestHiddenFilesAreNotSearched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, ".env", "API=secret\n")
	put(t, dir, "a.txt", "API=public\n")
	put(t, dir, "keys/k", "API=key\n")
	for name, target := range map[string]string{"notes.txt": ".env", "more": "keys"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	hides := func(path string) bool { return path == ".env" || strings.HasPrefix(path, "keys/") }
	for _, rg := range []string{"-", ""} {
		set := newSet(t, dir, rg)
		for args, want := range map[string]string{
			`{"query":"API="}`:                    "a.txt:1:API=public\n[Left out because a rule keeps them from being read unasked: 2.]",
			`{"query":"API=","path":"notes.txt"}`: "No matches found.\n[Left out because a rule keeps them from being read unasked: 1.]",
			`{"query":"API=","path":"more"}`:      "No matches found.\n[Left out because a rule keeps them from being read unasked: 1.]",
		} {
			search, corrected, err := set.Resolve("search_files", []byte(args))
			if err != nil {
				t.Fatal(err)
			}
			res, err := search.Run(tool.WithCall(t.Context(), tool.Call{ID: "c", Hides: hides}), corrected)
			if err != nil || res.Blocks.Text() != want {
				t.Errorf("%s: %q %v", args, res.Blocks.Text(), err)
			}
		}
	}
}
