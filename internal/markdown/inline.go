package markdown

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"

	"chorus/internal/theme"
)

// inline draws the text of one block for a terminal. It keeps the source's line breaks.
func inline(text string, base style) []span {
	root := parseInline(text)
	if root == nil {
		return []span{{text, base}}
	}
	d := drawing{src: []byte(text)}
	d.children(root, base)
	return d.out
}

type drawing struct {
	src []byte
	out []span
}

func (d *drawing) add(text string, st style) {
	if text != "" {
		d.out = append(d.out, span{text, st})
	}
}

func (d *drawing) children(n ast.Node, st style) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.Kind() == ast.KindParagraph && c.PreviousSibling() != nil {
			d.add("\n", st)
		}
		d.node(c, st)
	}
}

func (d *drawing) node(n ast.Node, st style) {
	switch n := n.(type) {
	case *ast.Text:
		d.add(literal(n.Value(d.src)), st)
		if n.SoftLineBreak() || n.HardLineBreak() {
			d.add("\n", st)
		}
	case *ast.CodeSpan:
		d.add(codeText(n, d.src), st|theme.Code)
	case *ast.Emphasis:
		d.children(n, st|map[bool]style{true: theme.Strong, false: theme.Italic}[n.Level == 2])
	case *extension.Strikethrough:
		d.children(n, st|theme.Strike)
	case *ast.Link:
		d.link(n, literal(n.Destination), st)
	case *ast.Image:
		d.link(n, literal(n.Destination), st)
	case *ast.AutoLink:
		d.add(string(n.Label(d.src)), st|theme.Underline)
	default:
		d.children(n, st)
	}
}

// link draws a link's text and, unless the text already contains it, its target.
func (d *drawing) link(n ast.Node, target string, st style) {
	begin := len(d.out)
	d.children(n, st|theme.Underline)
	shown := ""
	for _, s := range d.out[begin:] {
		shown += s.text
	}
	switch {
	case target == "" || shown == target || "mailto:"+shown == target:
	case shown == "":
		d.add(target, st|theme.Faint)
	default:
		d.add(" ("+target+")", st|theme.Faint)
	}
}

// openSpan reports whether a text ends inside a code span or strong emphasis, so that the following lines may still change its look.
func openSpan(text string) bool {
	if !strings.ContainsAny(text, "`*_") {
		return false
	}
	root := parseInline(text)
	if root == nil {
		return false
	}
	open := false
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it fails only if this function does
		if t, ok := n.(*ast.Text); ok && entering && n.Parent().Kind() != ast.KindCodeSpan {
			open = open || opens(t.Value([]byte(text)), n.NextSibling() != nil && !t.SoftLineBreak())
		}
		return ast.WalkContinue, nil
	})
	return open
}

// opens reports whether a piece of plain text contains a mark that could still be closed. joined means that something
// directly follows the piece.
func opens(src []byte, joined bool) bool {
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '\\':
			i++
		case '`':
			return true
		case '*', '_':
			n := len(src[i:]) - len(bytes.TrimLeft(src[i:], string(c)))
			before, _ := utf8.DecodeLastRune(src[:i])
			after, _ := utf8.DecodeRune(src[i+n:])
			word := unicode.IsLetter(before) || unicode.IsDigit(before)
			if (n == 2 || n == 3) && !(c == '_' && word) && (len(src) == i+n && joined || len(src) > i+n && !unicode.IsSpace(after)) {
				return true
			}
			i += n - 1
		}
	}
	return false
}
