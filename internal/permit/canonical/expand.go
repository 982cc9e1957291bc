package canonical

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parameter writes an expansion in braces.
func (w *writer) parameter(p *syntax.ParamExp) string {
	if p.Param == nil || p.Flags != nil || p.Excl && p.Index == nil || p.Width || p.IsSet || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Names != 0 {
		return w.fail("${!name} and the like expand names that are computed")
	}
	name := p.Param.Value
	special := len(name) == 1 && strings.Contains("@*#?-$!0123456789", name)
	switch {
	case !special && !isName(name):
		return w.fail(fmt.Sprintf("it expands %q", name))
	case strings.HasPrefix(name, "BASH") && name != "BASH_SOURCE" && name != "BASH_REMATCH" && name != "BASH_VERSION" || name == "FUNCNAME":
		return w.fail("it expands " + name)
	}
	if !p.Length && !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil {
		return "${" + name + "}" // the common case
	}
	out := "${"
	if p.Length {
		out += "#"
	}
	if p.Excl {
		w.onlyBash("${!name[@]}")
		out += "!"
	}
	out += name
	if p.Index != nil {
		w.onlyBash("an array")
		index := w.index(p.Index)
		if p.Excl && index != "@" && index != "*" {
			return w.fail("${!name[…]} expands a name that is computed")
		}
		out += "[" + index + "]"
	}
	if p.Slice != nil {
		w.onlyBash("${name:from}")
		out += ":" + w.offset(p.Slice.Offset)
		if p.Slice.Length != nil {
			out += ":" + w.offset(p.Slice.Length)
		}
	}
	if p.Repl != nil {
		w.onlyBash("${name/…}")
		out += "/"
		if p.Repl.All {
			out += "/"
		}
		from := w.operand(p.Repl.Orig)
		if strings.Contains(from, "/") {
			w.fail("${name/…} with a slash in what it looks for", "use sed")
		}
		out += from + "/" + w.operand(p.Repl.With)
	}
	if p.Exp != nil {
		op := p.Exp.Op.String()
		switch op {
		case ":-", "-", ":+", "+", "#", "##", "%", "%%", ":?", "?":
		case "^", "^^", ",", ",,":
			w.onlyBash("${name" + op + "}")
		case ":=", "=":
			w.variable(name)
			w.fail("${name" + op + "…} assigns while it expands")
		default:
			return w.fail("${name" + op + "…} is not judged")
		}
		out += op + w.operand(p.Exp.Word)
	}
	return out + "}"
}

// operand writes a word inside ${…}. Only plain characters and simple expansions
// are allowed, because quotes mean different things there.
func (w *writer) operand(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	out := ""
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			for i := range len(p.Value) {
				if c := p.Value[i]; !(isBare(c) || c == ' ') || c == '{' || c == '}' {
					return w.fail("${…} with a word that has quotes or signs in it", "assign the word to a variable before")
				}
			}
			out += p.Value
		case *syntax.ParamExp:
			if !p.Short || p.Param == nil || !isName(p.Param.Value) && !isNumber(p.Param.Value) {
				return w.fail("${…} with another expansion in it", "assign it to a variable before")
			}
			out += w.parameter(p)
		default:
			return w.fail("${…} with a word that has quotes or commands in it", "assign the word to a variable before")
		}
	}
	return out
}

// offset writes a number in ${name:from:length}. The space keeps ":-" from being read as a default.
func (w *writer) offset(x syntax.ArithmExpr) string {
	if u, ok := x.(*syntax.UnaryArithm); ok && !u.Post {
		return " " + u.Op.String() + w.arithmetic(u.X)
	}
	return w.arithmetic(x)
}

// index writes a subscript. Bash evaluates it, and everything in it, as arithmetic.
func (w *writer) index(x syntax.ArithmExpr) string {
	if word, ok := x.(*syntax.Word); ok {
		if lit, ok := literal(word); ok && (lit == "@" || lit == "*") {
			return lit
		}
	}
	return w.arithmetic(x)
}

