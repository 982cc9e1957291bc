//go:build linux

package gitfind_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/sandbox/bwrap/gitfind"
)

func write(t interface{ Fatal(...any) }, path string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func paths(places []gitfind.Place) (out []string) {
	for _, p := range places {
		out = append(out, p.Path)
	}
	slices.Sort(out)
	return out
}

// TestLook: whatever is made, moved and removed between looks, a tree that was looked at
// before finds what a new one finds.
func TestLook(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", ".git", "HEAD", "objects", "refs", "commondir"}
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		tree := gitfind.New(root, 1000)
		path := rapid.Custom(func(rt *rapid.T) string {
			return filepath.Join(append([]string{root}, rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(rt, "names")...)...)
		})
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			at := path.Draw(rt, "path")
			switch rapid.SampledFrom([]string{"folder", "file", "move", "remove", "age", "look"}).Draw(rt, "step") {
			case "folder":
				_ = os.MkdirAll(at, 0o755)
			case "file":
				if os.MkdirAll(filepath.Dir(at), 0o755) == nil {
					_ = os.WriteFile(at, nil, 0o644)
				}
			case "move":
				_ = os.Rename(at, path.Draw(rt, "to"))
			case "remove":
				_ = os.RemoveAll(at)
			case "age": // a time that anybody can set must not deceive it
				_ = os.Chtimes(at, time.Unix(1, 0), time.Unix(1, 0))
			case "look":
				tree.Look()
			}
		}
		found, _ := tree.Look()
		want, _ := gitfind.New(root, 1000).Look()
		if !slices.Equal(paths(found), paths(want)) {
			rt.Fatalf("found %q, a new tree finds %q", paths(found), paths(want))
		}
	})
}

// TestMost: a tree with too many folders says so, and finds what is near its root.
func TestMost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for n := range 20 {
		write(t, filepath.Join(root, fmt.Sprintf("deep/%d/x/.git", n)))
	}
	write(t, filepath.Join(root, "near/.git"))
	found, complete := gitfind.New(root, 10).Look()
	if complete || !slices.Equal(paths(found), []string{filepath.Join(root, "near/.git")}) {
		t.Errorf("%q, complete: %v", paths(found), complete)
	}
	found, complete = gitfind.New(root, 100).Look()
	if !complete || len(found) != 21 {
		t.Errorf("%d found, complete: %v", len(found), complete)
	}
}

// BenchmarkLook: what one look at a tree of 2,000 folders costs that did not change.
func BenchmarkLook(b *testing.B) {
	root := b.TempDir()
	for n := range 2000 {
		write(b, filepath.Join(root, fmt.Sprintf("%d/%d/file", n%40, n)))
	}
	tree := gitfind.New(root, 10_000)
	tree.Look()
	for b.Loop() {
		tree.Look()
	}
}
