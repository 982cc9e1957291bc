//go:build linux

package bwrap

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestCandidates(t *testing.T) {
	t.Parallel()
	const (
		v1 = "31 25 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
			"35 25 0:31 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n"
		inContainer = "31 25 0:27 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	)
	tests := []struct {
		name, own, mounts, controller string
		want                          []groupDir
	}{
		{"version 1", "8:pids:/\n4:memory:/a/b\n", v1, "memory", []groupDir{{path: "/sys/fs/cgroup/memory/a/b"}}},
		{"version 1 at the root", "8:pids:/\n", v1, "pids", []groupDir{{path: "/sys/fs/cgroup/pids"}}},
		{"several controllers in one line", "8:cpu,pids:/x\n", v1, "pids", []groupDir{{path: "/sys/fs/cgroup/pids/x"}}},
		{"part of a tree", "4:memory:/docker/abc/inner\n", inContainer, "memory", []groupDir{{path: "/sys/fs/cgroup/memory/inner"}}},
		{"another part of a tree", "4:memory:/elsewhere\n", inContainer, "memory", nil},
		{"no such controller", "8:pids:/\n", v1, "memory", nil},
		{"nonsense", "x\n::\n:::::\n", "a b c\n - - -\n", "memory", nil},
	}
	for _, tt := range tests {
		if got := candidates(tt.own, tt.mounts, tt.controller); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	// Version 2: only those that hand the controller down, the nearest first.
	root := t.TempDir()
	for dir, handed := range map[string]string{"": "memory pids", "slice": "pids memory", "slice/mine": ""} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "cgroup.subtree_control"), []byte(handed+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := candidates("0::/slice/mine\n", "30 25 0:27 / "+root+" rw - cgroup2 cgroup2 rw\n", "pids")
	if want := []groupDir{{path: root + "/slice", v2: true}, {path: root, v2: true}}; !reflect.DeepEqual(got, want) {
		t.Errorf("version 2: %v, want %v", got, want)
	}
}

func FuzzCandidates(f *testing.F) {
	f.Add("0::/a/b\n4:memory:/x\n", "31 25 0:27 / /sys rw - cgroup cgroup rw,memory\n")
	f.Add("0::/", "1 2 3 /x /y z - cgroup2 a b")
	f.Fuzz(func(t *testing.T, own, mounts string) {
		for _, dir := range candidates(own, mounts, "memory") {
			if strings.Contains(dir.path, "/../") {
				t.Errorf("%q leads out", dir.path)
			}
		}
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]version{"bubblewrap 0.8.0\n": {0, 8}, "bubblewrap 1.12": {1, 12}, "else": {}, "": {}} {
		if got := parseVersion(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if v := (version{1, 0}); !v.atLeast(0, 8) || (version{0, 6}).atLeast(0, 7) {
		t.Error("versions are compared wrongly")
	}
}

// TestLearned: what one process found out about bubblewrap another one need not ask again, and what it cannot read it asks.
func TestLearned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "bwrap"), filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho $1 >> " + calls + "\ncase $1 in --version) echo bubblewrap 0.8.0;; --help) echo ' --ro-bind-fd FD DEST';; esac\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	learned := ""
	for _, step := range []struct {
		known string
		asked int
	}{{"", 2}, {"LEARNED", 0}, {"bubblewrap x", 2}, {"bubblewrap 0.1 true", 2}} {
		_ = os.Remove(calls)
		e := New(Options{Program: program, Known: strings.Replace(step.known, "LEARNED", learned, 1)})
		learned = e.Learned()
		asked, _ := os.ReadFile(calls)
		if n := strings.Count(string(asked), "\n"); n != step.asked || learned != "bubblewrap 0.8 true" {
			t.Errorf("known %q: asked %d times, learned %q", step.known, n, learned)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"": "without a message",
		"bwrap: Can't find source path /x: No such file": "bwrap: Can't find source path /x: No such file",
		"bwrap: setting up uid map: Permission denied":   "namespaces",
		"bwrap: Can't mount proc on /newroot/proc":       "masked",
	} {
		if got := explain(said).Error(); !strings.Contains(got, want) || !strings.Contains(got, said) {
			t.Errorf("%q: %q", said, got)
		}
	}
}

func TestMainRepository(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("main/.git/HEAD", "ref: x\n")
	write("main/.git/objects/x", "")
	write("main/.git/refs/x", "")
	write("main/.git/worktrees/tree/gitdir", base+"/tree/.git\n")
	write("tree/.git", "gitdir: "+base+"/main/.git/worktrees/tree\n")
	write("relative/.git", "gitdir: ../main/.git/worktrees/relative\n")
	write("main/.git/worktrees/relative/gitdir", "../../../../relative/.git\n")
	write("thief/.git", "gitdir: "+base+"/main/.git/worktrees/tree\n")
	write("odd/.git", "nonsense\n")
	for dir, want := range map[string]string{
		"tree": base + "/main/.git", "relative": base + "/main/.git", "thief": "", "odd": "", "main": "", "none": "",
	} {
		if got := mainRepository(filepath.Join(base, dir)); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
