package gitsettings

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGitSettings(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gitDir := filepath.Join(base, "ws", ".git")
	for name, text := range map[string]string{
		"ws/.git/config": "# [core] hooksPath = no\n[Core]\n\tbare = false\n\tHooksPath = \"my hooks\" ; said\n[include] path = ../more\n[includeIf \"gitdir:x\"]\n\tpath = ../none\n[extensions]\n\tworktreeConfig\n",
		"ws/more":        "[core]\nhookspath=other\n[include]\npath = more\n",
		"ws/my hooks/x":  "", "ws/other/x": "", "ws/no/x": "",
	} {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	says := Read(filepath.Join(gitDir, "config"))
	hooks, files := says.Named(Tree(gitDir))
	wantHooks, wantFiles := []string{base + "/ws/my hooks", base + "/ws/other"}, []string{base + "/ws/more", base + "/ws/none"}
	if slices.Sort(files); !slices.Equal(hooks[:2], wantHooks) || !slices.Equal(slices.Compact(files), wantFiles) || !says.PerWorktree {
		t.Errorf("%q, %q, %v", hooks, files, says)
	}
}

// A repository may name what lies in the home of its person, and the workspace may lie there too.
func TestGitSettingsInTheHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	file := filepath.Join(home, "config")
	if err := os.WriteFile(file, []byte("[core]\nhooksPath = ~/project/hooks\n[include]\npath = ~/project/more\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	hooks, files := Read(file).Named("/elsewhere")
	if !slices.Equal(hooks, []string{home + "/project/hooks"}) || !slices.Equal(files, []string{home + "/project/more"}) {
		t.Errorf("%q, %q", hooks, files)
	}
}

// Paths are read as git itself reads them.
func TestGitSettingsAsGitReadsThem(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"~", "~/hooks", "~" + me.Username, "~" + me.Username + "/hooks", "~root/../hooks", "%(prefix)/hooks", "%(prefix)/../srv/hooks", "/plain/./hooks"} {
		cmd := exec.CommandContext(t.Context(), git, "config", "--file", "-", "--type=path", "--get", "a.b")
		cmd.Stdin = strings.NewReader("[a]\nb = " + path + "\n")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git does not read %q: %v", path, err)
		}
		if got, want := absolute(path, "/base"), filepath.Clean(strings.TrimSuffix(string(out), "\n")); got != want {
			t.Errorf("%q is %q, and for git it is %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"~nobody-of-that-name/hooks": "/base/~nobody-of-that-name/hooks", "%(prefix)": "/base/%(prefix)", ":(optional)~/hooks": absolute("~/hooks", ""), "hooks": "/base/hooks"} {
		if got := absolute(path, "/base"); got != want {
			t.Errorf("%q is %q, not %q", path, got, want)
		}
	}
}

func FuzzGitSettings(f *testing.F) {
	f.Add("[core]\n\thooksPath = \"a\\\\b\" # c\n")
	f.Add("[a \"b]\"] c = d\n=\n[\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range parse(text) {
			if e.name != strings.ToLower(e.name) || e.section != strings.ToLower(e.section) || len(e.value) > len(text) {
				t.Errorf("%q", e)
			}
		}
	})
}
