package taskgraph

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode"

	"chorus/internal/markdown"
	"chorus/internal/text"
	"chorus/internal/transport/http/display"
)

const (
	// screen is the width of a graph on a usual screen, and smallest how far it is scaled down to fit.
	screen, smallest = 950, 0.85
	// titleWidth is how much of a title fits on a line of a node, in average letters.
	titleWidth = 20
)

// Draw draws a layout as SVG. Every task is a link with its state as a word and a colour; the task that the graph is
// around is marked. name distinguishes two graphs of the same tasks on one page; with "" the tasks can be link targets.
func (l Layout) Draw(around, name string) string {
	if len(l.Nodes) == 0 {
		return ""
	}
	size := min(1, max(smallest, screen/l.Width))
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="graph" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="group" aria-label="Tasks and what they need">`, l.Width, l.Height, l.Width*size, l.Height*size)
	out.WriteString(`<defs><marker id="tip` + name + `" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.5 L7.5 4 L0 7.5 z"/></marker></defs>`)
	for _, e := range l.Edges {
		a, b := l.Nodes[e.From], l.Nodes[e.To]
		at, to := l.out(a), l.in(b)
		fmt.Fprintf(&out, `<path class="edge" data-from="%s" data-to="%s" marker-end="url(#tip%s)" d="M%.1f %.1f`, html.EscapeString(a.ID), html.EscapeString(b.ID), name, at.X, at.Y)
		for _, lane := range e.Lanes {
			l.bend(&out, at, lane)
			if at = lane; l.Down {
				at.Y += nodeHeight
			} else {
				at.X += nodeWidth
			}
			fmt.Fprintf(&out, " L%.1f %.1f", at.X, at.Y)
		}
		l.bend(&out, at, to)
		out.WriteString(`"/>`)
	}
	for _, n := range l.Nodes {
		drawNode(&out, n, around, name == "")
	}
	out.WriteString("</svg>")
	return out.String()
}

// out and in are where edges leave and enter a task.
func (l Layout) out(n node) point {
	if l.Down {
		return point{n.X + nodeWidth/2, n.Y + nodeHeight}
	}
	return point{n.X + nodeWidth, n.Y + nodeHeight/2}
}

func (l Layout) in(n node) point {
	if l.Down {
		return point{n.X + nodeWidth/2, n.Y - 2}
	}
	return point{n.X - 2, n.Y + nodeHeight/2}
}

// bend continues a path as a curve that starts and ends straight.
func (l Layout) bend(out *strings.Builder, from, to point) {
	first, second := from, to
	if l.Down {
		half := max((to.Y-from.Y)/2, 20)
		first.Y, second.Y = first.Y+half, second.Y-half
	} else {
		half := max((to.X-from.X)/2, 20)
		first.X, second.X = first.X+half, second.X-half
	}
	fmt.Fprintf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", first.X, first.Y, second.X, second.Y, to.X, to.Y)
}

func drawNode(out *strings.Builder, n node, around string, named bool) {
	id := ""
	if named {
		id = ` id="` + html.EscapeString(n.ID) + `"`
	}
	class := strings.ToLower(n.Status)
	if n.ID == around {
		class += " around"
	}
	fmt.Fprintf(out, `<a href="/work/%s"%s class="node %s"><title>%s (%s)</title><rect x="%.1f" y="%.1f" width="%d" height="%d" rx="9"/>`,
		url.PathEscape(n.ID), id, html.EscapeString(class), html.EscapeString(text.Clip(markdown.Clean(n.Title), 200)), html.EscapeString(display.TaskState(n.Status)), n.X, n.Y, nodeWidth, nodeHeight)
	fmt.Fprintf(out, `<svg x="%.1f" y="%.1f" width="%d" height="%d">`, n.X+10, n.Y, nodeWidth-14, nodeHeight)
	lines := titleLines(n.Title)
	for i, line := range lines {
		fmt.Fprintf(out, `<text class="name" y="%d">%s</text>`, 18+15*i, html.EscapeString(line))
	}
	where := display.TaskState(n.Status)
	if n.Done > 0 {
		where += fmt.Sprintf(" · needed %d done", n.Done)
	}
	fmt.Fprintf(out, `<text class="where" y="%d">%s</text></svg></a>`, nodeHeight-9, html.EscapeString(where))
}

// titleLines splits a title into one or two lines for its node; the rest is cut.
func titleLines(title string) []string {
	var lines []string
	line, width := "", 0.0
	for word := range strings.FieldsSeq(title) {
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

// pieces splits a word into parts that fit on a line.
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

// letters estimates the width of a text, in average letters.
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
