package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/text"
)

func environ(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func TestFind(t *testing.T) {
	t.Parallel()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, want string
		env        func(string) string
	}{
		{"the default", "/u/.chorus", environ("HOME", "/u")},
		{"set", "/srv/chorus", environ("HOME", "/u", "CHORUS_HOME", "/srv/chorus/")},
		{"set without a user", "/srv/chorus", environ("CHORUS_HOME", " /srv/chorus ")},
		{"tilde", "/u/x", environ("HOME", "/u", "CHORUS_HOME", "~/x")},
		{"tilde alone", "/u", environ("HOME", "/u", "CHORUS_HOME", "~")},
		{"another user's tilde is a name", filepath.Join(wd, "~x"), environ("HOME", "/u", "CHORUS_HOME", "~x")},
		{"relative", filepath.Join(wd, "h"), environ("HOME", "/u", "CHORUS_HOME", "h")},
	}
	for _, tt := range tests {
		got, err := Find(tt.env)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %q (%v), want %q", tt.name, got, err, tt.want)
		}
	}
	for _, env := range []func(string) string{environ(), environ("HOME", "relative"), environ("CHORUS_HOME", "~/x")} {
		if got, err := Find(env); err == nil || !strings.Contains(err.Error(), "set CHORUS_HOME") {
			t.Errorf("no user: got %q, %v", got, err)
		}
	}
}

func TestOpenMakesOnlyTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 { // the second time it is there already
		h, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if h.Dir() != dir {
			t.Errorf("dir %s", h.Dir())
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("a fresh home holds %v (%v)", entries, err)
	}
}

func TestOpenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), "a file is in the way") || !strings.Contains(err.Error(), dir) {
			t.Errorf("open %s: %v", dir, err)
		}
	}
	// The kernel's own folders refuse new files even to root.
	if _, err := Open("/proc/self"); err == nil || !strings.Contains(err.Error(), "CHORUS_HOME") {
		t.Errorf("a folder that cannot be written: %v", err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere; TestRemedies holds the words")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "new")} {
		if _, err := Open(d); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("open %s: %v", d, err)
		}
	}
}

func TestRemedies(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		syscall.EACCES:  "chmod u+rwx",
		syscall.EROFS:   "read-only",
		syscall.ENOSPC:  "disk is full",
		syscall.EDQUOT:  "disk is full",
		syscall.ENOTDIR: "in the way",
		syscall.EIO:     "set CHORUS_HOME",
	} {
		wrapped := &fs.PathError{Op: "open", Path: "/x", Err: err}
		if got := remedy(wrapped); !strings.Contains(got, want) || !strings.Contains(got, "CHORUS_HOME") {
			t.Errorf("%v: %s", err, got)
		}
		if text.Cause(wrapped) != err {
			t.Errorf("cause of %v: %v", wrapped, text.Cause(wrapped))
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	h, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	id := chat.ThreadID("web:a/b:01J@helper")
	for want, got := range map[string]string{
		"chorus.db": h.DB(), "blobs": h.Blobs(), "locks": h.Locks(), "run/peers": h.PeerSockets(), "run/schedules": h.ScheduleSockets(), "config": h.Config(),
		"available_models.json": h.Models(), "settings.json": h.Settings(), "IDENTITY.md": h.Identity(),
		"skills": h.Skills(), "events": h.Events(),
		"cache/images": h.Images(), "logs": h.Logs(), "agents": h.Agents(), "agents/helper": h.AgentDir("helper"),
		"template": h.Template(), "terminal_history": h.History(), ".trash": h.Trash(),
		id.Dir(): h.ThreadDir(id), "outputs/" + id.Dir(): h.Outputs(id),
	} {
		if got != filepath.Join(h.Dir(), want) {
			t.Errorf("got %s, want …/%s", got, want)
		}
	}
	for _, evil := range []chat.ThreadID{"", "web:..:..", "nonsense", "web:../..:../../x@a1"} {
		if rel, err := filepath.Rel(h.Dir(), h.ThreadDir(evil)); err != nil || strings.HasPrefix(rel, "..") || rel == "." {
			t.Errorf("thread %q lies at %s (%v)", evil, rel, err)
		}
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	h, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := h.Ensure(h.Blobs())
	if err != nil || dir != h.Blobs() {
		t.Fatal(dir, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("made %v (%v)", info, err)
	}
	for _, outside := range []string{filepath.Dir(h.Dir()), h.Dir() + "x", "/"} {
		if _, err := h.Ensure(outside); err == nil {
			t.Errorf("%s was made", outside)
		}
	}
	if err := os.WriteFile(h.Logs(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Ensure(h.Logs()); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("a file in the way: %v", err)
	}
}

func TestWriteFileSaysWhatToDo(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "blocked")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := WriteFile(filepath.Join(blocked, "f"), nil, 0o600)
	if err == nil || !strings.Contains(err.Error(), "a file is in the way: move it") {
		t.Errorf("below a file: %v", err)
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := write("key", "\n test-key \r\n")
	tests := []struct {
		name, want, wrong string
		env               func(string) string
	}{
		{"neither", "", "", environ()},
		{"the variable", "test-key", "", environ("K", " test-key ")},
		{"the file", "test-key", "", environ("K_FILE", key)},
		{"both", "", "both K and K_FILE", environ("K", "other", "K_FILE", key)},
		{"no file", "", "K_FILE", environ("K_FILE", filepath.Join(dir, "none"))},
		{"a folder", "", "K_FILE", environ("K_FILE", dir)},
		{"empty", "", "is empty", environ("K_FILE", write("empty", " \n"))},
		{"endless", "", "too long", environ("K_FILE", "/dev/zero")},
		{"binary", "", "not text", environ("K_FILE", write("bin", "a\x00b"))},
	}
	for _, tt := range tests {
		got, err := Secret(tt.env, "K")
		if got != tt.want || (tt.wrong == "") != (err == nil) {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), "other")) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
