package pages

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"chorus/internal/operations"
)

// randomTasks are tasks that need some of those before them.
func randomTasks(r *rand.Rand, n int) (tasks []operations.TaskBrief, needs []operations.TaskWaits) {
	for i := range n {
		id := fmt.Sprintf("task-%d", i)
		tasks = append(tasks, operations.TaskBrief{ID: id, Title: strings.Repeat("long words ", 1+r.IntN(4)), Status: "READY"})
		for range r.IntN(4) {
			if i > 0 {
				needs = append(needs, operations.TaskWaits{ID: id, Needs: fmt.Sprintf("task-%d", r.IntN(i))})
			}
		}
	}
	r.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	return tasks, needs
}

// No two tasks overlap, all are inside of the picture, every edge leads to the right, none is missing, and the same tasks look the same.
func TestGraphLayout(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		tasks, needs := randomTasks(r, r.IntN(201))
		l := layoutGraph(tasks, needs, nil)
		edges := map[[2]string]bool{}
		for _, e := range l.Edges {
			a, b := l.Nodes[e.From], l.Nodes[e.To]
			edges[[2]string{b.ID, a.ID}] = true
			if a.X+nodeWidth >= b.X || a.Layer >= b.Layer {
				t.Fatalf("seed %d: %s at %v needs %s at %v", seed, b.ID, b.X, a.ID, a.X)
			}
		}
		for _, e := range l.Edges { // an edge passes no task
			if len(e.Lanes) != l.Nodes[e.To].Layer-l.Nodes[e.From].Layer-1 {
				t.Fatalf("seed %d: %d lanes from layer %d to %d", seed, len(e.Lanes), l.Nodes[e.From].Layer, l.Nodes[e.To].Layer)
			}
			for _, lane := range e.Lanes {
				for _, n := range l.Nodes {
					if lane.X < n.X+nodeWidth && n.X < lane.X+nodeWidth && n.Y <= lane.Y && lane.Y <= n.Y+nodeHeight {
						t.Fatalf("seed %d: an edge passes %s", seed, n.ID)
					}
				}
			}
		}
		for _, n := range needs {
			if !edges[[2]string{n.ID, n.Needs}] {
				t.Fatalf("seed %d: the edge from %s to %s is missing", seed, n.ID, n.Needs)
			}
		}
		for i, a := range l.Nodes {
			if a.X < 0 || a.Y < 0 || a.X+nodeWidth > l.Width || a.Y+nodeHeight > l.Height {
				t.Fatalf("seed %d: %s is outside", seed, a.ID)
			}
			for _, b := range l.Nodes[:i] {
				if a.X < b.X+nodeWidth && b.X < a.X+nodeWidth && a.Y < b.Y+nodeHeight && b.Y < a.Y+nodeHeight {
					t.Fatalf("seed %d: %s lies on %s", seed, a.ID, b.ID)
				}
			}
		}
		if again := layoutGraph(tasks, needs, nil); !reflect.DeepEqual(l, again) {
			t.Fatalf("seed %d: the same tasks look otherwise", seed)
		}
		if svg := string(drawGraph(l, "")); strings.Count(svg, "<a href=") != len(tasks) {
			t.Fatalf("seed %d: not every task is drawn", seed)
		}
	}
}

// What cannot be is drawn all the same: circles lose an edge, tasks that are gone are left out, and titles are only text.
func TestGraphOfOddTasks(t *testing.T) {
	t.Parallel()
	l := layoutGraph([]operations.TaskBrief{{ID: "a", Title: `<script>"x"`, Status: "READY"}, {ID: "b"}, {ID: "c"}},
		[]operations.TaskWaits{{ID: "a", Needs: "b"}, {ID: "b", Needs: "a"}, {ID: "c", Needs: "gone"}, {ID: "c", Needs: "c"}, {ID: "c", Needs: "a"}, {ID: "c", Needs: "a"}}, nil)
	for _, e := range l.Edges {
		if l.Nodes[e.From].X >= l.Nodes[e.To].X {
			t.Errorf("%s is not left of %s", l.Nodes[e.From].ID, l.Nodes[e.To].ID)
		}
	}
	if svg := string(drawGraph(l, "")); strings.Contains(svg, "<script") || !strings.Contains(svg, "&lt;script&gt;") {
		t.Error(svg)
	}
	if drawGraph(layoutGraph(nil, nil, nil), "") != "" {
		t.Error("nothing is drawn as something")
	}
}

// A title has at most two lines that fit in its node, whatever it is made of.
func TestTitleLines(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{"": "", "Short": "Short", "Write a footer with everything": "Write a footer with|everything",
		"Write a footer with everything that belongs into one, and keep it": "Write a footer with|everything that …", strings.Repeat("x", 60): strings.Repeat("x", 20) + "|" + strings.Repeat("x", 20) + " …"} {
		if got := strings.Join(titleLines(title), "|"); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}
