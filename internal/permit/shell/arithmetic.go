package shell

import "mvdan.cc/sh/v3/syntax"

// Arithmetic is a way to hide a command: bash evaluates the value of a variable
// again, and runs $(…) in the subscripts it finds there. Which value a variable has
// is not known here, so a command that both holds quoted code and computes with
// variables is asked.
type reckoning struct {
	code  bool // some word holds code as data
	names bool // some arithmetic uses a variable
}

func (r reckoning) both() bool { return r.code && r.names }

// dataWord notes a word that the program gets as it is.
func (w *walker) dataWord(x *word) {
	literal := x.value
	if !x.known && !x.glob {
		// Substitutions of its own are read elsewhere; what is literal around them is
		// data, also when nothing comes between its pieces.
		literal = ""
		for _, s := range x.spans() {
			literal += s.Text
		}
	}
	w.seen.code = w.seen.code || runsWhenEvaluated(literal)
}

// dataParts notes the words of a part. Those of a wrapper were opened.
func (w *walker) dataParts(p *Part) {
	if w.seen.code || p.Kind == KindWrapper {
		return
	}
	for i := range p.words {
		w.dataWord(&p.words[i])
	}
}

// reckons notes arithmetic with variables below a node.
func (w *walker) reckons(n syntax.Node) {
	if w.seen.names {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			w.seen.names = w.seen.names || usesNames(n)
		case *syntax.ParamExp:
			if n.Slice != nil {
				w.seen.names = w.seen.names || n.Slice.Offset != nil && usesNames(n.Slice.Offset) || n.Slice.Length != nil && usesNames(n.Slice.Length)
			}
			if n.Index != nil {
				w.seen.names = w.seen.names || usesNames(n.Index)
			}
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				w.seen.names = w.seen.names || usesNames(n)
			}
		}
		return !w.seen.names
	})
}

// usesNames says whether anything but numbers, and the marks for all of an array,
// is computed with.
func usesNames(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		word, ok := n.(*syntax.Word)
		if !ok || found {
			return !found
		}
		lit := word.Lit()
		found = lit == "" || lit != "@" && lit != "*" && (lit[0] < '0' || lit[0] > '9') && lit[0] != '-'
		return false
	})
	return found
}
