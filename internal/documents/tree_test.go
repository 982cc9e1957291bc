package documents

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/digest"
	"chorus/internal/polltest"
)

func (n *node) remove(name string) {
	n.t.Helper()
	if err := os.RemoveAll(n.Path(name)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) chmod(name string, mode fs.FileMode) {
	n.t.Helper()
	if err := os.Chmod(n.Path(name), mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) link(target, name string) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.Path(name)), 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Symlink(target, n.Path(name)); err != nil {
		n.t.Fatal(err)
	}
}

func syncAll(nodes ...*node) {
	for _, n := range nodes {
		n.sync()
	}
}

// A folder with all that is in it is the same everywhere: new files, executable bits, links, and what was removed.
func TestTree(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit("skills/greet/SKILL.md", "say hello")
	a.edit("skills/greet/.ignore", "a hidden file")
	a.edit("skills/greet/bin/run", "#!/bin/sh")
	a.chmod("skills/greet/bin/run", 0o755)
	a.link("bin/run", "skills/greet/start")
	for _, name := range []string{".git/config", "SKILL.md~", ".SKILL.md.swp", "__pycache__/x.pyc", "SKILL.md.replaced-01234567"} {
		a.edit("skills/greet/"+name, "no")
	}
	syncAll(a, b)
	b.expect("skills/greet/SKILL.md", "say hello")
	b.expect("skills/greet/.ignore", "a hidden file")
	b.expect("skills/greet/start", "#!/bin/sh")
	if info, err := os.Stat(b.Path("skills/greet/bin/run")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v (%v)", info, err)
	}
	if target, err := os.Readlink(b.Path("skills/greet/start")); err != nil || target != "bin/run" {
		t.Errorf("%q (%v)", target, err)
	}
	if len(m.docs) != 4 {
		t.Errorf("documents: %v", m.docs)
	}
	b.chmod("skills/greet/bin/run", 0o600) // the same bytes
	syncAll(b, a)
	if info, err := os.Stat(a.Path("skills/greet/bin/run")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v (%v)", info, err)
	}
	a.edit("skills/greet/SKILL.md", "hello from a")
	b.edit("skills/greet/SKILL.md", "hello from b")
	syncAll(a, b, a)
	for _, n := range []*node{a, b} {
		n.expect("skills/greet/SKILL.md", "hello from a")
	}
	if kept := b.beside("skills/greet/SKILL.md"); !slices.Equal(kept, []string{"hello from b"}) {
		t.Errorf("kept: %q", kept)
	}
	c := newNode(t, m)
	c.sync()
	c.expect("skills/greet/bin/run", "#!/bin/sh")
	c.remove("skills/greet")
	syncAll(c, a, b)
	if _, err := os.Stat(b.Path("skills/greet/bin")); !os.IsNotExist(err) {
		t.Errorf("an empty folder is left: %v", err)
	}
	a.expect("skills/greet/.ignore", "")
	if _, err := os.Stat(b.Path("skills")); err != nil {
		t.Error(err)
	}
}

// A folder that is missing as a whole removes nothing, wherever it lies.
func TestMissingTree(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit("skills/x/SKILL.md", "x")
	a.edit("agents/ada/agent.json", "{}")
	a.edit("agents/ada/docs/deep/one.md", "one")
	syncAll(a, b)
	b.remove("skills")
	b.remove("agents/ada/docs")
	syncAll(b, a)
	for _, n := range []*node{a, b} {
		n.expect("skills/x/SKILL.md", "x")
		n.expect("agents/ada/docs/deep/one.md", "one")
	}
	b.remove("agents/ada/docs/deep")
	syncAll(b, a)
	a.expect("agents/ada/docs/deep/one.md", "")
}

// What belongs to a document goes with it, and what is written later under the same name stays.
func TestGoesWith(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit("agents/ada/agent.json", "{}")
	a.edit("agents/ada/docs/one.md", "one")
	syncAll(a, b)
	if err := b.Delete(t.Context(), "agents/ada/agent.json"); err != nil {
		t.Fatal(err)
	}
	b.remove("agents/ada")
	syncAll(b, a, b)
	a.expect("agents/ada/docs/one.md", "")
	b.expect("agents/ada/docs/one.md", "")
	b.edit("agents/ada/docs/one.md", "anew")
	syncAll(b, a, b)
	a.expect("agents/ada/docs/one.md", "anew")
	b.expect("agents/ada/docs/one.md", "anew")
}

