package shell

import (
	"slices"
	"strings"
)

// maxMaybe is how many words of an unknown program are tried as the start of a command.
const maxMaybe = 8

// startsMaybe handles a program that may start what its words say, as a wrapper
// does. If a rule would deny that command, approval is needed.
func (w *walker) startsMaybe(p *Part, words []word) {
	if w.supposed || w.unwrap >= maxUnwrap || *w.count > maxParts {
		return
	}
	w.supposed = true // otherwise each word would be tried again for every word before it
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

// suppose handles a text that a program may run as a command. If a rule
// would deny something in it, approval is needed.
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

// maybeStarts adds the names of what the part may start.
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
