package markdown

import (
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"chorus/internal/theme"
)

// HTML renders Markdown for a web page. Whatever the source contains, the result consists of a few of our elements with
// text: nothing in it runs, loads or leaves its place. Links lead to http, https or mailto only; pictures become links.
func HTML(src string) string { return strings.Join(Blocks(src), "\n") }

// Blocks returns the top-level blocks of HTML. While a text is still being written, all but the last one are final: more
// text extends the last one or follows it.
func Blocks(src string) []string {
	p := page{src: []byte(Clean(src))}
	var out []string
	for n := blockParser().Parse(text.NewReader(p.src)).FirstChild(); n != nil; n = n.NextSibling() {
		p.block(n)
		out = append(out, p.out.String())
		p.out.Reset()
	}
	// The last line can still become anything, and change the block before it: it may continue a list, or make a table or a
	// heading of the line above.
	if whole, last := cutLastLine(p.src); strings.TrimSpace(last) != "" {
		final := max(blockParser().Parse(text.NewReader(whole)).ChildCount()-1, 0)
		if final < len(out)-1 {
			out = append(out[:final], strings.Join(out[final:], "\n"))
		}
	}
	return out
}

func cutLastLine(src []byte) (whole []byte, last string) {
	at := strings.LastIndexByte(string(src), '\n') + 1
	return src[:at], string(src[at:])
}

// page writes nodes as HTML.
type page struct {
	src    []byte
	linked bool      // inside a link, where no other link is allowed
	doc    *document // nil: for text of models
	out    strings.Builder
}

func (p *page) write(parts ...string) {
	for _, part := range parts {
		p.out.WriteString(part)
	}
}

func (p *page) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Paragraph:
		p.element("p", n)
	case *ast.TextBlock:
		p.inline(p.textOf(n))
	case *ast.Heading:
		if p.doc != nil {
			p.heading(n)
			return
		}
		p.element("h"+strconv.Itoa(min(n.Level+1, 6)), n) // the page has its own h1
	case *ast.ThematicBreak:
		p.write("<hr>")
	case *ast.CodeBlock:
		p.code("", p.textOf(n))
	case *ast.FencedCodeBlock:
		info := ""
		if n.Info != nil {
			info = literal(n.Info.Value(p.src))
		}
		p.code(languageName(info), p.textOf(n))
	case *ast.Blockquote:
		p.write("<blockquote>")
		p.blocks(n)
		p.write("</blockquote>")
	case *ast.List:
		p.list(n)
	case *extension.Table:
		p.table(n)
	}
}

// blocks writes the blocks inside another one.
func (p *page) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() {
			p.write("\n")
		}
		p.block(n)
	}
}

// textOf returns the source of a block, without the prefixes of its lines.
func (p *page) textOf(n ast.Node) string { return string(n.Lines().Value(p.src)) }

func (p *page) element(tag string, n ast.Node) {
	p.write("<", tag, ">")
	p.inline(p.textOf(n))
	p.write("</", tag, ">")
}

func (p *page) code(lang, text string) {
	p.write(`<figure class="code">`)
	if lang != "" {
		p.write("<figcaption>", html.EscapeString(lang), "</figcaption>")
	}
	p.write("<pre><code>", coloured(text, lang), "</code></pre></figure>")
}

// Code renders code, coloured for its language. Characters that hide or reorder text are escaped.
func Code(text, lang string) string { return coloured(Visible(text), lang) }

