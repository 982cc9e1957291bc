package pages

import (
	"cmp"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operations"
)

// The measures of a graph, in units of its view box.
const (
	nodeWidth, nodeHeight = 196, 52
	nodeGap, layerGap     = 14, 70
	graphMargin           = 12
	sweeps                = 8 // how often the order within layers is improved; more changes little
	lonePerRow            = 5
)

// graphNode is a task at its place.
type graphNode struct {
	operations.TaskBrief
	Layer int
	X, Y  float64 // the upper left corner
	lone  bool    // it needs nothing and nothing needs it
}

// graphEdge leads from a task to one that needs it.
type graphEdge struct{ From, To int }

// graphLayout is a graph in layers: every edge goes to a layer further right, and no two nodes touch.
type graphLayout struct {
	Nodes         []graphNode
	Edges         []graphEdge
	Width, Height float64
}

// layoutGraph places tasks: what a task needs is left of it, and tasks that are alone stand below. The same tasks give the same picture.
// Edges to tasks that are not there are left out, and so would be an edge that closes a circle; the store refuses those.
func layoutGraph(tasks []operations.TaskBrief, needs []operations.TaskWaits) graphLayout {
	l := graphLayout{Nodes: make([]graphNode, len(tasks))}
	at := map[string]int{}
	for i, t := range tasks {
		l.Nodes[i].TaskBrief = t
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
	for _, i := range order {
		for _, n := range after[i] {
			if slices.Index(order, n) > slices.Index(order, i) {
				l.Nodes[n].Layer = max(l.Nodes[n].Layer, l.Nodes[i].Layer+1)
				l.Edges = append(l.Edges, graphEdge{i, n})
			}
		}
	}
	var layers [][]int
	var lone []int
	for _, i := range order {
		if l.Nodes[i].lone = len(before[i]) == 0 && len(after[i]) == 0; l.Nodes[i].lone {
			lone = append(lone, i)
			continue
		}
		for len(layers) <= l.Nodes[i].Layer {
			layers = append(layers, nil)
		}
		layers[l.Nodes[i].Layer] = append(layers[l.Nodes[i].Layer], i)
	}
	orderLayers(layers, before, after)
	l.place(layers, lone)
	return l
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

// place gives every node its coordinates: layers from left to right, each in the middle of the tallest, lone tasks in rows below.
func (l *graphLayout) place(layers [][]int, lone []int) {
	tallest := 0
	for _, layer := range layers {
		tallest = max(tallest, len(layer))
	}
	height := float64(tallest)*(nodeHeight+nodeGap) - nodeGap
	right, bottom := 0.0, float64(graphMargin)
	for i, layer := range layers {
		x := graphMargin + float64(i)*(nodeWidth+layerGap)
		y := graphMargin + (height-float64(len(layer))*(nodeHeight+nodeGap)+nodeGap)/2
		for n, node := range layer {
			l.Nodes[node].X, l.Nodes[node].Y = x, y+float64(n)*(nodeHeight+nodeGap)
		}
		right = x + nodeWidth
	}
	if tallest > 0 {
		bottom = graphMargin + height + layerGap/2
	}
	for i, node := range lone {
		l.Nodes[node].X, l.Nodes[node].Y = graphMargin+float64(i%lonePerRow)*(nodeWidth+nodeGap), bottom+float64(i/lonePerRow)*(nodeHeight+nodeGap)
		right = max(right, l.Nodes[node].X+nodeWidth)
	}
	for _, n := range l.Nodes {
		l.Height = max(l.Height, n.Y+nodeHeight+graphMargin)
	}
	l.Width = right + graphMargin
}

// drawGraph draws a layout. Every task is a link with its state as a word and as a colour.
func drawGraph(l graphLayout) template.HTML {
	if len(l.Nodes) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="graph" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="group" aria-label="Tasks and what they need">`, l.Width, l.Height, l.Width, l.Height)
	out.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.5 L7.5 4 L0 7.5 z"/></marker></defs>`)
	for _, e := range l.Edges {
		a, b := l.Nodes[e.From], l.Nodes[e.To]
		x1, y1, x2, y2 := a.X+nodeWidth, a.Y+nodeHeight/2, b.X-2, b.Y+nodeHeight/2
		bend := max((x2-x1)/2, 24)
		fmt.Fprintf(&out, `<path class="edge" marker-end="url(#tip)" d="M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f"/>`, x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
	}
	for _, n := range l.Nodes {
		id := url.PathEscape(n.ID)
		fmt.Fprintf(&out, `<a href="/work/%s" id="%s" class="node %s"><title>%s (%s)</title><rect x="%.1f" y="%.1f" width="%d" height="%d" rx="9"/><svg x="%.1f" y="%.1f" width="%d" height="%d"><text class="name" y="21">%s</text><text class="where" y="39">%s</text></svg></a>`,
			id, html.EscapeString(n.ID), html.EscapeString(strings.ToLower(n.Status)), html.EscapeString(short(n.Title, 200)), html.EscapeString(n.Status),
			n.X, n.Y, nodeWidth, nodeHeight, n.X+11, n.Y, nodeWidth-18, nodeHeight, html.EscapeString(short(n.Title, 24)), html.EscapeString(n.Status))
	}
	out.WriteString("</svg>")
	return template.HTML(out.String())
}
