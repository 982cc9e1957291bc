package taskgraph

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

// No two tasks overlap, all are inside of the picture, every edge leads to the right or down, none is missing, no layer has more tasks than fit, and the same
// tasks look the same. Most graphs are small, where whatever goes wrong is found as well; make fuzz goes on with others.
func FuzzGraphLayout(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, uint8(seed))
	}
	for seed := range uint64(2) {
		f.Add(seed, uint8(200-50*seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) {
		for name, shape := range map[string]shape{"to the right": toTheRight, "rows": inRows, "narrow": narrow} {
			tasks, needs := randomTasks(rand.New(rand.NewPCG(seed, 1)), min(int(size), 200))
			l := lay(tasks, needs, nil, shape)
			if why := wrongIn(l, needs, shape); why != "" {
				t.Fatalf("%s: %s", name, why)
			}
			if again := lay(tasks, needs, nil, shape); !reflect.DeepEqual(l, again) {
				t.Fatalf("%s: the same tasks look otherwise", name)
			}
			if svg := l.Draw("", ""); strings.Count(svg, "<a href=") != len(tasks) {
				t.Fatalf("%s: not every task is drawn", name)
			}
		}
	})
}

// wrongIn says what is wrong in a layout.
func wrongIn(l Layout, needs []operations.TaskWaits, how shape) string {
	edges := map[[2]string]bool{}
	for _, e := range l.Edges {
		a, b := l.Nodes[e.From], l.Nodes[e.To]
		edges[[2]string{b.ID, a.ID}] = true
		if from, to := l.out(a), l.in(b); !l.Down && from.X >= to.X || l.Down && from.Y >= to.Y || a.Layer >= b.Layer {
			return fmt.Sprintf("%s at %v needs %s at %v", b.ID, to, a.ID, from)
		}
		if len(e.Lanes) != b.Layer-a.Layer-1 {
			return fmt.Sprintf("%d lanes from layer %d to %d", len(e.Lanes), a.Layer, b.Layer)
		}
		for _, lane := range e.Lanes { // an edge passes no task
			wide, tall := float64(nodeWidth), 0.0
			if l.Down {
				wide, tall = 0, nodeHeight
			}
			for _, n := range l.Nodes {
				if lane.X < n.X+nodeWidth && n.X < lane.X+wide && n.Y <= lane.Y+tall && lane.Y <= n.Y+nodeHeight || l.Down && n.X <= lane.X && lane.X <= n.X+nodeWidth && lane.Y < n.Y+nodeHeight && n.Y < lane.Y+tall {
					return "an edge passes " + n.ID
				}
			}
		}
	}
	for _, n := range needs {
		if !edges[[2]string{n.ID, n.Needs}] {
			return fmt.Sprintf("the edge from %s to %s is missing", n.ID, n.Needs)
		}
	}
	inLayer := map[int]int{}
	for i, a := range l.Nodes {
		if a.X < 0 || a.Y < 0 || a.X+nodeWidth > l.Width || a.Y+nodeHeight > l.Height {
			return a.ID + " is outside"
		}
		if inLayer[a.Layer]++; !a.lone && how.most > 0 && inLayer[a.Layer] > how.most+loneIn(l, a.Layer) {
			return fmt.Sprintf("layer %d has too many tasks", a.Layer)
		}
		for _, b := range l.Nodes[:i] {
			if a.X < b.X+nodeWidth && b.X < a.X+nodeWidth && a.Y < b.Y+nodeHeight && b.Y < a.Y+nodeHeight {
				return fmt.Sprintf("%s lies on %s", a.ID, b.ID)
			}
		}
	}
	return ""
}

func loneIn(l Layout, layer int) (n int) {
	for _, node := range l.Nodes {
		if node.lone && node.Layer == layer {
			n++
		}
	}
	return n
}

// A chain of many tasks is no wider than a screen, and on a phone no wider than that.
func TestGraphFits(t *testing.T) {
	t.Parallel()
	var tasks []operations.TaskBrief
	var needs []operations.TaskWaits
	for i := range 30 {
		tasks = append(tasks, operations.TaskBrief{ID: fmt.Sprintf("t%02d", i)})
		if i > 0 {
			needs = append(needs, operations.TaskWaits{ID: fmt.Sprintf("t%02d", i), Needs: fmt.Sprintf("t%02d", i-1)})
		}
		if i > 3 {
			needs = append(needs, operations.TaskWaits{ID: fmt.Sprintf("t%02d", i), Needs: fmt.Sprintf("t%02d", i-4)})
		}
	}
	if l := Fit(tasks, needs, nil); !l.Down || l.Width > screen {
		t.Errorf("%.0f wide, down %v", l.Width, l.Down)
	}
	if l := lay(tasks, needs, nil, narrow); l.Width > 330 {
		t.Errorf("%.0f wide on a phone", l.Width)
	}
	if l := Fit(tasks[:4], needs[:3], nil); l.Down {
		t.Error("a short chain goes down")
	}
}

// What cannot be is drawn all the same: circles lose an edge, tasks that are gone are left out, and titles are only text.
func TestGraphOfOddTasks(t *testing.T) {
	t.Parallel()
	l := lay([]operations.TaskBrief{{ID: "a", Title: `<script>"x"`, Status: "READY"}, {ID: "b"}, {ID: "c"}},
		[]operations.TaskWaits{{ID: "a", Needs: "b"}, {ID: "b", Needs: "a"}, {ID: "c", Needs: "gone"}, {ID: "c", Needs: "c"}, {ID: "c", Needs: "a"}, {ID: "c", Needs: "a"}}, nil, toTheRight)
	for _, e := range l.Edges {
		if l.Nodes[e.From].X >= l.Nodes[e.To].X {
			t.Errorf("%s is not left of %s", l.Nodes[e.From].ID, l.Nodes[e.To].ID)
		}
	}
	if svg := l.Draw("", ""); strings.Contains(svg, "<script") || !strings.Contains(svg, "&lt;script&gt;") {
		t.Error(svg)
	}
	if Fit(nil, nil, nil).Draw("", "") != "" {
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
