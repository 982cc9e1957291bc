// Package taskgraph lays out tasks and their dependencies in layers, and draws them.
package taskgraph

import (
	"cmp"
	"slices"

	"chorus/internal/operations"
)

// The measures of a graph, in units of its view box.
const (
	nodeWidth, nodeHeight = 184, 62
	nodeGap, layerGap     = 14, 56
	laneHeight, laneGap   = 4, 8 // of an edge that crosses a layer
	margin                = 12
	sweeps                = 8 // rounds of improving the order within layers; more change little
)

// shape configures the layout of a graph.
type shape struct {
	down bool // layers below each other instead of side by side
	most int  // tasks per layer; more get another layer. 0: any number
	lone int  // unconnected tasks per row
}

// toTheRight is the natural reading direction, inRows fits many layers, and narrow fits a phone.
var (
	toTheRight = shape{lone: 5}
	inRows     = shape{down: true, most: 5, lone: 5}
	narrow     = shape{down: true, most: 1, lone: 1}
)

// node is a task with its position.
type node struct {
	operations.TaskBrief
	Done  int // completed tasks that it needs and that are not shown
	Layer int
	X, Y  float64 // the upper left corner
	lone  bool    // it needs nothing and nothing needs it
}

// edge leads from a task to one that needs it. In each layer in between it has its own lane, so that it crosses no task.
type edge struct {
	From, To int
	Lanes    []point
}

// point is the start of a lane, which is as long as a node.
type point struct{ X, Y float64 }

// Layout is a graph in layers: every edge leads to a layer further right or below, and nothing touches.
type Layout struct {
	Down          bool
	Nodes         []node
	Edges         []edge
	Width, Height float64
}

// cells are the contents of the layers of a graph: nodes, and behind them the lanes of long edges.
type cells struct {
	before, after [][]int
	layers        [][]int
	lane          map[int]lanePlace
}

// lanePlace is a lane of an edge.
type lanePlace struct{ edge, lane int }

// Fit lays out tasks for a screen: from left to right if there are few layers, else downwards.
func Fit(tasks []operations.TaskBrief, needs []operations.TaskWaits, done map[string]int) Layout {
	l := lay(tasks, needs, done, toTheRight)
	if l.Width*smallest > screen {
		if down := lay(tasks, needs, done, inRows); down.Width < l.Width {
			return down
		}
	}
	return l
}

// Narrow lays out tasks below each other, for a phone.
func Narrow(tasks []operations.TaskBrief, needs []operations.TaskWaits, done map[string]int) Layout {
	return lay(tasks, needs, done, narrow)
}

// lay places tasks: what a task needs is left of it or above it, and unconnected tasks are at the bottom. The same tasks
// give the same graph. Edges to missing tasks are left out, and so would be an edge that closes a cycle; the store
// rejects those.
func lay(tasks []operations.TaskBrief, needs []operations.TaskWaits, done map[string]int, how shape) Layout {
	l := Layout{Down: how.down, Nodes: make([]node, len(tasks))}
	at := map[string]int{}
	for i, t := range tasks {
		l.Nodes[i].TaskBrief, l.Nodes[i].Done = t, done[t.ID]
		at[t.ID] = i
	}
	before, after := make([][]int, len(tasks)), make([][]int, len(tasks))
	for _, e := range needs {
		from, there := at[e.Needs]
		to, ok := at[e.ID]
		if there && ok && from != to && !slices.Contains(after[from], to) {
			before[to], after[from] = append(before[to], from), append(after[from], to)
		}
	}
	order := topological(before, after)
	place := make([]int, len(tasks))
	for i, n := range order {
		place[n] = i
	}
	for _, i := range order {
		for _, n := range after[i] {
			if place[n] > place[i] {
				l.Nodes[n].Layer = max(l.Nodes[n].Layer, l.Nodes[i].Layer+1)
				l.Edges = append(l.Edges, edge{From: i, To: n})
			}
		}
	}
	l.shorten(before)
	var lone []int
	for _, i := range order {
		if l.Nodes[i].lone = len(before[i]) == 0 && len(after[i]) == 0; l.Nodes[i].lone {
			lone = append(lone, i)
		}
	}
	l.split(order, how.most)
	c := l.cells(order)
	orderLayers(c.layers, c.before, c.after)
	l.place(c, lone, how.lone)
	return l
}

// shorten moves tasks that need nothing next to the first task that needs them.
func (l *Layout) shorten(before [][]int) {
	first := map[int]int{}
	for _, e := range l.Edges {
		if to, seen := first[e.From]; !seen || l.Nodes[e.To].Layer < to {
			first[e.From] = l.Nodes[e.To].Layer
		}
	}
	for i, to := range first {
		if len(before[i]) == 0 {
			l.Nodes[i].Layer = to - 1
		}
	}
}

