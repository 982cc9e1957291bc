package workservice_test

import (
	"fmt"
	"slices"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// The graph of many tasks leaves out completed ones first and counts them; around a task it has what that needs and what needs it.
func TestTaskGraph(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := operations.CreateProject.Call(ctx, h.Local, root, operations.NewProject{Name: "Site"})
	must(err)
	var ids []string // each needs the one before it, and the first ten are completed
	for i := range 30 {
		in := operations.NewTask{Title: fmt.Sprint("Step ", i), Project: "site"}
		if i > 0 {
			in.Needs = ids[i-1:]
		}
		made, err := operations.CreateTask.Call(ctx, h.Local, root, in)
		must(err)
		ids = append(ids, made.ID)
	}
	lone, err := operations.CreateTask.Call(ctx, h.Local, root, operations.NewTask{Title: "Alone", Project: "site"})
	must(err)
	for _, id := range ids[:10] {
		h.move(id, work.Completed)
	}
	graph := func(in operations.TaskGraphQuery) (names []string, g operations.TaskGraph) {
		t.Helper()
		in.ID = "site"
		g, err := operations.GetTaskGraph.Call(ctx, h.Local, root, in)
		must(err)
		for _, one := range g.Tasks {
			names = append(names, one.ID)
		}
		return names, g
	}
	if names, g := graph(operations.TaskGraphQuery{}); len(names) != 31 || g.Hidden != 0 || len(g.Needs) != 29 || g.Done != nil {
		t.Errorf("all: %d tasks, %d edges, hidden %d, %v", len(names), len(g.Needs), g.Hidden, g.Done)
	}
	for _, in := range []operations.TaskGraphQuery{{Open: true}, {Limit: 25}} {
		names, g := graph(in)
		hidden := map[bool]int{true: 0, false: 10}[in.Open]
		if len(names) != 21 || slices.Contains(names, ids[9]) || g.Done[ids[10]] != 1 || len(g.Done) != 1 || g.Hidden != hidden {
			t.Errorf("%+v: %v, done %v, hidden %d", in, names, g.Done, g.Hidden)
		}
	}
	names, g := graph(operations.TaskGraphQuery{Around: ids[12], Limit: 5})
	if want := []string{ids[12], ids[11], ids[13], ids[10], ids[14]}; !slices.Equal(names, want) || g.Hidden != 25 || !g.More || len(g.Needs) != 4 {
		t.Errorf("around: %v, want %v; %+v", names, want, g)
	}
	if names, _ := graph(operations.TaskGraphQuery{Around: lone.ID}); !slices.Equal(names, []string{lone.ID}) {
		t.Errorf("around a lone one: %v", names)
	}
	if _, err := operations.GetTaskGraph.Call(ctx, h.Local, root, operations.TaskGraphQuery{ID: "site", Around: "no-body"}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("a task that is not there: %v", err)
	}
}
