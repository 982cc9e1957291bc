package documents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const settings = "settings.json"

// What is edited on one machine is known on the other, and what a program changes stands in both files.
func TestTwoHomes(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit(settings, "one")
	a.sync()
	b.sync()
	b.expect(settings, "one")
	if info, err := os.Stat(b.Path(settings)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v (%v)", info, err)
	}
	b.edit(settings, "two")
	b.sync()
	a.sync()
	a.expect(settings, "two")
	err := a.Change(t.Context(), settings, func(text []byte) ([]byte, error) { return append(text, " and a half"...), nil })
	if err != nil {
		t.Fatal(err)
	}
	a.expect(settings, "two and a half")
	b.sync()
	b.expect(settings, "two and a half")
	b.edit("guilds/1.json", "a server")
	b.sync()
	a.sync()
	a.expect("guilds/1.json", "a server")
	a.delete("guilds/1.json")
	a.sync()
	b.sync()
	b.expect("guilds/1.json", "")
	b.edit("guilds/1.json", "again")
	b.sync()
	a.sync()
	a.expect("guilds/1.json", "again")
	if len(a.warned)+len(b.warned) > 0 {
		t.Errorf("told: %q %q", a.warned, b.warned)
	}
}

// A machine that never had a file gets it; one whose folder is missing as a whole, too. Only a person who removes a file removes the document.
func TestNothingIsRemovedBecauseItIsMissing(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit("guilds/1.json", "one")
	a.edit("guilds/2.json", "two")
	a.sync()
	b.sync()
	b.expect("guilds/2.json", "two")
	if err := os.RemoveAll(b.Path("guilds")); err != nil {
		t.Fatal(err)
	}
	b.sync()
	a.sync()
	for _, n := range []*node{a, b} {
		n.expect("guilds/1.json", "one")
		n.expect("guilds/2.json", "two")
	}
	// A home that was lost comes back empty.
	c := newNode(t, m)
	c.sync()
	c.expect("guilds/1.json", "one")
	// So does one whose notes are lost while a file is missing.
	if err := os.RemoveAll(b.Home.DocumentNotes()); err != nil {
		t.Fatal(err)
	}
	b.delete("guilds/1.json")
	b.sync()
	b.expect("guilds/1.json", "one")
}

func TestBothChanged(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	a.edit(settings, "one")
	a.sync()
	b.sync()
	a.edit(settings, "from a")
	b.edit(settings, "from b")
	a.sync()
	b.sync()
	b.sync()
	b.expect(settings, "from a")
	if kept := b.beside(settings); !slices.Equal(kept, []string{"from b"}) {
		t.Errorf("kept beside: %q", kept)
	}
	if len(b.warned) != 1 || !strings.Contains(b.warned[0], ".replaced-") || !strings.Contains(b.warned[0], "the other change was kept") {
		t.Errorf("told: %q", b.warned)
	}
	// Removed there, edited here.
	a.delete(settings)
	b.edit(settings, "b once more")
	a.sync()
	b.sync()
	b.expect(settings, "")
	if kept := b.beside(settings); !slices.Contains(kept, "b once more") {
		t.Errorf("kept beside: %q", kept)
	}
	// Edited there, removed here: nothing is lost, so the text comes back.
	a.edit(settings, "new")
	a.sync()
	b.sync()
	a.edit(settings, "newer")
	b.delete(settings)
	a.sync()
	b.sync()
	b.expect(settings, "newer")
	// A home with a file of its own joins.
	c := newNode(t, m)
	c.edit(settings, "my own")
	c.sync()
	c.expect(settings, "newer")
	if kept := c.beside(settings); !slices.Equal(kept, []string{"my own"}) {
		t.Errorf("kept beside: %q", kept)
	}
}

// A database that was set back to a backup, or is another one, costs no text that stands in a file.
func TestDatabaseSetBack(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a := newNode(t, m)
	a.edit(settings, "one")
	a.edit("guilds/1.json", "early")
	a.sync()
	old := map[string]Document{settings: m.docs[settings]}
	a.edit(settings, "two")
	a.sync()
	m.docs = old
	a.sync()
	a.expect(settings, "one")
	if kept := a.beside(settings); !slices.Equal(kept, []string{"two"}) {
		t.Errorf("kept beside: %q", kept)
	}
	if d := m.docs["guilds/1.json"]; string(d.Body) != "early" {
		t.Errorf("what the backup did not have: %+v", d)
	}
	other := newMemory()
	other.id = "another database"
	b := at(t, other, a.Home.Dir())
	b.sync()
	b.expect(settings, "one")
	b.expect("guilds/1.json", "early")
	if d := other.docs["guilds/1.json"]; string(d.Body) != "early" {
		t.Errorf("in the new database: %+v", d)
	}
}

