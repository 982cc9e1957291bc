package gitrepo

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBranchName(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"brave-otter", "Add a greeting", "brave-otter/add-a-greeting"},
		{"t1", "Fix: don't crash (again)!", "t1/fix-dont-crash-again"},
		{"t1", "  --upload-pack=evil  ", "t1/upload-pack-evil"},
		{"t1", "../../etc/passwd", "t1/etc-passwd"},
		{"t1", "", "t1/task"},
		{"t1", "🎉", "t1/task"},
		{"", "x", "task/x"},
		{"A b", "Größe ändern", "a-b/größe-ändern"},
		{"t1", "main.lock", "t1/main-lock"},
		{"t1", strings.Repeat("word ", 30), "t1/word-word-word-word-word-word-word-word-word-word"},
		{"t1", strings.Repeat("x", 200), "t1/" + strings.Repeat("x", 50)},
		{"t1", "a\nb\x00c\xffd", "t1/a-b-c-d"},
	} {
		if got := BranchName(tt[0], tt[1]); got != tt[2] {
			t.Errorf("BranchName(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

// FuzzBranchName: whatever a title is, its branch is one that we accept, and git does.
func FuzzBranchName(f *testing.F) {
	f.Add("t1", "Add x")
	f.Add("..", "a\u0301\u200d.lock")
	f.Fuzz(func(t *testing.T, id, title string) {
		name := BranchName(id, title)
		if err := CheckBranch(name); err != nil && len(id) < 100 {
			t.Errorf("BranchName(%q, %q) = %q: %v", id, title, name, err)
		}
		if !utf8.ValidString(name) || strings.Count(name, "/") != 1 {
			t.Errorf("BranchName(%q, %q) = %q", id, title, name)
		}
	})
}

// Names that git refuses, or takes for something else than a branch, are refused; the others git accepts.
func TestCheckBranch(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"main", "t1/work", "feature/größe", "a.b", "v1.0", "user@host"} {
		if err := CheckBranch(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if err := exec.Command("git", "check-ref-format", "--branch", name).Run(); err != nil {
			t.Errorf("git does not accept %q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "-x", "--upload-pack=touch evil", "a b", "a\nb", "a\x00b", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", `a\b`, "@", "HEAD", "@{-1}", "a@{1}",
		"/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "refs/heads/main", "\xff", strings.Repeat("a", 201),
	} {
		if err := CheckBranch(name); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://github.com/o/r.git", "https://git@host:8443/o/r", "ssh://git@host:22/o/r", "git://host/r", "git@github.com:o/r.git", "host:o/r"} {
		if err := CheckURL(url, false); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, url := range []string{"/srv/git/r", "file:///srv/git/r"} {
		if err := CheckURL(url, true); err != nil {
			t.Errorf("%q: %v", url, err)
		}
		if err := CheckURL(url, false); !errors.Is(err, ErrBadURL) || !strings.Contains(err.Error(), "only by its owner") {
			t.Errorf("%q: %v", url, err)
		}
	}
	for url, says := range map[string]string{
		"":                            "empty",
		"ext::sh -c touch% /tmp/evil": "start a program",
		"fd::17":                      "start a program",
		"ext::ssh://x/y":              "start a program",
		"--upload-pack=evil":          "dash",
		"-oProxyCommand=evil:x":       "dash",
		"ssh://-oProxyCommand=evil/x": "host",
		"git@-oProxyCommand=evil:x":   "host",
		"host:-x":                     "path",
		"http://host/r":               "https",
		"ftp://host/r":                "only https",
		"https://u:secret@host/r":     "credential helper",
		"https://host/r\nx":           "control",
		"https://host":                "path",
		"https://host/r?x":            "neither",
		"file://host/r":               "absolute",
		"relative/path":               "neither",
		"../r":                        "neither",
		"https://ho st/r":             "valid",
	} {
		err := CheckURL(url, true)
		if !errors.Is(err, ErrBadURL) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", url, err, says)
		}
	}
}

func TestSameRemote(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{"git@github.com:o/r.git", "https://github.com/o/r"}, {"ssh://git@GitHub.com/o/r/", "https://github.com/o/r.git"},
		{"/srv/r.git", "file:///srv/r"}, {"host:o/r", "git://host/o/r"},
	} {
		if !SameRemote(same[0], same[1]) {
			t.Errorf("%v are the same", same)
		}
	}
	for _, other := range [][2]string{{"git@github.com:o/r", "git@github.com:o/R"}, {"https://github.com/o/r", "https://gitlab.com/o/r"}, {"/srv/r", "/srv/s"}, {"", "/srv/r"}} {
		if SameRemote(other[0], other[1]) {
			t.Errorf("%v are not the same", other)
		}
	}
}
