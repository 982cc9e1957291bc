package attach

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"report.pdf":                           "report.pdf",
		"test file (1).txt":                    "test_file__1_.txt",
		"отчёт.pdf":                            "отчёт.pdf",
		"../../etc/passwd":                     "passwd",
		`C:\Users\me\notes.txt`:                "notes.txt",
		"..":                                   "file",
		"":                                     "file",
		"   ":                                  "file",
		".bashrc":                              "bashrc",
		"a\x00b\n.txt":                         "a_b_.txt",
		"evil\u202Etxt.exe":                    "evil_txt.exe",
		"what?.txt.":                           "what_.txt",
		"\xff\xfe.bin":                         "_.bin",
		strings.Repeat("a", 500):               strings.Repeat("a", 120),
		strings.Repeat("é", 100) + ".jpeg":     strings.Repeat("é", 57) + ".jpeg",
		"a." + strings.Repeat("b", 300):        "a." + strings.Repeat("b", 118),
		strings.Repeat("a", 119) + ".md/..md/": "file",
		// The ending stays as long as it is one.
		strings.Repeat("a", 120) + "." + strings.Repeat("b", 19): strings.Repeat("a", 100) + "." + strings.Repeat("b", 19),
		strings.Repeat("a", 120) + "." + strings.Repeat("b", 20): strings.Repeat("a", 120),
	} {
		if got := Name(said); got != want {
			t.Errorf("%.40q becomes %q, want %q", said, got, want)
		}
	}
}

// Whatever somebody calls a file, it stays in its folder and can be written.
func TestNamesAreNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./\\:a-c*? ]{0,300}`)).Draw(t, "said")
		name := Name(said)
		switch {
		case name == "" || len(name) > maxName || !utf8.ValidString(name):
			t.Fatalf("%q becomes %q", said, name)
		case strings.ContainsAny(name, `/\:*?"<>|`) || strings.ContainsFunc(name, unicode.IsControl):
			t.Fatalf("%q becomes %q", said, name)
		case name[0] == '.' || strings.HasSuffix(name, "."):
			t.Fatalf("%q becomes %q", said, name)
		case Name(name) != name:
			t.Fatalf("%q becomes %q, and that %q", said, name, Name(name))
		}
		seen := map[string]bool{}
		for range 3 {
			at := Path(time.UnixMilli(1700000000123), said, func(p string) bool { return seen[p] })
			if seen[at] || !filepath.IsLocal(at) || path.Dir(at) != Folder || len(path.Base(at)) > 200 {
				t.Fatalf("%q lies at %q", said, at)
			}
			seen[at] = true
		}
	})
}

func TestPath(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1700000000123)
	taken := map[string]bool{"attachments/1700000000123_a.tar.gz": true, "attachments/1700000000123_a.tar-2.gz": true}
	if got := Path(at, "a.tar.gz", func(p string) bool { return taken[p] }); got != "attachments/1700000000123_a.tar-3.gz" {
		t.Errorf("it lies at %s", got)
	}
	if got := Path(at, "CON", func(string) bool { return false }); got != "attachments/1700000000123_CON" {
		t.Errorf("it lies at %s", got)
	}
}
