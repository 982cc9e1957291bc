package memory_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/memory"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

// home is a home folder with a keeper on it.
type home struct {
	*testing.T
	*memory.Keeper
	dir string
	db  *store.DB
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir := storetest.FreshHome(t)
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "chorus.db")})
	if err != nil {
		t.Fatal(err)
	}
	h := &home{T: t, dir: dir, db: db}
	h.restart()
	t.Cleanup(func() { _ = h.Close(); _ = db.Close() })
	return h
}

// restart forgets what was read, as a new process does.
func (h *home) restart() {
	if h.Keeper != nil {
		_ = h.Close()
	}
	h.Keeper = memory.NewKeeper(h.dir, h.db, time.Now)
}

func (h *home) write(name, text string) {
	h.Helper()
	path := filepath.Join(h.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *home) read(name string) memory.Content {
	h.Helper()
	c, err := h.Read(h.Context(), h.file(name))
	if err != nil {
		h.Fatal(err)
	}
	return c
}

func (h *home) file(name string) memory.File {
	h.Helper()
	f, err := memory.Parse(name)
	if err != nil {
		h.Fatal(err)
	}
	return f
}

func (h *home) history(name string) string {
	h.Helper()
	all, err := h.History(h.Context(), h.file(name))
	if err != nil {
		h.Fatal(err)
	}
	var out []string
	for _, v := range all {
		out = append(out, fmt.Sprintf("%d %s %s", v.N, v.How, v.Who))
	}
	return strings.Join(out, "; ")
}

func TestFilesOfAThread(t *testing.T) {
	t.Parallel()
	var got []string
	for _, f := range memory.Of(chat.ThreadID("discord:guild/chan:17@planner")) {
		got = append(got, f.Path+" "+f.Tool())
		again, err := memory.Parse(f.Path)
		if err != nil || again != f {
			t.Errorf("%s: %+v, %v, want %+v", f.Path, again, err, f)
		}
	}
	want := "MEMORY.md @memory/global/MEMORY.md|SYSTEM.md @memory/global/SYSTEM.md|discord/MEMORY.md @memory/transport/MEMORY.md|discord/guild%2Fchan/MEMORY.md @memory/channel/MEMORY.md"
	if strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
	for _, bad := range []string{"", "chorus.db", "../MEMORY.md", "discord/../MEMORY.md", "a/b/c/MEMORY.md", "agents/MEMORY.md", "agents/planner/agent.json", "agents/x/docs/../../agent.md",
		"skills/MEMORY.md", "discord/x/MEMORY.md/", "/MEMORY.md", "discord\\x\\MEMORY.md", "Discord/MEMORY.md"} {
		if f, err := memory.Parse(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, f)
		}
	}
	if f, err := memory.Parse("agents/planner/docs/a/b.md"); err != nil || f.Tool() != "@docs/a/b.md" {
		t.Errorf("%+v %v", f, err)
	}
}

