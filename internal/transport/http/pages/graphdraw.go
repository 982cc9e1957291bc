package pages

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
)

const (
	// graphScreen is how wide a graph is on a usual screen, and smallest how far it is made smaller to fit there.
	graphScreen, smallest = 950, 0.85
	// titleWidth is how much of a title fits in a line of a node, in letters of middle width.
	titleWidth = 20
)

// drawGraph draws a layout. Every task is a link with its state as a word and as a colour; the one that the graph is around is marked.
func drawGraph(l graphLayout, around string) template.HTML {
	if len(l.Nodes) == 0 {
		return ""
	}
	size := min(1, max(smallest, graphScreen/l.Width))
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="graph" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="group" aria-label="Tasks and what they need">`, l.Width, l.Height, l.Width*size, l.Height*size)
	out.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.5 L7.5 4 L0 7.5 z"/></marker></defs>`)
	for _, e := range l.Edges {
		a, b := l.Nodes[e.From], l.Nodes[e.To]
		fmt.Fprintf(&out, `<path class="edge" data-from="%s" data-to="%s" marker-end="url(#tip)" d="M%.1f %.1f`, html.EscapeString(a.ID), html.EscapeString(b.ID), a.X+nodeWidth, a.Y+nodeHeight/2)
		at := graphPoint{a.X + nodeWidth, a.Y + nodeHeight/2}
		for _, lane := range e.Lanes {
			bend(&out, at, lane)
			at = graphPoint{lane.X + nodeWidth, lane.Y}
			fmt.Fprintf(&out, " H%.1f", at.X)
		}
		bend(&out, at, graphPoint{b.X - 2, b.Y + nodeHeight/2})
		out.WriteString(`"/>`)
	}
	for _, n := range l.Nodes {
		drawNode(&out, n, around)
	}
	out.WriteString("</svg>")
	return template.HTML(out.String())
}

// bend continues a path in a curve that leaves and arrives level.
func bend(out *strings.Builder, from, to graphPoint) {
	half := max((to.X-from.X)/2, 20)
	fmt.Fprintf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", from.X+half, from.Y, to.X-half, to.Y, to.X, to.Y)
}

func drawNode(out *strings.Builder, n graphNode, around string) {
	class := strings.ToLower(n.Status)
	if n.ID == around {
		class += " around"
	}
	fmt.Fprintf(out, `<a href="/work/%s" id="%s" class="node %s"><title>%s (%s)</title><rect x="%.1f" y="%.1f" width="%d" height="%d" rx="9"/>`,
		url.PathEscape(n.ID), html.EscapeString(n.ID), html.EscapeString(class), html.EscapeString(short(n.Title, 200)), html.EscapeString(n.Status), n.X, n.Y, nodeWidth, nodeHeight)
	fmt.Fprintf(out, `<svg x="%.1f" y="%.1f" width="%d" height="%d">`, n.X+10, n.Y, nodeWidth-14, nodeHeight)
	lines := titleLines(n.Title)
	for i, line := range lines {
		fmt.Fprintf(out, `<text class="name" y="%d">%s</text>`, 18+15*i, html.EscapeString(line))
	}
	where := n.Status
	if n.Done > 0 {
		where += fmt.Sprintf(" · needed %d done", n.Done)
	}
	fmt.Fprintf(out, `<text class="where" y="%d">%s</text></svg></a>`, nodeHeight-9, html.EscapeString(where))
}

// titleLines are the one or two lines that a title has in its node; the rest of it is left out.
func titleLines(title string) []string {
	var lines []string
	line, width := "", 0.0
	for _, word := range strings.Fields(title) {
		for _, piece := range pieces(word) {
			w := letters(piece)
			if line != "" && width+1+w > titleWidth {
				lines, line, width = append(lines, line), "", 0
			}
			if line != "" {
				line, width = line+" ", width+1
			}
			line, width = line+piece, width+w
		}
		if len(lines) == 2 {
			return []string{lines[0], strings.TrimRightFunc(lines[1], unicode.IsPunct) + " …"}
		}
	}
	return append(lines, line)
}

// pieces are the parts of a word that fit in a line.
func pieces(word string) (out []string) {
	part, width := "", 0.0
	for _, r := range word {
		if w := letters(string(r)); width+w > titleWidth {
			out, part, width = append(out, part), "", 0
		}
		part, width = part+string(r), width+letters(string(r))
	}
	return append(out, part)
}

// letters is about how wide a text is, in letters of middle width.
func letters(text string) float64 {
	sum := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|!()[] ", r):
			sum += .62
		case strings.ContainsRune("mwMW@%", r):
			sum += 1.45
		case unicode.IsUpper(r):
			sum += 1.2
		case r > 0x2e80: // scripts with wide letters
			sum += 1.8
		default:
			sum++
		}
	}
	return sum
}