// A text with a mistake stays where its author sees it, and the last version holds everywhere else.
func TestMistakes(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	for _, n := range []*node{a, b} {
		n.Kinds[0].Check = func(_ string, body []byte) error {
			if strings.Contains(string(body), "mistake") {
				return errors.New("a mistake in line 1")
			}
			return nil
		}
	}
	a.edit(settings, "good")
	a.sync()
	b.sync()
	a.edit(settings, "mistake")
	a.sync()
	a.sync()
	b.sync()
	a.expect(settings, "mistake")
	b.expect(settings, "good")
	var mistake *CheckError
	if err := a.Sync(t.Context(), settings); !errors.As(err, &mistake) || !strings.Contains(err.Error(), "a mistake in line 1; fix the file") {
		t.Errorf("told: %v", err)
	}
	if err := a.Change(t.Context(), settings, func([]byte) ([]byte, error) { t.Error("called"); return nil, nil }); !errors.As(err, &mistake) {
		t.Errorf("a program wrote over it: %v", err)
	}
	a.edit(settings, "mended")
	a.sync()
	b.sync()
	b.expect(settings, "mended")
}

// Programs on two machines change one document at the same time; both changes are in it.
func TestChangeTogether(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	var wg sync.WaitGroup
	for _, n := range []*node{a, b} {
		for i := range 5 {
			wg.Go(func() {
				err := n.Change(t.Context(), settings, func(text []byte) ([]byte, error) { return fmt.Appendf(text, "%d;", i), nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	a.sync()
	b.sync()
	if a.text(settings) != b.text(settings) || strings.Count(a.text(settings), ";") != 10 {
		t.Errorf("%q and %q", a.text(settings), b.text(settings))
	}
	if err := a.Change(t.Context(), settings, func([]byte) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	b.sync()
	a.expect(settings, "")
	b.expect(settings, "")
}

// Names that lead out of the home, or that nobody knows, are left alone.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for _, name := range []string{"../settings.json", "guilds/../../x.json", "guilds/.hidden.json", "token", "agents/a/b/agent.json", "/etc/passwd"} {
		if _, err := m.Put(t.Context(), name, []byte("x"), 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	n := newNode(t, m)
	n.sync()
	entries, err := os.ReadDir(n.Home.Dir())
	if err != nil || len(entries) > 0 {
		t.Errorf("%v (%v)", entries, err)
	}
	if err := n.Sync(t.Context(), "token"); err == nil {
		t.Error("a file that is no document was compared")
	}
	n.edit(settings, strings.Repeat("x", largest+1))
	if err := os.MkdirAll(n.Path("guilds/1.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	n.sync()
	if len(n.warned) != 2 || m.docs[settings].Version != 0 {
		t.Errorf("told: %q", n.warned)
	}
}

func TestFilesOnly(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.Store = nil
	for want, next := range map[string][]byte{"": []byte("one")} {
		err := n.Change(t.Context(), settings, func(text []byte) ([]byte, error) {
			if string(text) != want {
				t.Errorf("it was %q", text)
			}
			return next, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n.expect(settings, "one")
	if err := errors.Join(n.Sync(t.Context(), settings), n.SyncAll(t.Context(), "")); err != nil {
		t.Error(err)
	}
	if err := n.Change(t.Context(), settings, func([]byte) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	n.expect(settings, "")
}

// Killed after any step, the next process finishes: files and documents are equal again, and no text is lost.
func TestKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	stories := map[string]func(a, b *node){
		"edited here":            func(a, _ *node) { a.edit(settings, "next") },
		"removed here":           func(a, _ *node) { a.delete(settings) },
		"new here":               func(a, _ *node) { a.edit("guilds/1.json", "next") },
		"changed elsewhere":      func(_, b *node) { b.edit(settings, "next"); b.sync() },
		"removed elsewhere":      func(_, b *node) { b.delete(settings); b.sync() },
		"both changed":           func(a, b *node) { b.edit(settings, "next"); b.sync(); a.edit(settings, "mine") },
		"removed and edited":     func(a, b *node) { b.delete(settings); b.sync(); a.edit(settings, "mine") },
		"changed by a program":   func(a, _ *node) { a.program("next") },
		"removed by a program":   func(a, _ *node) { a.program("") },
		"a program and a person": func(a, _ *node) { a.edit(settings, "mine"); a.program("next") },
	}
	for name, story := range stories {
		for killAt := 1; ; killAt++ {
			m := newMemory()
			a, b := newNode(t, m), newNode(t, m)
			a.edit(settings, "first")
			a.sync()
			b.sync()
			steps := 0
			a.step = func(string) {
				if steps++; steps == killAt {
					panic("killed")
				}
			}
			killed := crashes(func() { story(a, b); a.sync() })
			a = at(t, m, a.Home.Dir())
			a.sync()
			b.sync()
			a.sync()
			for _, file := range []string{settings, "guilds/1.json"} {
				doc := m.docs[file]
				if a.text(file) != string(doc.Body) || b.text(file) != string(doc.Body) {
					t.Errorf("%s, killed at step %d: %s says %q and %q, the document %q", name, killAt, file, a.text(file), b.text(file), doc.Body)
				}
			}
			if strings.Contains(name, "both") || strings.Contains(name, "edited") || strings.Contains(name, "person") {
				if !m.texts["mine"] && !slices.Contains(a.beside(settings), "mine") && name != "edited here" {
					t.Errorf("%s, killed at step %d: a person's text is lost", name, killAt)
				}
			}
			if d, err := a.different(t.Context(), "", ""); err != nil || len(d) > 0 {
				t.Errorf("%s, killed at step %d: %v is still to be done (%v)", name, killAt, d, err)
			}
			if !killed {
				if killAt == 1 {
					t.Errorf("%s: no step was reached", name)
				}
				break
			}
		}
	}
}

func (n *node) program(next string) {
	err := n.Change(context.Background(), settings, func([]byte) ([]byte, error) {
		if next == "" {
			return nil, nil
		}
		return []byte(next), nil
	})
	if err != nil {
		n.t.Error(err)
	}
}

func crashes(do func()) (crashed bool) {
	defer func() { crashed = recover() != nil }()
	do()
	return false
}

// Whatever people do on three machines, in the end all say the same, and every text is a version or stands beside a file.
func TestNoTextIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemory()
		nodes := []*node{newNode(t, m), newNode(t, m), newNode(t, m)}
		names := []string{settings, "guilds/1.json"}
		edited := map[string]string{}
		for i := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			n := rapid.SampledFrom(nodes).Draw(rt, "node")
			name := rapid.SampledFrom(names).Draw(rt, "name")
			switch rapid.SampledFrom([]string{"edit", "delete", "sync", "sync", "program", "kill"}).Draw(rt, "what") {
			case "edit":
				was := n.text(name)
				text := fmt.Sprint("text ", i)
				n.edit(name, text)
				delete(edited, was) // the person gave it up
				edited[text] = name
			case "delete":
				delete(edited, n.text(name))
				if n.text(name) != "" {
					n.delete(name)
				}
			case "sync":
				n.sync()
			case "program":
				if err := n.Change(t.Context(), name, func([]byte) ([]byte, error) { return fmt.Append(nil, "program ", i), nil }); err != nil {
					rt.Fatal(err)
				}
			case "kill":
				left := rapid.IntRange(1, 3).Draw(rt, "steps left")
				n.step = func(string) {
					if left--; left == 0 {
						panic("killed")
					}
				}
				crashes(n.sync)
				*n = *at(t, m, n.Home.Dir())
			}
		}
		for range 3 {
			for _, n := range nodes {
				n.sync()
			}
		}
		for _, name := range names {
			for _, n := range nodes {
				if n.text(name) != string(m.docs[name].Body) {
					rt.Fatalf("%s says %q, the document %q", name, n.text(name), m.docs[name].Body)
				}
			}
		}
		for text, name := range edited {
			kept := m.texts[text]
			for _, n := range nodes {
				kept = kept || slices.Contains(n.beside(name), text)
			}
			if !kept {
				rt.Fatalf("%q is lost", text)
			}
		}
	})
}

// A watching machine takes over what a person saves, and hears of others by a ring or by asking.
func TestWatch(t *testing.T) {
	t.Parallel()
	m := newMemory()
	a, b := newNode(t, m), newNode(t, m)
	ctx, stop := context.WithCancel(t.Context())
	notified := make(chan struct{}, 1)
	arrived := make(chan []string, 10)
	b.Changed = func(names []string) { arrived <- names }
	var wg sync.WaitGroup
	wg.Go(func() { a.Watch(ctx, nil) })
	wg.Go(func() { b.Watch(ctx, notified) })
	defer wg.Wait()
	defer stop()
	a.edit("guilds/1.json", "one")
	select {
	case names := <-arrived:
		if !slices.Equal(names, []string{"guilds/1.json"}) {
			t.Errorf("arrived: %q", names)
		}
	case <-time.After(time.Minute):
		t.Fatal("it never arrived")
	}
	b.expect("guilds/1.json", "one")
	if _, err := m.Put(t.Context(), settings, []byte("by somebody"), 0, ""); err != nil {
		t.Fatal(err)
	}
	notified <- struct{}{}
	select {
	case <-arrived:
	case <-time.After(time.Minute):
		t.Fatal("a ring was not heard")
	}
	b.expect(settings, "by somebody")
}
