package agents

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// another is a second home on the same rows: another machine.
func (f *fixture) another(t *testing.T) *fixture {
	t.Helper()
	b := setup(t)
	b.rows = f.rows
	b.Rows = f.rows
	return b
}

// A home that never had an agent's folder gets it; nothing is forgotten because a folder is missing there.
func TestMadeInAnotherHome(t *testing.T) {
	t.Parallel()
	a := setup(t)
	made, err := a.Create(t.Context(), Agent{Name: "helper", SystemPrompt: "be brief", Permissions: "locked"})
	if err != nil {
		t.Fatal(err)
	}
	byName, byList := a.another(t), a.another(t)
	if got, err := byName.Get(t.Context(), "helper"); err != nil || !same(got, made) {
		t.Fatalf("in a home without its folder: %+v (%v)", got, err)
	}
	if list, err := byList.List(t.Context()); err != nil || len(list) != 1 || !same(list[0], made) {
		t.Fatalf("listed: %+v (%v)", list, err)
	}
	for _, f := range []*fixture{a, byName, byList} {
		f.agree(t, "helper")
		for _, part := range []string{"docs/README.md", "sessions", "processes", "workspace"} {
			if _, err := os.Stat(filepath.Join(f.Home.AgentDir("helper"), part)); err != nil {
				t.Error(err)
			}
		}
	}
	// Where it was, and a person removed it, it goes, as ever.
	if err := os.RemoveAll(byName.Home.AgentDir("helper")); err != nil {
		t.Fatal(err)
	}
	if _, err := byName.Get(t.Context(), "helper"); !errors.Is(err, ErrUnknown) {
		t.Errorf("after its folder was removed by hand: %v", err)
	}
}

// A disk that is not mounted is no order to forget every agent.
func TestAllFoldersMissing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(t, "first")
	f.create(t, "second")
	if err := os.RemoveAll(f.Home.Agents()); err != nil {
		t.Fatal(err)
	}
	f.agree(t, "first", "second")
}

// Killed while it lays out what was made elsewhere, a home begins anew.
func TestCrashWhileLayingOut(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.create(t, "helper")
	b := a.another(t)
	init := b.GitInit
	b.GitInit = func(context.Context, string) error { panic("killed before the folder is in place") }
	crash(t, func() { _, _ = b.Get(t.Context(), "helper") })
	b.GitInit = init
	b.agree(t, "helper")
	a.agree(t, "helper")
	if err := os.Remove(b.noteOf("helper")); err != nil { // killed before the note: the next look writes it
		t.Fatal(err)
	}
	b.agree(t, "helper")
	if !b.hadFolder("helper") {
		t.Error("the folder was not noted")
	}
}
