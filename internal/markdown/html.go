package markdown

import (
	"html"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// HTML is markdown for a web page. Whatever the source holds, the result is made of
// a few elements of ours with text in between: nothing in it runs, loads or
// leaves its place. Links lead to http, https or mailto only; pictures become links.
func HTML(src string) string { return strings.Join(Blocks(src), "\n") }

// Blocks are the top-level blocks of HTML. While a text is still being written, all
// but the last of them are final: more text adds to the last one or comes behind it.
func Blocks(src string) []string {
	p := page{lines: strings.Split(strings.ReplaceAll(Clean(src), "\r\n", "\n"), "\n")}
	for i, line := range p.lines {
		p.lines[i] = expandTabs(strings.TrimSuffix(line, "\r"))
	}
	out := p.blocks(0)
	// The last line may still become anything, and with it the block that stands before it: a row, an item, the
	// line that makes a table of the one above.
	if n := len(p.lines) - 1; n > 0 && strings.TrimSpace(p.lines[n]) != "" {
		done := (&page{lines: p.lines[:n]}).blocks(0)
		if m := max(0, len(done)-1); m < len(out)-1 {
			out = append(out[:m], strings.Join(out[m:], "\n"))
		}
	}
	return out
}

// maxDepth bounds lists and quotes within each other.
const maxDepth = 12

// page reads blocks from lines.
type page struct {
	lines []string
	at    int
}

func (p *page) blocks(depth int) []string {
	var out []string
	for p.at < len(p.lines) {
		if strings.TrimSpace(p.lines[p.at]) == "" {
			p.at++
			continue
		}
		out = append(out, p.block(depth))
	}
	return out
}

func (p *page) block(depth int) string {
	line := p.lines[p.at]
	text := strings.TrimLeft(line, " ")
	if fence, info, ok := cutFence(text); ok {
		return p.code(fence, info, len(line)-len(text))
	}
	if level, title := cutHeading(text); level > 0 {
		p.at++
		tag := "h" + strconv.Itoa(min(level+1, 6)) // the page has its own h1
		return "<" + tag + ">" + inlineHTML(title) + "</" + tag + ">"
	}
	if isRule(text) {
		p.at++
		return "<hr>"
	}
	if strings.HasPrefix(text, ">") && depth < maxDepth {
		return p.quote(depth)
	}
	if _, _, ok := cutBullet(text); ok && depth < maxDepth {
		return p.list(depth)
	}
	if p.isTable() {
		return p.table()
	}
	return p.paragraph()
}

// paragraph takes lines until something else begins.
func (p *page) paragraph() string {
	begin := p.at
	for p.at++; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if strings.TrimSpace(line) == "" || startsBlock(line) || strings.HasPrefix(strings.TrimLeft(line, " "), ">") || p.isTable() {
			break
		}
	}
	var text strings.Builder
	for i, line := range p.lines[begin:p.at] {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(strings.TrimLeft(line, " "))
	}
	return "<p>" + strings.ReplaceAll(inlineHTML(strings.TrimRight(text.String(), " ")), "\n", "<br>\n") + "</p>"
}

// code takes a fenced block; one that is still open ends with the text.
func (p *page) code(fence, info string, indent int) string {
	lang := info
	if i := strings.IndexFunc(info, func(c rune) bool { return unicode.IsSpace(c) || c == '{' || c == ',' }); i >= 0 {
		lang = info[:i]
	}
	var out strings.Builder
	out.WriteString(`<figure class="code">`)
	if lang != "" {
		out.WriteString("<figcaption>" + html.EscapeString(lang) + "</figcaption>")
	}
	out.WriteString("<pre><code>")
	tint := newTinter(lang)
	for p.at++; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		text := strings.TrimLeft(line, " ")
		if len(text) >= len(fence) && strings.Trim(text, string(fence[0])) == "" {
			p.at++
			break
		}
		out.WriteString(spans(tint.line(line[min(len(line)-len(text), indent):])) + "\n")
	}
	out.WriteString("</code></pre></figure>")
	return out.String()
}

// Code is a piece of code, tinted as its language asks.
func Code(text, lang string) string {
	var out strings.Builder
	tint := newTinter(lang)
	for line := range strings.SplitSeq(strings.TrimSuffix(Visible(text), "\n"), "\n") {
		out.WriteString(spans(tint.line(expandTabs(line))) + "\n")
	}
	return out.String()
}

func (p *page) quote(depth int) string {
	var inner []string
	for ; p.at < len(p.lines); p.at++ {
		text := strings.TrimLeft(p.lines[p.at], " ")
		if !strings.HasPrefix(text, ">") {
			break
		}
		inner = append(inner, strings.TrimPrefix(text[1:], " "))
	}
	return "<blockquote>" + strings.Join((&page{lines: inner}).blocks(depth+1), "\n") + "</blockquote>"
}

// list takes items of one kind; what is indented below an item belongs to it.
func (p *page) list(depth int) string {
	first := p.lines[p.at]
	indent := len(first) - len(strings.TrimLeft(first, " "))
	mark, _, _ := cutBullet(first[indent:])
	ordered := mark != "•"
	var out strings.Builder
	switch number := strings.TrimRight(mark, ".)"); {
	case !ordered:
		out.WriteString("<ul>")
	case number == "1":
		out.WriteString("<ol>")
	default:
		n, _ := strconv.Atoi(number)
		out.WriteString(`<ol start="` + strconv.Itoa(n) + `">`)
	}
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		text := strings.TrimLeft(line, " ")
		if len(line)-len(text) > indent+1 || text == "" {
			break
		}
		mark, rest, ok := cutBullet(text)
		if !ok || (mark != "•") != ordered || isRule(text) {
			break
		}
		out.WriteString(p.item(rest, len(line)-len(rest), depth))
	}
	if ordered {
		return out.String() + "</ol>"
	}
	return out.String() + "</ul>"
}

