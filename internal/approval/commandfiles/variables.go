package commandfiles

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// values records what a part of the command does to variables.
func (f *finder) values(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Assign:
		f.assign(n)
	case *syntax.WordIter:
		for _, item := range n.Items {
			f.value(n.Name.Value, item)
		}
	case *syntax.DeclClause:
		if slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool {
			return a.Naked && a.Value != nil && strings.HasPrefix(literal(a.Value), "-") && strings.Contains(literal(a.Value), "n")
		}) {
			f.anyUnknown = true // a second name for a variable
		}
	case *syntax.BinaryArithm:
		if strings.HasSuffix(n.Op.String(), "=") {
			f.counted(n.X)
		}
	case *syntax.UnaryArithm:
		f.counted(n.X)
	case *syntax.FuncDecl:
		f.parametersUnknown()
	case *syntax.CallExpr:
		f.setBy(n.Args)
	}
}

// counted records that arithmetic assigns a variable.
func (f *finder) counted(x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok && word.Lit() != "" {
		f.unknown[word.Lit()] = true
	}
}

// setBy records which variables a shell builtin sets.
func (f *finder) setBy(args []*syntax.Word) {
	for len(args) > 0 && slices.Contains([]string{"builtin", "command"}, literal(args[0])) {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	switch literal(args[0]) {
	case "set", "shift":
		f.parametersUnknown()
	case "read", "mapfile", "readarray", "getopts", "printf", "let", "wait", "unset":
		if literal(args[0]) == "getopts" {
			f.unknown["OPTARG"] = true
		}
		if literal(args[0]) == "printf" && !(len(args) > 2 && strings.HasPrefix(literal(args[1]), "-v")) {
			return
		}
		for _, word := range args[1:] {
			text := literal(word)
			if text == "" {
				f.anyUnknown = true // which variable is not known either
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(text, "-v"), "=")
			f.unknown[strings.TrimRight(name, "+-")] = true
		}
	}
}

// parametersUnknown records that $1 and so on may have values other than those after the text of a shell.
func (f *finder) parametersUnknown() {
	for _, name := range []string{"@", "*", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		f.unknown[name] = true
	}
}

func (f *finder) assign(a *syntax.Assign) {
	switch {
	case a.Name == nil:
		return
	case a.Value == nil || a.Append || a.Array != nil || a.Index != nil:
		f.unknown[a.Name.Value] = true
	default:
		f.value(a.Name.Value, a.Value)
	}
	if !a.Naked {
		f.searches(a.Name.Value)
	}
}

// searches reports that if the command sets a variable which decides where
// programs or code are found, what is found there is not bound.
func (f *finder) searches(name string) {
	if strings.HasSuffix(name, "PATH") && name != "GOPATH" || slices.Contains([]string{"PERL5LIB", "RUBYLIB"}, name) {
		f.unbound("what is found by the " + name + " that it sets")
	}
}

// value records what a variable may hold.
func (f *finder) value(name string, word *syntax.Word) {
	fields, err := f.expand(word)
	if err != nil || len(f.vars[name])+len(fields) > maxValues {
		f.unknown[name] = true
		return
	}
	for _, v := range fields {
		if !slices.Contains(f.vars[name], v) {
			f.vars[name] = append(f.vars[name], v)
		}
	}
}