// arithmetic writes an expression over numbers and over variables that certainly hold numbers. Bash evaluates
// the value of any other variable as an expression again and runs the commands in it.
func (w *writer) arithmetic(x syntax.ArithmExpr) string {
	switch x := x.(type) {
	case nil:
		return ""
	case *syntax.ParenArithm:
		return "(" + w.arithmetic(x.X) + ")"
	case *syntax.UnaryArithm:
		if x.Post {
			return w.arithmetic(x.X) + x.Op.String()
		}
		return x.Op.String() + " " + w.arithmetic(x.X)
	case *syntax.BinaryArithm:
		if x.Op == syntax.Assgn {
			if to, ok := x.X.(*syntax.Word); ok && isName(to.Lit()) {
				w.variable(to.Lit())
				right := w.arithmetic(x.Y)
				if !w.always(to.Lit()).number {
					return w.unknownNumber(to.Lit())
				}
				w.scope.set(to.Lit(), true)
				return to.Lit() + " = " + right
			}
		}
		return w.arithmetic(x.X) + " " + x.Op.String() + " " + w.arithmetic(x.Y)
	case *syntax.Word:
		return w.arithmeticWord(x)
	default:
		return w.fail("arithmetic that is not judged")
	}
}

func (w *writer) unknownNumber(name string) string {
	return w.fail("arithmetic on "+name+", whose value bash would evaluate", "assign a number to it before, or use expr")
}

func (w *writer) arithmeticWord(word *syntax.Word) string {
	if len(word.Parts) != 1 {
		return w.fail("arithmetic on a word that is put together")
	}
	switch p := word.Parts[0].(type) {
	case *syntax.Lit:
		switch {
		case isNumber(p.Value):
			return p.Value
		case isName(p.Value) && w.always(p.Value).number && w.scope.has(p.Value):
			return p.Value
		default:
			return w.unknownNumber(p.Value)
		}
	case *syntax.ParamExp:
		if isCount(p) || p.Param != nil && w.number(p) {
			return w.parameter(p)
		}
		return w.unknownNumber(cmpName(p))
	case *syntax.ArithmExp:
		return "(" + w.arithmetic(p.X) + ")"
	default:
		return w.fail("arithmetic on what a command prints", "assign it to a variable and use expr")
	}
}

func cmpName(p *syntax.ParamExp) string {
	if p.Param == nil {
		return "a computed name"
	}
	return p.Param.Value
}

// test writes the expression inside [[ ]].
func (w *writer) test(x syntax.TestExpr) string {
	switch x := x.(type) {
	case *syntax.Word:
		return w.word(x)
	case *syntax.ParenTest:
		return "( " + w.test(x.X) + " )"
	case *syntax.UnaryTest:
		if op := x.Op.String(); op == "-v" || op == "-R" {
			return w.fail("[[ "+op+" evaluates the name behind it", `use [[ -n ${NAME+x} ]]`)
		}
		return x.Op.String() + " " + w.test(x.X)
	case *syntax.BinaryTest:
		switch op := x.Op.String(); op {
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				word, _ := side.(*syntax.Word)
				if lit, ok := literal(word); !ok && !w.isNumeric(word) || ok && !isNumber(lit) {
					return w.fail("[[ "+op+" evaluates its sides", "use [ … "+op+" … ]")
				}
			}
		case "=~":
			return w.test(x.X) + " =~ " + w.regexp(x.Y)
		}
		return w.test(x.X) + " " + x.Op.String() + " " + w.test(x.Y)
	default:
		return w.fail("[[ with syntax that is not judged")
	}
}

// regexp writes the right side of =~, where quoted characters are literal.
func (w *writer) regexp(x syntax.TestExpr) string {
	word, ok := x.(*syntax.Word)
	if !ok {
		return w.fail("=~ with a computed expression")
	}
	out := ""
	for n, p := range word.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			out += w.word(&syntax.Word{Parts: []syntax.WordPart{p}})
			continue
		}
		for i := range len(lit.Value) {
			if c := lit.Value[i]; !isBare(c) && !strings.ContainsRune(`^$()|\`, rune(c)) {
				return w.fail("=~ with unusual signs", "put the expression into a variable in quotes")
			}
		}
		if strings.HasSuffix(lit.Value, `\`) || n+1 < len(word.Parts) && strings.HasSuffix(lit.Value, "$") {
			return w.fail("=~ with a sign before quotes", "put the expression into a variable in quotes")
		}
		out += lit.Value
	}
	return out
}
