package sheet

import (
	"fmt"
	"net/url"
	"strings"
	"text/template/parse"
)

// where is a kind of place in a page.
type where int

const (
	inText where = iota
	inTag
	inQuotes  // the value of an attribute
	inApostro // the same between apostrophes: nothing is put in there
	inRaw     // script and style
	inComment
)

// place is where in a page the text so far has led.
type place struct {
	in   where
	tag  string // the element whose tag or raw text it is
	word string // the last word of a tag: the name of an attribute
	any  bool   // the attribute's value has begun
}

// check walks through a template and looks where it puts something in. Text is safe
// between elements and in attributes between quotes, except in those that are programs or
// styles; the beginning of an address must be ours, or made by the functions url or static.
func check(t *parse.Tree) error {
	end, err := walk(t.Root, place{})
	if err == nil && end.in != inText {
		err = fmt.Errorf("it ends inside a tag")
	}
	if err != nil {
		return fmt.Errorf("template %s: %w", t.Name, err)
	}
	return nil
}

func walk(l *parse.ListNode, p place) (place, error) {
	if l == nil {
		return p, nil
	}
	for _, n := range l.Nodes {
		var err error
		switch n := n.(type) {
		case *parse.TextNode:
			p = p.after(string(n.Text))
		case *parse.ActionNode:
			p, err = p.put(n)
		case *parse.TemplateNode:
			if p.in != inText {
				err = fmt.Errorf("%s stands inside a tag", n)
			}
		case *parse.IfNode:
			p, err = branches(&n.BranchNode, p)
		case *parse.WithNode:
			p, err = branches(&n.BranchNode, p)
		case *parse.RangeNode:
			p, err = branches(&n.BranchNode, p)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// branches must lead to the same place, whichever is taken.
func branches(b *parse.BranchNode, p place) (place, error) {
	yes, err := walk(b.List, p)
	if err != nil {
		return p, err
	}
	no, err := walk(b.ElseList, p)
	if err != nil {
		return p, err
	}
	if yes.in != no.in || yes.in == inQuotes && yes.word != no.word {
		return p, fmt.Errorf("%s leads out of a tag in one case only", short(b.String()))
	}
	yes.any = yes.any && no.any
	return yes, nil
}

// addresses are attributes that a browser follows or loads.
const addresses = " href src action formaction "

func (p place) put(n *parse.ActionNode) (place, error) {
	if len(n.Pipe.Decl) > 0 {
		return p, nil
	}
	switch p.in {
	case inText:
		return p, nil
	case inQuotes:
		switch {
		case strings.HasPrefix(p.word, "on") || p.word == "style" || p.word == "srcdoc" || p.word == "srcset":
			return p, fmt.Errorf("%s stands in the attribute %s, where text could do something", n, p.word)
		case !p.any && strings.Contains(addresses, " "+p.word+" ") && !ours(n.Pipe):
			return p, fmt.Errorf("%s begins an address: use url, or write its beginning", n)
		}
		p.any = true
		return p, nil
	}
	return p, fmt.Errorf("%s stands where only quoted text is safe", n)
}

// ours reports whether a pipeline ends with a function that makes safe addresses.
func ours(p *parse.PipeNode) bool {
	name, ok := p.Cmds[len(p.Cmds)-1].Args[0].(*parse.IdentifierNode)
	return ok && (name.Ident == "url" || name.Ident == "static")
}

// safeURL lets an address of this server through, and nothing else.
func safeURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "#"
	}
	return text
}

// after is where a piece of the page leads.
func (p place) after(text string) place {
	for i := 0; i < len(text); i++ {
		c, rest := text[i], text[i:]
		switch p.in {
		case inText:
			switch {
			case strings.HasPrefix(rest, "<!--"):
				p.in = inComment
			case c == '<' && len(rest) > 1 && (letter(rest[1]) || rest[1] == '/' || rest[1] == '!'):
				p = place{in: inTag, tag: tagName(rest[1:])}
			}
		case inComment:
			if strings.HasPrefix(rest, "-->") {
				p.in = inText
			}
		case inRaw:
			if strings.HasPrefix(strings.ToLower(rest), "</"+p.tag) {
				p.in = inTag
				p.tag = "/" + p.tag
			}
		case inQuotes:
			if c == '"' {
				p.in, p.word = inTag, ""
			} else {
				p.any = true
			}
		case inApostro:
			if c == '\'' {
				p.in, p.word = inTag, ""
			}
		case inTag:
			p = p.inside(c)
		}
	}
	return p
}

// inside takes one character of a tag.
func (p place) inside(c byte) place {
	switch {
	case c == '>':
		if p.tag == "script" || p.tag == "style" {
			return place{in: inRaw, tag: p.tag}
		}
		return place{}
	case c == '"':
		p.in, p.any = inQuotes, false
	case c == '\'':
		p.in = inApostro
	case c == ' ' || c == '\n' || c == '\t' || c == '/':
		p.word = ""
	case c != '=':
		p.word += strings.ToLower(string(c))
	}
	return p
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func tagName(text string) string {
	n := 0
	for n < len(text) && (letter(text[n]) || n == 0 && text[n] == '/' || text[n] >= '0' && text[n] <= '9') {
		n++
	}
	return strings.ToLower(text[:n])
}
