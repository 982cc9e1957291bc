package pages

import (
	"context"
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

// movingTasks are tasks of which one moves while a board is read: from the last column to the first, once the first was read.
type movingTasks struct {
	fewTasks
	moves, moved *int
}

func (m movingTasks) Execute(ctx context.Context, by operation.Caller, d *operation.Definition, in any) (any, error) {
	out, err := m.fewTasks.Execute(ctx, by, d, in)
	if q, ok := in.(operations.TaskQuery); ok && q.Status == "READY" && *m.moved < *m.moves {
		*m.moved++
		m.tasks[0].Status = map[string]string{"FAILED": "READY", "READY": "FAILED"}[m.tasks[0].Status]
	}
	return out, err
}

// A task that moves while the board is read stands in one column, not in two and not in none. A board that never rests is shown.
func TestBoardIsReadAtOneTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		moves, cards int
	}{"once": {1, 1}, "and back": {2, 1}, "for ever": {1000, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := movingTasks{fewTasks: fewTasks{called: new([]string), tasks: []operations.Task{{ID: "a-a", ProjectID: "site", Status: "FAILED", Title: "A"}}}, moves: &c.moves, moved: new(int)}
			p, err := New(Options{Executor: m})
			if err != nil {
				t.Fatal(err)
			}
			b, err := p.board(t.Context(), operation.Caller{Scopes: operation.Scopes()}, nil)
			if err != nil {
				t.Fatal(err)
			}
			cards := 0
			for _, column := range b.Columns {
				cards += len(column.Cards)
			}
			if cards != c.cards {
				t.Errorf("%d cards, want %d", cards, c.cards)
			}
		})
	}
}
