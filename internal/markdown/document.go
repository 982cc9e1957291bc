package markdown

import (
	"fmt"
	"html"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Heading is a heading of a document.
type Heading struct {
	Level int
	Text  string
	ID    string // the target of a link after #
}

// Document renders a text of our own for a web page. Unlike HTML, it keeps the levels of headings, which can be linked
// to, joins the lines of a paragraph, and resolves links with resolve, where "" means no link. The output is as safe as
// that of HTML.
func Document(src string, resolve func(target string) string) (page string, headings []Heading) {
	d := &document{resolve: resolve, used: map[string]int{}}
	p := newDocumentPage(src, d)
	for n := blockParser().Parse(text.NewReader(p.src)).FirstChild(); n != nil; n = n.NextSibling() {
		p.block(n)
		p.write("\n")
	}
	return p.out.String(), d.headings
}

// document is the additional state of pages of Document.
type document struct {
	resolve  func(string) string
	headings []Heading
	used     map[string]int
}

func newDocumentPage(src string, d *document) *page { return &page{src: []byte(Clean(src)), doc: d} }

// heading records a heading and returns its id: its words in lower case joined by hyphens, with a number if the id is taken.
func (d *document) heading(level int, words string) Heading {
	var id strings.Builder
	for _, r := range strings.ToLower(words) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			id.WriteRune(r)
		case r == ' ':
			id.WriteByte('-')
		}
	}
	h := Heading{Level: min(level, 6), Text: words, ID: id.String()}
	if n := d.used[h.ID]; n > 0 {
		h.ID = fmt.Sprintf("%s-%d", h.ID, n)
	}
	d.used[id.String()]++
	d.headings = append(d.headings, h)
	return h
}

func (p *page) heading(n *ast.Heading) {
	inner := page{src: p.src, doc: &document{resolve: func(string) string { return "" }}}
	inner.inline(p.textOf(n))
	h := p.doc.heading(n.Level, html.UnescapeString(tagless(inner.out.String())))
	fmt.Fprintf(&p.out, `<h%d id="%s">%s`, h.Level, html.EscapeString(h.ID), inner.out.String())
	if h.Level > 1 {
		fmt.Fprintf(&p.out, `<a class="at" href="#%s" aria-label="Link to this section">#</a>`, html.EscapeString(h.ID))
	}
	fmt.Fprintf(&p.out, "</h%d>", h.Level)
}

// tagless removes the elements that we wrote.
func tagless(page string) string {
	var out strings.Builder
	inside := false
	for _, r := range page {
		switch {
		case r == '<':
			inside = true
		case r == '>':
			inside = false
		case !inside:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// docAnchor links to where the document's owner resolves the target.
func (p *page) docAnchor(target, shown string) {
	target = p.doc.resolve(target)
	if p.linked || target == "" || strings.Contains(target, ":") && safeLink(target) == "" {
		p.write(shown)
		return
	}
	p.write(`<a href="`, html.EscapeString(target), `">`, shown, "</a>")
}