// split divides layers with more tasks than fit.
func (l *Layout) split(order []int, most int) {
	if most == 0 {
		return
	}
	var layers [][]int
	for _, i := range order {
		if l.Nodes[i].lone {
			continue
		}
		for len(layers) <= l.Nodes[i].Layer {
			layers = append(layers, nil)
		}
		layers[l.Nodes[i].Layer] = append(layers[l.Nodes[i].Layer], i)
	}
	number := 0
	for _, layer := range layers {
		for part := range slices.Chunk(layer, most) {
			for _, i := range part {
				l.Nodes[i].Layer = number
			}
			number++
		}
	}
}

// cells assigns nodes to their layers, and a lane for every layer that an edge crosses.
func (l *Layout) cells(order []int) cells {
	c := cells{lane: map[int]lanePlace{}, before: make([][]int, len(l.Nodes)), after: make([][]int, len(l.Nodes))}
	add := func(layer, cell int) {
		for len(c.layers) <= layer {
			c.layers = append(c.layers, nil)
		}
		c.layers[layer] = append(c.layers[layer], cell)
	}
	for _, i := range order {
		if !l.Nodes[i].lone {
			add(l.Nodes[i].Layer, i)
		}
	}
	for n := range l.Edges {
		e := &l.Edges[n]
		last := e.From
		join := func(to int) {
			c.after[last], c.before[to] = append(c.after[last], to), append(c.before[to], last)
			last = to
		}
		for layer := l.Nodes[e.From].Layer + 1; layer < l.Nodes[e.To].Layer; layer++ {
			cell := len(c.before)
			c.before, c.after = append(c.before, nil), append(c.after, nil)
			c.lane[cell] = lanePlace{n, len(e.Lanes)}
			e.Lanes = append(e.Lanes, point{})
			add(layer, cell)
			join(cell)
		}
		join(e.To)
	}
	return c
}

// topological orders nodes so that each comes after those before it; nodes of a cycle come last, in their given order.
func topological(before, after [][]int) []int {
	missing := make([]int, len(before))
	var ready, order []int
	for i := range before {
		if missing[i] = len(before[i]); missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready, order = ready[1:], append(order, i)
		for _, n := range after[i] {
			if missing[n]--; missing[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
	for i := range missing {
		if missing[i] > 0 {
			order = append(order, i)
		}
	}
	return order
}

// orderLayers moves each node near the middle of its neighbours, layer by layer, back and forth, so that few edges cross.
func orderLayers(layers [][]int, before, after [][]int) {
	rank := map[int]float64{}
	number := func(layer []int) {
		for i, n := range layer {
			rank[n] = float64(i) / float64(len(layer))
		}
	}
	for _, layer := range layers {
		number(layer)
	}
	arrange := func(layer []int, neighbours [][]int) {
		mean := map[int]float64{}
		for _, n := range layer {
			mean[n] = rank[n]
			if near := neighbours[n]; len(near) > 0 {
				sum := 0.0
				for _, m := range near {
					sum += rank[m]
				}
				mean[n] = sum / float64(len(near))
			}
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
		number(layer)
	}
	for range sweeps {
		for i := 1; i < len(layers); i++ {
			arrange(layers[i], before)
		}
		for i := len(layers) - 2; i >= 0; i-- {
			arrange(layers[i], after)
		}
	}
}

// place assigns coordinates: layers one after the other, each centred on the longest, unconnected tasks in rows below.
func (l *Layout) place(c cells, lone []int, perRow int) {
	across, along := float64(nodeHeight), float64(nodeWidth)
	if l.Down {
		across, along = along, across
	}
	room := func(cell int) (size, gap float64) {
		if _, is := c.lane[cell]; is {
			return laneHeight, laneGap
		}
		return across, nodeGap
	}
	long := func(layer []int) (sum float64) {
		for _, cell := range layer {
			size, gap := room(cell)
			sum += size + gap
		}
		return sum
	}
	longest := 0.0
	for _, layer := range c.layers {
		longest = max(longest, long(layer))
	}
	right, bottom := 0.0, 0.0 // of what is placed
	for i, layer := range c.layers {
		far := margin + float64(i)*(along+layerGap)
		at := margin + (longest-long(layer))/2
		for _, cell := range layer {
			size, gap := room(cell)
			if lane, is := c.lane[cell]; is {
				l.Edges[lane.edge].Lanes[lane.lane] = l.at(far, at+size/2)
			} else {
				p := l.at(far, at)
				l.Nodes[cell].X, l.Nodes[cell].Y = p.X, p.Y
			}
			at += size + gap
		}
		end := l.at(far+along, margin+longest)
		right, bottom = max(right, end.X), max(bottom, end.Y)
	}
	top := float64(margin)
	if bottom > 0 {
		top = bottom + layerGap/3
	}
	for i, node := range lone {
		l.Nodes[node].X, l.Nodes[node].Y = margin+float64(i%perRow)*(nodeWidth+nodeGap), top+float64(i/perRow)*(nodeHeight+nodeGap)
		right, bottom = max(right, l.Nodes[node].X+nodeWidth), max(bottom, l.Nodes[node].Y+nodeHeight)
	}
	l.Width, l.Height = right+margin, bottom+margin
}

// at returns the point at a distance along the layers and one within a layer.
func (l *Layout) at(along, across float64) point {
	if l.Down {
		return point{across, along}
	}
	return point{along, across}
}