// Links that lead elsewhere, files that are too long and folders that are too full stay where they are; nothing is written through a link.
func TestTreeLimits(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	elsewhere := t.TempDir()
	a.link(elsewhere, "skills/mine")
	a.link("../../settings.json", "skills/greet/up")
	a.edit("skills/greet/large", strings.Repeat("x", largestInTree+1))
	a.edit("skills/greet/SKILL.md", "greet")
	syncAll(a, b)
	if len(a.warned) != 3 || len(m.docs) != 1 {
		t.Errorf("told: %q, kept %d", a.warned, len(m.docs))
	}
	b.edit("skills/mine/SKILL.md", "of b") // where a has a link
	syncAll(b, a)
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("written through a link: %v (%v)", entries, err)
	}
	a.sync()
	b.expect("skills/mine/SKILL.md", "of b")
	for _, target := range []string{"/etc/passwd", "../../x", "a/../../x"} {
		if _, err := m.Put(t.Context(), "skills/evil/"+digest.Of(target)[:4], []byte(linkFile+target), 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	b.sync()
	if _, err := os.Lstat(b.Path("skills/evil")); err == nil {
		if entries, _ := os.ReadDir(b.Path("skills/evil")); len(entries) > 0 {
			t.Errorf("links that lead out were made: %v", entries)
		}
	}
	for i := range mostInTree + 1 {
		b.edit("skills/full/"+digest.Of([]byte{byte(i), byte(i >> 8)})[:12], "x")
	}
	full := newNode(t, newMemory())
	full.Copies.Home = b.Home
	full.sync()
	if len(full.warned) != 1 || !strings.Contains(full.warned[0], "more than 2000 files") {
		t.Errorf("told: %q", full.warned)
	}
}

// What was a file is a folder on another machine, and back.
func TestFileBecomesFolder(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit("skills/x", "a file")
	syncAll(a, b)
	a.remove("skills/x")
	a.edit("skills/x/SKILL.md", "a folder")
	syncAll(a, b)
	b.expect("skills/x/SKILL.md", "a folder")
	b.remove("skills/x")
	b.edit("skills/x", "a file again")
	syncAll(b, a)
	a.expect("skills/x", "a file again")
}

// What can be made again is not kept.
func TestSpare(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit("models.json", "of a")
	b.edit("models.json", "of b")
	syncAll(a, b)
	b.expect("models.json", "of a")
	if len(b.beside("models.json"))+len(b.warned) > 0 {
		t.Errorf("kept %q, told %q", b.beside("models.json"), b.warned)
	}
}

// A pass reads what has changed and nothing else, also when only the bytes are others.
func TestGlance(t *testing.T) {
	t.Parallel()
	a := newNode(t, newMemory())
	k, _ := a.kind("skills/x")
	a.edit("skills/x", "one")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(a.Path("skills/x"), old, old); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		file, err := a.glance(k, "skills/x")
		if err != nil || !file.there || (file.text == nil) != (i == 1) || file.digest != digest.Of([]byte(plainFile+"one")) {
			t.Errorf("look %d: %+v (%v)", i+1, file, err)
		}
	}
	a.edit("skills/x", "two")
	for range 2 { // written a moment ago: read each time
		if file, err := a.glance(k, "skills/x"); err != nil || string(file.body) != "two" {
			t.Errorf("%+v (%v)", file, err)
		}
	}
}

// A running machine notices what happens deep in a tree, also in folders that were made since.
func TestWatchTree(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	watch(t, a)
	watch(t, b)
	for _, name := range []string{"skills/x/SKILL.md", "skills/x/deep/er/run", "agents/ada/docs/one.md"} {
		a.edit(name, name)
		polltest.Until(t, name+" is on the other machine", func() bool {
			data, err := os.ReadFile(b.Path(name))
			return err == nil && string(data) == name
		})
	}
	b.edit("skills/x/deep/er/run", "changed")
	polltest.Until(t, "a change is here", func() bool {
		data, err := os.ReadFile(a.Path("skills/x/deep/er/run"))
		return err == nil && string(data) == "changed"
	})
}

// watch lets a machine run until the end of the test.
func watch(t *testing.T, n *node) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Watch(ctx, nil)
	}()
	t.Cleanup(func() { stop(); <-done })
}
