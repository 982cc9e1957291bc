package pages

import (
	"cmp"
	"slices"

	"chorus/internal/operations"
)

// The measures of a graph, in units of its view box.
const (
	nodeWidth, nodeHeight = 184, 62
	nodeGap, layerGap     = 14, 56
	laneHeight, laneGap   = 4, 8 // of an edge that passes a layer
	graphMargin           = 12
	sweeps                = 8 // how often the order within layers is improved; more changes little
	lonePerRow            = 5
)

// graphNode is a task at its place.
type graphNode struct {
	operations.TaskBrief
	Done  int // completed tasks that it needs and that are not shown
	Layer int
	X, Y  float64 // the upper left corner
	lone  bool    // it needs nothing and nothing needs it
}

// graphEdge leads from a task to one that needs it. In each layer between the two it has a lane of its own, so that it passes no task.
type graphEdge struct {
	From, To int
	Lanes    []graphPoint
}

// graphPoint is where a lane begins; it is as long as a node is wide.
type graphPoint struct{ X, Y float64 }

// graphLayout is a graph in layers: every edge goes to a layer further right, and nothing touches.
type graphLayout struct {
	Nodes         []graphNode
	Edges         []graphEdge
	Width, Height float64
}

// cells are what stands in the layers of a graph: nodes, and behind them the lanes of long edges.
type cells struct {
	before, after [][]int
	layers        [][]int
	lane          map[int]graphPlace
}

// graphPlace is a lane of an edge.
type graphPlace struct{ edge, lane int }

// layoutGraph places tasks: what a task needs is left of it, and tasks that are alone stand below. The same tasks give the same picture.
// Edges to tasks that are not there are left out, and so would be an edge that closes a circle; the store refuses those.
func layoutGraph(tasks []operations.TaskBrief, needs []operations.TaskWaits, done map[string]int) graphLayout {
	l := graphLayout{Nodes: make([]graphNode, len(tasks))}
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
				l.Edges = append(l.Edges, graphEdge{From: i, To: n})
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
	c := l.cells(order)
	orderLayers(c.layers, c.before, c.after)
	l.place(c, lone)
	return l
}

// shorten moves tasks that need nothing next to the first one that needs them.
func (l *graphLayout) shorten(before [][]int) {
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

// cells puts nodes into their layers, and a lane for every layer that an edge passes.
func (l *graphLayout) cells(order []int) cells {
	c := cells{lane: map[int]graphPlace{}, before: make([][]int, len(l.Nodes)), after: make([][]int, len(l.Nodes))}
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
			c.lane[cell] = graphPlace{n, len(e.Lanes)}
			e.Lanes = append(e.Lanes, graphPoint{})
			add(layer, cell)
			join(cell)
		}
		join(e.To)
	}
	return c
}

// topological orders nodes so that each comes after those before it; those of a circle come last, as they stand.
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

// orderLayers puts each node near the middle of its neighbours, layer by layer, there and back, so that few edges cross.
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

// place gives every cell its coordinates: layers from left to right, each in the middle of the tallest, lone tasks in rows below.
func (l *graphLayout) place(c cells, lone []int) {
	room := func(cell int) (height, gap float64) {
		if _, is := c.lane[cell]; is {
			return laneHeight, laneGap
		}
		return nodeHeight, nodeGap
	}
	tall := func(layer []int) (sum float64) {
		for _, cell := range layer {
			height, gap := room(cell)
			sum += height + gap
		}
		return sum
	}
	height := 0.0
	for _, layer := range c.layers {
		height = max(height, tall(layer))
	}
	right, bottom := 0.0, float64(graphMargin)
	for i, layer := range c.layers {
		x := graphMargin + float64(i)*(nodeWidth+layerGap)
		y := graphMargin + (height-tall(layer))/2
		for _, cell := range layer {
			if at, is := c.lane[cell]; is {
				l.Edges[at.edge].Lanes[at.lane] = graphPoint{x, y + laneHeight/2}
			} else {
				l.Nodes[cell].X, l.Nodes[cell].Y = x, y
			}
			tall, gap := room(cell)
			y += tall + gap
		}
		right = x + nodeWidth
	}
	if height > 0 {
		bottom = graphMargin + height + layerGap/3
	}
	for i, node := range lone {
		l.Nodes[node].X, l.Nodes[node].Y = graphMargin+float64(i%lonePerRow)*(nodeWidth+nodeGap), bottom+float64(i/lonePerRow)*(nodeHeight+nodeGap)
		right = max(right, l.Nodes[node].X+nodeWidth)
	}
	l.Height = bottom
	for _, n := range l.Nodes {
		l.Height = max(l.Height, n.Y+nodeHeight+graphMargin)
	}
	l.Width = right + graphMargin
}
