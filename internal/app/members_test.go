package app

import (
	"errors"
	"testing"

	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store/storetest"
	"chorus/internal/work"
	"chorus/internal/workrun"
)

// Workers of several nodes know of each other: one that lives keeps its tasks, a name is one worker's, and one that left is gone.
func TestWorkersOfSeveralNodes(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	a, b := openAmong(t, home, "berlin", true), openAmong(t, home, "oslo", true)
	own, err := a.members.Join(work.Worker{Name: "one", Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.members.Join(work.Worker{Name: "one"}); !errors.Is(err, workrun.ErrNameTaken) {
		t.Errorf("two workers of one name: %v", err)
	}
	if !b.members.Alive("one") || b.members.Alive("two") || b.members.Alive("") {
		t.Error("another node does not know who lives")
	}
	if err := own.Draining(); err != nil {
		t.Error(err)
	}
	list, err := b.members.List()
	if err != nil || len(list) != 1 || list[0].Name != "one" || list[0].Slots != 2 || !list[0].Draining {
		t.Errorf("%+v, %v", list, err)
	}
	own.Leave()
	if b.members.Alive("one") {
		t.Error("a worker that left lives")
	}
	if list, err := b.members.List(); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A project is worked on where its files are: on the node that came first and has its folder, and on others that get its label.
func TestProjectsAreWorkedOnWhereTheirFilesAre(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	a, b := openAmong(t, home, "berlin", true), openAmong(t, home, "oslo", true)
	ctx := t.Context()
	for project, folder := range map[string]string{"site": t.TempDir(), "gone": "/there/is/no/such/folder"} {
		if _, err := a.queue.CreateProject(ctx, work.Project{ID: project, Name: project}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.queue.AddRepo(ctx, work.Repo{ID: "main", Project: project, Kind: work.Link, Path: folder}, "ada"); err != nil {
			t.Fatal(err)
		}
	}
	has := func(of *App, project string) bool {
		t.Helper()
		here, err := of.member.HasProject(ctx, project)
		if err != nil {
			t.Fatal(err)
		}
		return here
	}
	if !has(a, "site") || has(b, "site") || !has(a, "site") {
		t.Error("two nodes work on the same files, or none does")
	}
	if has(a, "gone") || has(b, "gone") {
		t.Error("a node works on a folder that it does not have")
	}
	if _, err := operations.LabelNode.Call(ctx, a.Service.Operations(), admin(a), operations.NodeLabels{Name: "oslo", Add: []string{"berlin"}}); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "oslo carries the label", func() bool { return has(b, "site") })
	release := a.member.HoldProject(ctx, "site")
	if release == nil || b.member.HoldProject(ctx, "site") != nil {
		t.Error("two nodes merge at once")
	}
	release()
	if release = b.member.HoldProject(ctx, "site"); release == nil {
		t.Error("nobody can merge any more")
	}
}
