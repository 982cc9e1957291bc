package approval

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestSince(t *testing.T) {
	t.Parallel()
	was := Facts{Tool: "bash", Args: json.RawMessage(`{"command":"sh a.sh"}`), Dir: "/w", Env: []string{"HOME", "PATH"}, Changes: "1",
		Files: map[string]string{"a.sh": "1", "b": Missing}}
	for _, c := range []struct {
		name   string
		change func(*Facts)
		want   string
	}{
		{"nothing", func(*Facts) {}, ""},
		{"arguments", func(f *Facts) { f.Args = json.RawMessage(`{"command":"sh b.sh"}`) }, "the call is not the one that was approved"},
		{"tool", func(f *Facts) { f.Tool = "write" }, "the call is not the one that was approved"},
		{"place", func(f *Facts) { f.Dir = "/x" }, "it was to run in /w"},
		{"changes", func(f *Facts) { f.Changes = "2" }, "what it would change is no longer what was approved"},
		{"variables", func(f *Facts) { f.Env = []string{"LD_PRELOAD", "PATH"} }, "it would get more variables: LD_PRELOAD; it would no longer get the variables HOME"},
		{"a file", func(f *Facts) { f.Files = map[string]string{"a.sh": "2", "b": Missing} }, "a.sh has changed"},
		{"a new file", func(f *Facts) { f.Files = map[string]string{"a.sh": "1", "b": "1", "c": "1"} }, "b has appeared; c has appeared"},
		{"a lost file", func(f *Facts) { f.Files = nil }, "a.sh is gone"},
	} {
		now := was
		c.change(&now)
		if got := now.Since(was.Encode()); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if was.Since(json.RawMessage(`{`)) == "" || was.Since(nil) == "" {
		t.Error("facts that cannot be read are taken for the same")
	}
	odd := Facts{Args: json.RawMessage(`{broken`)}
	if odd.Since(odd.Encode()) != "" || was.Since(odd.Encode()) == "" {
		t.Error("arguments that are no JSON are not held")
	}
}

func TestDigests(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	abs := write(dir, "a.sh", "one")
	secret := write(outside, "secret", "s")
	if err := os.Symlink(secret, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	words := []string{"a.sh", "./a.sh", abs, "none", "out", "pipe", "sub", "../" + filepath.Base(outside) + "/secret", secret, ".", "", "/"}
	got, unbound := Digests(dir, []string{"new.txt"}, words)
	if len(unbound) != 1 || !strings.HasPrefix(unbound[0], "pipe: it is a pipe") || len(got) != 3 || got["new.txt"] != Missing || len(got["a.sh"]) != 32 {
		t.Fatalf("%v", got)
	}
	before := got["a.sh"]
	write(dir, "a.sh", "two")
	if after, _ := Digests(dir, nil, words); after["a.sh"] == before {
		t.Fatal("a change is not seen")
	}
	if err := os.Truncate(filepath.Join(dir, "a.sh"), maxFile+1); err != nil {
		t.Fatal(err)
	}
	if large, unbound := Digests(dir, nil, words); !strings.HasPrefix(large["a.sh"], "4194305 bytes of ") || len(unbound) != 2 || !strings.HasPrefix(unbound[0], "a.sh: it is large") {
		t.Fatalf("a large file is %q, %q", large, unbound)
	}
	// A program can set the time of writing; another content under the old one is a change all the same.
	if runtime.GOOS == "linux" {
		path := filepath.Join(dir, "a.sh")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		large, _ := Digests(dir, nil, words)
		err = errors.Join(os.WriteFile(path, []byte("evil"), 0o644), os.Truncate(path, maxFile+1), os.Chtimes(path, info.ModTime(), info.ModTime()))
		if after, _ := Digests(dir, nil, words); err != nil || after["a.sh"] == large["a.sh"] {
			t.Fatalf("a large file with its old time is the same: %v", err)
		}
	}
	if got, _ := Digests(filepath.Join(dir, "none"), []string{"a"}, nil); len(got) != 0 {
		t.Fatalf("%v", got)
	}
}

func TestDigestsAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	for i := range maxFiles + 10 {
		names = append(names, "f"+strings.Repeat("x", i))
	}
	if got, unbound := Digests(dir, names, nil); len(got) != maxFiles || len(unbound) != 1 {
		t.Fatalf("%d files, %q", len(got), unbound)
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	for state, want := range map[State]string{Open: "", Approved: "approved by local:ada", Refused: "denied by local:ada", Expired: "it expired", Cancelled: "cancelled"} {
		got := Approval{State: state, AnsweredBy: "local:ada"}.Ended()
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", state, got)
		}
	}
}