// item is one item of a list with everything indented below it.
func (p *page) item(rest string, inside, depth int) string {
	class := ""
	if box, after, ok := cutTask(rest); ok {
		class, rest = ` class="task"`, box+" "+after
	}
	lines := []string{rest}
	for p.at++; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		text := strings.TrimLeft(line, " ")
		pad := len(line) - len(text)
		if text == "" { // it belongs to the item only if what follows does
			if next := p.next(); next < 0 || next < min(inside, 2) {
				break
			}
			lines = append(lines, "")
			continue
		}
		if pad < min(inside, 2) && (startsBlock(text) || strings.HasPrefix(text, ">") || lines[len(lines)-1] == "") {
			break
		}
		lines = append(lines, line[min(pad, inside):])
	}
	for p.at < len(p.lines) && strings.TrimSpace(p.lines[p.at]) == "" && p.nextIsItem() {
		p.at++
	}
	inner := (&page{lines: lines}).blocks(depth + 1)
	for i, b := range inner { // a single paragraph needs no frame
		if body, ok := strings.CutPrefix(b, "<p>"); ok && i == 0 {
			inner[i] = strings.TrimSuffix(body, "</p>")
		}
	}
	return "<li" + class + ">" + strings.Join(inner, "\n") + "</li>"
}

// next is how far the next line with text is indented; -1: there is none.
func (p *page) next() int {
	for _, line := range p.lines[p.at:] {
		if text := strings.TrimLeft(line, " "); text != "" {
			return len(line) - len(text)
		}
	}
	return -1
}

func (p *page) nextIsItem() bool {
	for _, line := range p.lines[p.at:] {
		if text := strings.TrimLeft(line, " "); text != "" {
			_, _, ok := cutBullet(text)
			return ok && !isRule(text)
		}
	}
	return false
}

func (p *page) isTable() bool {
	return p.at+1 < len(p.lines) && mayBeTable(p.lines[p.at]) && isDelimiterRow(p.lines[p.at+1])
}

func (p *page) table() string {
	head, align := splitRow(p.lines[p.at]), splitRow(p.lines[p.at+1])
	columns := min(len(head), maxColumns)
	var out strings.Builder
	row := func(tag string, cells []string) {
		out.WriteString("<tr>")
		for i := range columns {
			cell, class := "", ""
			if i < len(cells) {
				cell = cells[i]
			}
			if i < len(align) && strings.HasSuffix(align[i], ":") {
				class = ` class="right"`
				if strings.HasPrefix(align[i], ":") {
					class = ` class="middle"`
				}
			}
			out.WriteString("<" + tag + class + ">" + inlineHTML(cell) + "</" + tag + ">")
		}
		out.WriteString("</tr>")
	}
	out.WriteString(`<div class="table"><table><thead>`)
	row("th", head)
	out.WriteString("</thead><tbody>")
	for p.at += 2; p.at < len(p.lines) && strings.Contains(p.lines[p.at], "|"); p.at++ {
		row("td", splitRow(p.lines[p.at]))
	}
	out.WriteString("</tbody></table></div>")
	return out.String()
}

// inlineHTML is the text of one block.
func inlineHTML(text string) string {
	if len(text) > longestInline {
		return html.EscapeString(text)
	}
	p := inliner{src: text, web: true}
	p.parse(0, "", 0)
	return spans(p.out)
}

// classes name the looks that have no element of their own, by their bits.
var classes = map[style]string{keyword: "k", quotedText: "s", comment: "c", added: "add", removed: "del", hunk: "hunk"}

// elements are the looks that have one, the outermost first.
var elements = []struct {
	style style
	tag   string
}{{bold, "strong"}, {italic, "em"}, {strike, "s"}, {codeSpan, "code"}}

// spans writes glyphs as HTML, those that look alike together.
func spans(gs []glyph) string {
	var out strings.Builder
	for i := 0; i < len(gs); {
		j := i + 1
		for j < len(gs) && gs[j].style == gs[i].style && gs[j].link == gs[i].link {
			j++
		}
		var text strings.Builder
		for _, g := range gs[i:j] {
			text.WriteString(g.text)
		}
		out.WriteString(dressed(html.EscapeString(text.String()), gs[i].style, safeLink(gs[i].link)))
		i = j
	}
	return out.String()
}

func dressed(text string, st style, link string) string {
	for bit, class := range classes {
		if st&bit != 0 {
			text = `<span class="` + class + `">` + text + "</span>"
			break
		}
	}
	for i := len(elements) - 1; i >= 0; i-- {
		if e := elements[i]; st&e.style != 0 {
			text = "<" + e.tag + ">" + text + "</" + e.tag + ">"
		}
	}
	if link != "" {
		text = `<a href="` + html.EscapeString(link) + `" rel="noopener noreferrer nofollow" target="_blank">` + text + "</a>"
	}
	return text
}

// safeLink is where a link may lead; "" is nowhere.
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
