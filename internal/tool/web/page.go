package web

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"chorus/internal/tool"
)

// maxElements is the largest page whose main text is extracted, which takes
// more than linear time. Larger pages are shown whole.
const maxElements = 50_000

// page is a page that was read.
type page struct {
	url       string // after redirects
	title     string
	byline    string
	published string
	text      string   // Markdown for HTML
	cut       bool     // it is longer than what was read
	status    int      // of HTTP
	visited   []string // where redirects led
	at        time.Time
}

// readHTML fills the page from HTML: its main text, or everything if full is set or there is no main text.
func (p *page) readHTML(u *url.URL, source string, full bool) error {
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return tool.Mistake(fmt.Sprintf("%s is HTML that cannot be read: %v", u, err))
	}
	p.title = titleOf(doc)
	var article string
	if !full {
		parser := readability.NewParser()
		parser.MaxElemsToParse = maxElements
		if found, err := parser.ParseDocument(doc, u); err == nil && found.Node != nil {
			p.title, p.byline = cmp.Or(found.Title(), p.title), found.Byline()
			if when, err := found.PublishedTime(); err == nil {
				p.published = when.Format(time.DateOnly)
			}
			if article, err = markdown(found.Node, u); err != nil {
				article = ""
			}
		}
	}
	strip(doc)
	// Shorter text is often a notice about cookies or scripts.
	const least = 200
	if utf8.RuneCountInString(article) >= least {
		p.text = article
		return nil
	}
	whole, err := markdown(doc, u)
	if err != nil {
		return tool.Mistake(fmt.Sprintf("%s is HTML that cannot be read: %v", u, err))
	}
	p.text = whole
	p.text = cmp.Or(p.text, article)
	return nil
}

func markdown(n *html.Node, u *url.URL) (string, error) {
	strip(n)
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
	out, err := conv.ConvertNode(n, converter.WithDomain(u.Scheme+"://"+u.Host))
	return strings.TrimSpace(string(out)), err
}

func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.FirstChild != nil {
			return strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	return ""
}

// strip removes what a person does not see on the page: scripts, the contents of forms, pictures
// without an address, and hidden elements, where text for machines is placed.
func strip(doc *html.Node) {
	var gone []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && unread(n) || n.Type == html.CommentNode {
			gone = append(gone, n)
		}
	}
	for _, n := range gone {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

func unread(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Embed, atom.Canvas, atom.Select, atom.Input, atom.Button, atom.Textarea, atom.Head:
		return true
	}
	for _, a := range n.Attr {
		value := strings.ToLower(strings.ReplaceAll(a.Val, " ", ""))
		switch {
		case a.Key == "hidden", a.Key == "aria-hidden" && value == "true":
			return true
		case a.Key == "style" && (strings.Contains(value, "display:none") || strings.Contains(value, "visibility:hidden") || strings.Contains(value, "font-size:0") || strings.Contains(value, "opacity:0;") || strings.HasSuffix(value, "opacity:0")):
			return true
		case n.DataAtom == atom.Img && a.Key == "src" && strings.HasPrefix(value, "data:"):
			return true
		}
	}
	return false
}

// show returns a part of the page for the model.
func (p *page) show(offset, limit int) tool.Result {
	if limit <= 0 {
		limit = usualChars
	}
	limit = min(limit, mostChars)
	runes := []rune(p.text)
	if offset < 0 || offset > 0 && offset >= len(runes) {
		return tool.Fail(fmt.Sprintf("The text of %s has %d characters; give an offset below that.", p.url, len(runes)))
	}
	part := runes[offset:min(offset+limit, len(runes))]
	for len(string(part)) > tool.MaxBytes-2048 { // leaves room for the lines around it
		part = part[:len(part)*9/10]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "URL: %s\n", p.url)
	for _, line := range []struct{ name, value string }{{"Title", p.title}, {"By", p.byline}, {"Published", p.published}} {
		if line.value != "" && offset == 0 {
			fmt.Fprintf(&b, "%s: %s\n", line.name, line.value)
		}
	}
	if p.status >= 400 {
		fmt.Fprintf(&b, "The server answered with status %d.\n", p.status)
	}
	b.WriteString("\n")
	b.WriteString(string(part))
	if len(runes) == 0 {
		b.WriteString("(The page has no text. It may be made by scripts, which are not run.)")
	}
	if end := offset + len(part); end < len(runes) {
		fmt.Fprintf(&b, "\n\n[Characters %d-%d of %d. Read on with offset %d.]", offset, end, len(runes), end)
	} else if p.cut {
		fmt.Fprintf(&b, "\n\n[The page is longer than the %d MB that are read.]", maxBody>>20)
	}
	out := tool.From("web page "+p.url, b.String())
	out.Failed = p.status >= 400
	return out
}

// pageCache keeps the last pages for a while, so that reading on does not fetch them again.
type pageCache struct {
	mu    sync.Mutex
	pages map[string]*page
}

const (
	cacheTime = 10 * time.Minute
	maxCached = 4 // there are many threads
)

func cacheKey(url string, full bool) string { return fmt.Sprint(full, " ", url) }

func (c *pageCache) get(url string, full bool) *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pages[cacheKey(url, full)]; p != nil && time.Since(p.at) < cacheTime {
		return p
	}
	return nil
}

func (c *pageCache) put(url string, full bool, p *page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = map[string]*page{}
	}
	p.at = time.Now()
	c.pages[cacheKey(url, full)] = p
	for len(c.pages) > maxCached {
		oldest := ""
		for key, q := range c.pages {
			if oldest == "" || q.at.Before(c.pages[oldest].at) {
				oldest = key
			}
		}
		delete(c.pages, oldest)
	}
}
