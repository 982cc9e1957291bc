package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/agents"
	"chorus/internal/memory"
	"chorus/internal/polltest"
	"chorus/internal/runsetup"
	"chorus/internal/skill"
)

func (a *App) path(name string) string { return filepath.Join(a.Home.Dir(), filepath.FromSlash(name)) }

func (a *App) text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(a.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// sharedFile is one of each kind of files that homes on one database share. kept: what gives way stays beside it.
var sharedFile = []struct {
	name, one, two, three string
	kept                  bool
}{
	{"MEMORY.md", "one", "two", "three", true},
	{"SYSTEM.md", "one", "two", "three", true},
	{"IDENTITY.md", "one", "two", "three", true},
	{"discord/MEMORY.md", "one", "two", "three", true},
	{"web/main/MEMORY.md", "one", "two", "three", true},
	{"web/main/one/notes.json", `{"a": "1"}`, `{"a": "2"}`, `{"a": "3"}`, true},
	{"agents/ada/docs/deep/guide.md", "one", "two", "three", true},
	{"agents/ada/skills/x/SKILL.md", "one", "two", "three", true},
	{"discord/skills/x/SKILL.md", "one", "two", "three", true},
	{"skills/x/bin/run", "one", "two", "three", true},
	{"template/workspace/README.md", "one", "two", "three", true},
	{"projects/p1/notes/plan.md", "one", "two", "three", true},
	{"mcp.json", `{"mcpServers": {}}`, `{"mcpServers": {"a": {"command": "a"}}}`, `{"mcpServers": {"b": {"command": "b"}}}`, true},
	{"available_models.json", `{}`, `{"providers": {}}`, `{"last_updated": "2026-01-01T00:00:00Z"}`, false},
}

// Each kind of file: changed on one machine it is the same on the other, also where both changed it; removed on one it is gone
// on both; a machine that comes with an empty home gets all.
func TestSharedFiles(t *testing.T) { onBoth(t, sharedFiles) }

func sharedFiles(t *testing.T, database string) {
	a, b := openNodes(t, database)
	if _, err := a.Settings.Agents().Create(t.Context(), agents.Agent{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	both := func(first, second *App) {
		first.syncDocuments(t)
		second.syncDocuments(t)
		first.syncDocuments(t)
	}
	same := func(name, want string, on ...*App) {
		t.Helper()
		for i, n := range on {
			if got := n.text(t, name); got != want {
				t.Errorf("%s says %q on machine %d, want %q", name, got, i+1, want)
			}
		}
	}
	for _, f := range sharedFile {
		write(t, a.path(f.name), f.one)
	}
	both(a, b)
	for _, f := range sharedFile {
		same(f.name, f.one, a, b)
		write(t, b.path(f.name), f.two)
	}
	both(b, a)
	for _, f := range sharedFile {
		same(f.name, f.two, a, b)
		write(t, a.path(f.name), f.three)
		write(t, b.path(f.name), f.one)
	}
	both(a, b)
	for _, f := range sharedFile {
		same(f.name, f.three, a, b)
		if kept, err := filepath.Glob(b.path(f.name) + ".replaced-*"); err != nil || len(kept) > 0 != f.kept {
			t.Errorf("%s: kept %v (%v)", f.name, kept, err)
		}
	}
	c := openNode(t, database, t.TempDir())
	for _, f := range sharedFile {
		same(f.name, f.three, c)
		if err := os.Remove(c.path(f.name)); err != nil {
			t.Fatal(err)
		}
	}
	c.syncDocuments(t)
	both(a, b)
	for _, f := range sharedFile {
		same(f.name, "", a, b, c)
	}
}

// Machines that run need no more than a second or so for a file.
func TestSharedFilesOfRunningMachines(t *testing.T) { onBoth(t, sharedFilesOfRunningMachines) }

func sharedFilesOfRunningMachines(t *testing.T, database string) {
	a, b := openNodes(t, database)
	a.StartBackground()
	b.StartBackground()
	for _, f := range sharedFile {
		write(t, a.path(f.name), f.one)
	}
	for _, f := range sharedFile {
		polltest.Until(t, f.name+" is on the other machine", func() bool { return b.text(t, f.name) == f.one })
	}
}

// One home alone keeps no second copy of such files.
func TestOneHomeKeepsFilesOnly(t *testing.T) {
	t.Parallel()
	a := openNode(t, filepath.Join(t.TempDir(), "unused.db"), t.TempDir())
	home := t.TempDir()
	alone, err := Open(t.Context(), Options{Home: home, Env: func(string) string { return "" }, Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := alone.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, n := range []*App{a, alone} {
		for _, f := range sharedFile {
			write(t, n.path(f.name), f.one)
		}
		n.syncDocuments(t)
		for _, f := range sharedFile {
			head, err := n.Settings.Documents.Store.Head(t.Context(), f.name)
			if err != nil || head.There() != (n == a) {
				t.Errorf("%s: %+v (%v)", f.name, head, err)
			}
		}
	}
}

// A machine with an older memory file does not write it down as a new version: it takes the newest.
func TestMemoryOfTwoMachines(t *testing.T) { onBoth(t, memoryOfTwoMachines) }

func memoryOfTwoMachines(t *testing.T, database string) {
	a, b := openNodes(t, database)
	ctx := t.Context()
	file, err := memory.Parse(memory.Name)
	if err != nil {
		t.Fatal(err)
	}
	wrote := func(n *App, text string, seen int64, who string) {
		t.Helper()
		c, err := n.Setup.Memory.Write(ctx, file, text, seen, memory.Origin{Who: who, How: "edit"})
		if err != nil || c.Text != text || c.Version != seen+1 {
			t.Fatalf("%+v (%v)", c, err)
		}
	}
	wrote(a, "one\n", 0, "ada")
	wrote(b, "one\ntwo\n", 1, "bob") // which never had the file
	wrote(a, "one\ntwo\nthree\n", 2, "ada")
	if c, err := b.Setup.Memory.Read(ctx, file); err != nil || c.Version > 3 || c.Text == "one\ntwo\nthree\n" && c.Version != 3 {
		t.Errorf("%+v (%v)", c, err)
	}
	b.syncDocuments(t)
	c, err := b.Setup.Memory.Read(ctx, file)
	if err != nil || c.Text != "one\ntwo\nthree\n" || c.Version != 3 {
		t.Errorf("%+v (%v)", c, err)
	}
	// A write on what somebody else has changed meanwhile is refused, and not lost silently.
	wrote(a, "four\n", 3, "ada")
	if _, err := b.Setup.Memory.Write(ctx, file, "five\n", 3, memory.Origin{Who: "bob"}); !errors.Is(err, memory.ErrMoved) {
		t.Errorf("%v, want ErrMoved", err)
	}
	list, err := b.Setup.Memory.History(ctx, file)
	if err != nil || len(list) != 4 || list[2].Who != "bob" || list[0].Who != "ada" {
		t.Errorf("%+v (%v)", list, err)
	}
	// An edit by hand on one of them is one version, of whoever looks first.
	write(t, b.path("MEMORY.md"), "by hand\n")
	b.syncDocuments(t)
	a.syncDocuments(t)
	for _, n := range []*App{a, b} {
		if c, err := n.Setup.Memory.Read(ctx, file); err != nil || c.Text != "by hand\n" || c.Version != 5 {
			t.Errorf("%+v (%v)", c, err)
		}
	}
	if err := a.Setup.Memory.Forget(ctx, file); err != nil {
		t.Fatal(err)
	}
	if list, err := b.Setup.Memory.History(ctx, file); err != nil || len(list) > 0 {
		t.Errorf("forgotten, it has %v (%v)", list, err)
	}
	b.syncDocuments(t)
	if got := b.text(t, "MEMORY.md"); got != "" {
		t.Errorf("the file of the other machine says %q", got)
	}
}

// An agent comes with the docs that it has, not with those of a template, and goes with them.
func TestDocsGoWithTheAgent(t *testing.T) { onBoth(t, docsGoWithTheAgent) }

func docsGoWithTheAgent(t *testing.T, database string) {
	a := openNode(t, database, t.TempDir())
	if _, err := a.Settings.Agents().Create(t.Context(), agents.Agent{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(a.path("agents/ada/docs/README.md")); err != nil {
		t.Fatal(err)
	}
	write(t, a.path("agents/ada/docs/own.md"), "own")
	a.syncDocuments(t)
	b := openNode(t, database, t.TempDir())
	if b.text(t, "agents/ada/docs/README.md") != "" || b.text(t, "agents/ada/docs/own.md") != "own" || b.text(t, "agents/ada/workspace/README.md") == "" {
		t.Error("the other machine has other docs")
	}
	if err := b.Settings.Agents().Destroy(t.Context(), "ada", false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a.syncDocuments(t)
		b.syncDocuments(t)
	}
	for _, n := range []*App{a, b} {
		if _, err := os.Stat(n.path("agents/ada")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its folder is back (%v)", err)
		}
	}
	heads, err := a.Settings.Documents.Store.List(t.Context(), "agents/ada/")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		if h.There() {
			t.Errorf("%s is still there", h.Name)
		}
	}
}

// A skill of the home that was approved on one machine is on on the other, with its programs.
func TestHomeSkillOnTwoMachines(t *testing.T) { onBoth(t, homeSkillOnTwoMachines) }

func homeSkillOnTwoMachines(t *testing.T, database string) {
	a, b := openNodes(t, database)
	write(t, a.path("skills/greet/SKILL.md"), "---\nname: greet\ndescription: Greets people. Use when somebody says hello.\n---\nSay hello.\n")
	write(t, a.path("skills/greet/run"), "#!/bin/sh\n")
	if err := os.Chmod(a.path("skills/greet/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, problems := a.Skills.Find(skill.Where{Global: a.Home.Dir()})
	if len(found) != 1 {
		t.Fatalf("found %+v (%v)", found, problems)
	}
	if err := a.Skills.Approve(found[0], found[0].Tree.Digest, "ada"); err != nil {
		t.Fatal(err)
	}
	a.syncDocuments(t)
	b.syncDocuments(t)
	looked, err := b.Skills.View(skill.Where{Global: b.Home.Dir()})
	if err != nil || len(looked.On) != 1 || len(looked.Problems) > 0 {
		t.Fatalf("on the other machine: %+v (%v)", looked, err)
	}
	if info, err := os.Stat(b.path("skills/greet/run")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v (%v)", info, err)
	}
}

// MCP servers that are added on two machines at once are both there.
func TestServersOfTwoMachines(t *testing.T) { onBoth(t, serversOfTwoMachines) }

func serversOfTwoMachines(t *testing.T, database string) {
	a, b := openNodes(t, database)
	for i, n := range []*App{a, b} {
		if err := n.Setup.AddServer(t.TempDir(), []string{"first", "second"}[i], runsetup.NewServer{Command: "true"}); err != nil {
			t.Fatal(err)
		}
	}
	a.syncDocuments(t)
	for _, n := range []*App{a, b} {
		if list := n.text(t, "mcp.json"); !strings.Contains(list, "first") || !strings.Contains(list, "second") {
			t.Errorf("%s", list)
		}
	}
	if err := a.Setup.RemoveServer(t.TempDir(), "second"); err != nil {
		t.Fatal(err)
	}
	b.syncDocuments(t)
	if list := b.text(t, "mcp.json"); strings.Contains(list, "second") {
		t.Errorf("%s", list)
	}
}
