package shell

import "mvdan.cc/sh/v3/syntax"

// arithmeticUse detects one way to hide a command: bash evaluates the value of a variable again in
// arithmetic, and runs $(…) in the subscripts it finds there. The values of variables are not known here,
// so a command that both contains quoted code and computes with variables is opaque.
type arithmeticUse struct {
	code  bool // some word contains code as data
	names bool // some arithmetic uses a variable
}

func (r arithmeticUse) risky() bool { return r.code && r.names }

// noteData records a word that a program receives as it is.
func (w *walker) noteData(x *word) {
	literal := x.value
	if !x.known && !x.glob {
		// Substitutions are parsed separately. The literal text around them is data,
		// even if an expansion between two pieces is empty.
		literal = ""
		for _, s := range x.spans() {
			literal += s.Text
		}
	}
	w.arith.code = w.arith.code || runsWhenEvaluated(literal)
}

// notePartData records the words of a part. The words of a wrapper belong to its children.
func (w *walker) notePartData(p *Part) {
	if w.arith.code || p.Kind == KindWrapper {
		return
	}
	for i := range p.words {
		w.noteData(&p.words[i])
	}
}

// noteArithmetic records arithmetic with variables below a node.
func (w *walker) noteArithmetic(n syntax.Node) {
	if w.arith.names {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			w.arith.names = w.arith.names || usesNames(n)
		case *syntax.ParamExp:
			if n.Slice != nil {
				w.arith.names = w.arith.names || n.Slice.Offset != nil && usesNames(n.Slice.Offset) || n.Slice.Length != nil && usesNames(n.Slice.Length)
			}
			if n.Index != nil {
				w.arith.names = w.arith.names || usesNames(n.Index)
			}
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				w.arith.names = w.arith.names || usesNames(n)
			}
		}
		return !w.arith.names
	})
}

// usesNames reports whether an expression has operands other than numbers and the "@" and
// "*" that stand for a whole array.
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