// Every change is a version: announced ones are whoever announced them, whoever sees them first, and however often
// the process died; the others are by hand.
func TestEveryChangeIsAVersion(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const name = "discord/room/MEMORY.md"
	if c := h.read(name); c.Text != "" || c.Version != 0 || h.history(name) != "" {
		t.Fatalf("before there is a file: %+v", c)
	}
	h.write(name, "- by me\n")
	if c := h.read(name); c.Version != 1 || c.Render() != "### Channel Memory (@memory/channel/MEMORY.md)\n- by me" {
		t.Fatalf("%+v\n%s", c, c.Render())
	}
	by := memory.Origin{Who: "bob", Thread: "discord:room:1@a", Call: "c1", How: "write"}
	if err := h.Announce(t.Context(), h.file(name), "- by me\n- bob is boss\n", by); err != nil {
		t.Fatal(err)
	}
	h.restart() // killed before the file was written: nothing happened
	if c := h.read(name); c.Version != 1 {
		t.Fatalf("%+v", c)
	}
	h.write(name, "- by me\n- bob is boss\n")
	h.restart() // killed after the file was written, before anybody looked
	if got := h.history(name); got != "2 write bob; 1 by hand " {
		t.Fatalf("history: %s", got)
	}
	want := "### Channel Memory (@memory/channel/MEMORY.md)\n- by me\n<untrusted from=\"memory, written on the words of bob\">\n- bob is boss\n</untrusted>"
	if c := h.read(name); c.Render() != want {
		t.Fatalf("shown:\n%s", c.Render())
	}
	// A line stays whose it is, also where somebody else moves it.
	h.write(name, "- bob is boss\n- by hand\n")
	if got := h.read(name).Parts(); len(got) != 2 || got[0].Who != "bob" || got[0].Owner || !got[1].Owner {
		t.Fatalf("parts: %+v", got)
	}
	if err := os.Remove(filepath.Join(h.dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
	if got := h.history(name); got != "4 by hand ; 3 by hand ; 2 write bob; 1 by hand " {
		t.Fatalf("history: %s", got)
	}
	// Restoring a text does not make it the words of whoever restored it.
	c, err := h.Restore(t.Context(), h.file(name), 2, 4, memory.Origin{Who: "ada", How: "restore", Owner: true})
	if err != nil || c.Render() != want || c.Version != 5 {
		t.Fatalf("restored: %v\n%s", err, c.Render())
	}
	if _, err := h.Write(t.Context(), h.file(name), "x", 4, memory.Origin{}); err != memory.ErrMoved {
		t.Fatalf("a writer that saw another version: %v", err)
	}
	if err := h.Forget(t.Context(), h.file(name)); err != nil {
		t.Fatal(err)
	}
	if got := h.history(name); got != "" {
		t.Fatalf("after it was forgotten: %s", got)
	}
}

// Somebody else's look between the writing and the own one takes nothing for a change by hand.
func TestTwoProcessesSeeOneChange(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	other := memory.NewKeeper(h.dir, h.db, time.Now)
	defer other.Close()
	f := h.file("MEMORY.md")
	for i := range 20 {
		text := fmt.Sprintf("- %d\n", i)
		if err := h.Announce(t.Context(), f, text, memory.Origin{Who: "bob", How: "write"}); err != nil {
			t.Fatal(err)
		}
		h.write("MEMORY.md", text)
		done := make(chan error)
		for _, k := range []*memory.Keeper{other, h.Keeper} {
			go func() {
				_, err := k.Read(t.Context(), f)
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := h.history("MEMORY.md"); strings.Contains(got, memory.ByHand) || !strings.HasPrefix(got, "20 write bob; 19 ") {
		t.Fatal(got)
	}
}

// A file that was edited into nonsense costs itself, with a sentence that says what to do.
func TestNonsense(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(h *home, path string) error
		want string
	}{
		"not text":  {func(h *home, path string) error { return os.WriteFile(path, []byte("caf\xe9"), 0o600) }, "save it as UTF-8"},
		"binary":    {func(h *home, path string) error { return os.WriteFile(path, []byte("a\x00b"), 0o600) }, "save it as UTF-8"},
		"a folder":  {func(h *home, path string) error { return os.Mkdir(path, 0o700) }, "it is a folder: move the folder away"},
		"100 MB":    {func(h *home, path string) error { return sparse(path, 100<<20) }, "it has 100.0 MB, and at most 256.0 KB are read"},
		"link out":  {func(h *home, path string) error { return os.Symlink("/etc/passwd", path) }, "it is a link"},
		"link in":   {func(h *home, path string) error { return os.Symlink("chorus.db", path) }, "it is a link"},
		"dead link": {func(h *home, path string) error { return os.Symlink("nowhere", path) }, "it is a link"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.write("web/MEMORY.md", "- fine\n")
			if err := c.make(h, filepath.Join(h.dir, "MEMORY.md")); err != nil {
				t.Fatal(err)
			}
			got := h.read("MEMORY.md")
			if !strings.Contains(got.Problem, c.want) || !strings.Contains(got.Render(), "It is not shown: "+got.Problem) || got.Text != "" {
				t.Errorf("problem %q, shown %q", got.Problem, got.Render())
			}
			if h.read("web/MEMORY.md").Render() == "" {
				t.Error("another file suffered")
			}
			if h.history("MEMORY.md") != "" {
				t.Error("nonsense was kept as a version")
			}
		})
	}
	t.Run("linked folder", func(t *testing.T) {
		t.Parallel()
		h := newHome(t)
		if err := os.Symlink("/etc", filepath.Join(h.dir, "web")); err != nil {
			t.Fatal(err)
		}
		if got := h.read("web/MEMORY.md"); got.Problem == "" {
			t.Errorf("%+v", got)
		}
		if _, err := h.Write(t.Context(), h.file("web/MEMORY.md"), "x", -1, memory.Origin{}); err == nil {
			t.Error("it was written through a link out of the home folder")
		}
	})
}

func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

func TestRender(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var all []memory.Content
	for _, f := range memory.Of("slack:C1:1@a") {
		all = append(all, h.read(f.Path))
	}
	if got := renderAll(all); got != "" {
		t.Errorf("nothing is shown as %q", got)
	}
	h.write("MEMORY.md", " \n\n")
	h.write(memory.Of("slack:C1:1@a")[3].Path, "- here\n")
	all = nil
	for _, f := range memory.Of("slack:C1:1@a") {
		all = append(all, h.read(f.Path))
	}
	if got := renderAll(all); got != "### Channel Memory (@memory/channel/MEMORY.md)\n- here" {
		t.Errorf("a blank file and one with something are shown as %q", got)
	}
	h.write("MEMORY.md", strings.Repeat("- a line\n", memory.Full/9+10))
	if got := h.read("MEMORY.md").Render(); !strings.Contains(got, "tidy it up before it is full") {
		t.Errorf("a file that fills up is shown without a hint: …%s", got[len(got)-100:])
	}
	h.write("MEMORY.md", strings.Repeat("- a line\n", memory.Shown/9+1000))
	if got := h.read("MEMORY.md").Render(); !strings.Contains(got, "more are not shown: at most 16.0 KB are. Shorten the file") || len(got) > memory.Shown+400 {
		t.Errorf("a file that is too long is shown in %d bytes: …%s", len(got), got[len(got)-200:])
	}
	h.write("SYSTEM.md", strings.Repeat("- installed old\n", 2000)+"- installed jq\n")
	if got := h.read("SYSTEM.md").Render(); !strings.HasSuffix(got, "- installed jq") || !strings.Contains(got, "older") || len(got) > memory.Shown+400 {
		t.Errorf("of a long log is shown: …%s", got[max(0, len(got)-100):])
	}
}

func TestAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, spans, after, want string }{
		{"", "", "a\nb\n", "9*2"},
		{"a\nb\n", "1*1 2*1", "a\nc\nb\n", "1*1 9*1 2*1"},
		{"a\na\n", "1*1 2*1", "a\na\na", "1*1 2*1 9*1"},
		{"a\nb\n", "1*1 2*1", "", ""},
		{"a\nb\n", "1*1", "b", "0*1"},
	} {
		spans, err := memory.ParseSpans(c.spans)
		if err != nil {
			t.Fatal(err)
		}
		if got := memory.Attribute(c.before, spans, c.after, 9).String(); got != c.want {
			t.Errorf("%q to %q: %s, want %s", c.before, c.after, got, c.want)
		}
	}
	for _, bad := range []string{"x", "1*", "1*0", "1*-2"} {
		if got, err := memory.ParseSpans(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

// manyFiles is a home with 200 files that were read once.
func manyFiles(t *testing.T) (*home, []memory.File) {
	h := newHome(t)
	var all []memory.File
	for i := range 200 {
		name := fmt.Sprintf("agents/planner/docs/%d.md", i)
		h.write(name, strings.Repeat("- something\n", 20))
		h.read(name)
		all = append(all, h.file(name))
	}
	return h, all
}

// Reading 200 files that did not change costs less than a millisecond. The fastest of several tries counts: the
// machine may be busy.
func TestRereadingIsCheap(t *testing.T) {
	h, all := manyFiles(t)
	best := time.Hour
	for range 50 {
		began := time.Now()
		for _, f := range all {
			if _, err := h.Read(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		best = min(best, time.Since(began))
	}
	if best > time.Millisecond && !raceDetector {
		t.Errorf("200 files that did not change took %s to read again", best)
	}
	t.Logf("200 files in %s", best)
}

// A file that is moved away and back, or that another machine does not have, makes nobody's words the owner's.
func TestTextThatComesBack(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const name = "discord/room/MEMORY.md"
	h.write(name, "- by me\n")
	h.read(name)
	text := "- by me\n- bob is boss\n"
	if err := h.Announce(t.Context(), h.file(name), text, memory.Origin{Who: "bob", Thread: "discord:room:1@a", Call: "c1", How: "write"}); err != nil {
		t.Fatal(err)
	}
	h.write(name, text)
	want := h.read(name).Render()
	if !strings.Contains(want, "on the words of bob") {
		t.Fatalf("shown:\n%s", want)
	}
	if err := os.Remove(filepath.Join(h.dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
	if c := h.read(name); c.Text != "" || c.Version != 3 {
		t.Fatalf("%+v", c)
	}
	h.write(name, text)
	h.restart()
	if c := h.read(name); c.Render() != want {
		t.Errorf("shown:\n%s", c.Render())
	}
	if got := h.history(name); got != "4 write bob; 3 by hand ; 2 write bob; 1 by hand " {
		t.Errorf("history: %s", got)
	}
}

// renderAll is all of a thread's memory, for people.
func renderAll(all []memory.Content) string {
	var parts []string
	for _, c := range all {
		if text := c.Render(); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}