func coloured(text, lang string) string {
	if text == "" {
		return ""
	}
	var out strings.Builder
	highlight := newHighlighter(lang)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		for _, s := range highlight.line(expandTabs(line)) {
			piece := html.EscapeString(s.text)
			if class := classes[s.style]; class != "" {
				piece = `<span class="` + class + `">` + piece + "</span>"
			}
			out.WriteString(piece)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// classes are the style sheet's class names for the colours of code.
var classes = map[style]string{theme.Keyword: "k", theme.String: "s", theme.Comment: "c", theme.Added: "add", theme.Removed: "del", theme.Hunk: "hunk"}

func (p *page) list(n *ast.List) {
	tag, start := "ul", ""
	if n.IsOrdered() {
		tag = "ol"
		if n.Start != 1 {
			start = ` start="` + strconv.Itoa(n.Start) + `"`
		}
	}
	p.write("<", tag, start, ">")
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		p.item(item)
	}
	p.write("</", tag, ">")
}

func (p *page) item(n ast.Node) {
	first := n.FirstChild()
	if first != nil && (first.Kind() == ast.KindTextBlock || first.Kind() == ast.KindParagraph) {
		if box, rest, ok := cutTask(p.textOf(first)); ok {
			p.write(`<li class="task">`, box, " ")
			p.inline(rest)
			if n.RemoveChild(n, first); n.FirstChild() != nil {
				p.write("\n")
			}
			p.blocks(n)
			p.write("</li>")
			return
		}
	}
	p.write("<li>")
	p.blocks(n)
	p.write("</li>")
}

// manyColumns is how many columns do not fit beside each other on a phone: there each row is shown as a list.
const manyColumns = 4

func (p *page) table(n *extension.Table) {
	labels := p.labels(n)
	if len(labels) < manyColumns {
		labels = nil
		p.write(`<div class="table"><table>`)
	} else {
		p.write(`<div class="table wide"><table>`)
	}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		tag := "td"
		switch {
		case row.Kind() == extension.KindTableHeader:
			tag = "th"
			p.write("<thead>")
		case row.PreviousSibling().Kind() == extension.KindTableHeader:
			p.write("<tbody>")
		}
		p.write("<tr>")
		i := 0
		for c := row.FirstChild(); c != nil; c, i = c.NextSibling(), i+1 {
			class, label := "", ""
			switch c.(*extension.TableCell).Alignment {
			case extension.AlignRight:
				class = ` class="right"`
			case extension.AlignCenter:
				class = ` class="middle"`
			}
			if tag == "td" && i < len(labels) {
				label = ` data-label="` + html.EscapeString(labels[i]) + `"`
			}
			p.write("<", tag, class, label, ">")
			p.inline(p.cell(c))
			p.write("</", tag, ">")
		}
		p.write("</tr>")
		if tag == "th" {
			p.write("</thead>")
		}
	}
	if n.ChildCount() > 1 {
		p.write("</tbody>")
	}
	p.write("</table></div>")
}

// cell returns the source of a cell.
func (p *page) cell(n ast.Node) string { return strings.ReplaceAll(p.textOf(n), `\|`, "|") }

// maxLabel is how many characters of a column's head are repeated in each of its cells.
const maxLabel = 40

// labels returns the heads of a table's columns as plain text.
func (p *page) labels(n *extension.Table) (labels []string) {
	for c := n.FirstChild().FirstChild(); c != nil; c = c.NextSibling() {
		head := page{src: p.src, linked: true}
		head.inline(p.cell(c))
		label := []rune(strings.TrimSpace(html.UnescapeString(tagless(head.out.String()))))
		labels = append(labels, string(label[:min(len(label), maxLabel)]))
	}
	return labels
}

// inline writes the text of one block.
func (p *page) inline(src string) {
	src = strings.TrimRight(src, "\n ")
	root := parseInline(src)
	if root == nil {
		p.write(html.EscapeString(src))
		return
	}
	inner := page{src: []byte(src), doc: p.doc}
	inner.nodes(root)
	p.write(inner.out.String())
}

func (p *page) nodes(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		p.node(n)
	}
}

func (p *page) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		p.write(html.EscapeString(literal(n.Value(p.src))))
		switch {
		case n.SoftLineBreak() && p.doc != nil:
			p.write("\n") // the lines of a paragraph are joined
		case n.SoftLineBreak() || n.HardLineBreak():
			p.write("<br>\n")
		}
	case *ast.CodeSpan:
		p.write("<code>", html.EscapeString(codeText(n, p.src)), "</code>")
	case *ast.Emphasis:
		p.around(map[bool]string{true: "strong", false: "em"}[n.Level == 2], n)
	case *extension.Strikethrough:
		p.around("s", n)
	case *ast.Link:
		p.link(literal(n.Destination), n)
	case *ast.Image:
		p.link(literal(n.Destination), n)
	case *ast.AutoLink:
		p.anchor(linkTarget(n, p.src), html.EscapeString(string(n.Label(p.src))))
	default:
		p.nodes(n)
	}
}

func (p *page) around(tag string, n ast.Node) {
	p.write("<", tag, ">")
	p.nodes(n)
	p.write("</", tag, ">")
}

func (p *page) link(target string, n ast.Node) {
	inner := page{src: p.src, linked: true, doc: p.doc}
	if inner.nodes(n); inner.out.Len() == 0 {
		inner.write(html.EscapeString(target))
	}
	p.anchor(target, inner.out.String())
}

// anchor writes a link, if the target is allowed.
func (p *page) anchor(target, shown string) {
	if p.doc != nil {
		p.docAnchor(target, shown)
		return
	}
	if target = safeLink(target); target == "" || p.linked {
		p.write(shown)
		return
	}
	p.write(`<a href="`, html.EscapeString(target), `" rel="noopener noreferrer nofollow" target="_blank">`, shown, "</a>")
}

// safeLink returns the target if it is allowed; "" if not.
func safeLink(target string) string {
	u, err := url.Parse(strings.TrimSpace(target))
	if err != nil {
		return ""
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" {
			return ""
		}
	case "mailto":
	default:
		return ""
	}
	return u.String()
}
