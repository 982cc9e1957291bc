package shell

import (
	"slices"
	"strings"
)

// maxMaybe is behind how many words of a program that is not known a command may begin.
const maxMaybe = 8

// startsMaybe treats a program that the table does not have: it may start what its words say, as a wrapper does. What a
// rule would deny behind it is asked for.
func (w *walker) startsMaybe(p *Part, words []word) {
	if w.supposed || w.unwrap >= maxUnwrap || *w.count > maxParts {
		return
	}
	w.supposed = true // or each word would be looked at once more for every one before it
	defer func() { w.supposed = false }()
	for i := range words[:min(len(words), maxMaybe)] {
		x := &words[i]
		var inner Part
		switch {
		case !x.known || x.value == "" || x.value[0] == '-':
			continue
		case strings.ContainsAny(x.value, " \t\n"):
			w.nested(&inner, x.value)
		default:
			w.child(&inner, words[i:], nil)
		}
		p.maybeStarts(inner.Children)
	}
}

// suppose treats a text of which a program may make a command: what a rule would deny in it is asked for.
func (w *walker) suppose(p *Part, code string, known bool) {
	if !known || !strings.Contains(code, " ") || w.supposed || w.unwrap >= maxUnwrap || *w.count > maxParts {
		return
	}
	w.supposed = true
	defer func() { w.supposed = false }()
	var inner Part
	w.nested(&inner, code)
	p.maybeStarts(inner.Children)
}

// maybeStarts adds the names of parts that the part may turn out to be.
func (p *Part) maybeStarts(parts []Part) {
	for i := range parts {
		c := &parts[i]
		if c.Kind == KindWrite || c.Kind == KindRead {
			continue
		}
		stricter, deny := c.Names()
		p.addExtra().maybe = slices.Concat(p.addExtra().maybe, []string{c.Action}, stricter, deny)
		p.maybeStarts(c.Children)
	}
}
