package pages

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// What is sent of a board is what differs: the cards that changed, and the columns that they left and came to.
func TestBoardSince(t *testing.T) {
	t.Parallel()
	f := fewTasks{called: new([]string), tasks: []operations.Task{{ID: "a-a", ProjectID: "site", Status: "READY", Title: "A"}, {ID: "b-b", ProjectID: "site", Status: "READY", Title: "B"}, {ID: "c-c", ProjectID: "site", Status: "FAILED", Title: "C"}}}
	p, err := New(Options{Executor: f})
	if err != nil {
		t.Fatal(err)
	}
	look := func() boardView {
		t.Helper()
		b, err := p.board(t.Context(), operation.Caller{Scopes: operation.Scopes()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before := look()
	if u, changed := look().since(before); changed || look().Version != before.Version {
		t.Errorf("nothing happened: %+v", u)
	}
	f.tasks[0].Status = "COMPLETED"
	after := look()
	u, changed := after.since(before)
	if cards := slices.Sorted(maps.Keys(u.Cards)); !changed || !slices.Equal(cards, []string{"a-a"}) || !strings.Contains(u.Cards["a-a"], "card completed") || after.Version == before.Version {
		t.Errorf("cards %v, changed %v", cards, changed)
	}
	var columns []string
	for _, c := range u.Columns {
		columns = append(columns, c.ID+": "+strings.Join(c.Order, " "))
	}
	if got := strings.Join(columns, "; "); got != "ready: b-b; done: a-a" {
		t.Errorf("columns %s", got)
	}
	f.tasks[1].Title = "Otherwise"
	u, changed = look().since(after)
	if len(u.Columns) != 0 || len(u.Cards) != 1 || !strings.Contains(u.Cards["b-b"], "Otherwise") || !changed {
		t.Errorf("a title: %+v", u)
	}
	if u, changed = after.since(boardView{}); len(u.Cards) != 3 || len(u.Columns) != 6 || !changed {
		t.Errorf("the whole: %+v", u)
	}
}
