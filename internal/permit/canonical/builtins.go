package canonical

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtinArguments checks the arguments of builtins that set variables or evaluate words.
func (w *writer) builtinArguments(name string, args []*syntax.Word) {
	switch name {
	case "printf":
		w.printfArguments(args)
	case "test", "[":
		w.testArguments(name, args)
	case "read", "unset", "getopts", "mapfile", "readarray":
		w.assigningArguments(name, args)
	case "wait":
		w.literals(name, args, func(s string) bool { return s == "-n" || s == "-f" || !strings.HasPrefix(s, "-") })
	case "jobs":
		w.literals(name, args, func(s string) bool { return !strings.HasPrefix(s, "-") || !strings.Contains(s, "x") })
	case "umask", "ulimit", "times", "shift", "return", "exit", "break", "continue":
		if name == "exit" || name == "return" || name == "shift" {
			return // they turn a number into a number and anything else into an error
		}
		w.literals(name, args, func(string) bool { return true })
	case "set":
		w.setArguments(args)
	case "shopt":
		w.onlyBash("shopt")
		w.literals(name, args, func(s string) bool {
			switch s {
			case "-s", "-u", "-q", "nullglob", "globstar", "dotglob", "nocaseglob", "failglob", "nocasematch", "lastpipe", "inherit_errexit":
				return true
			}
			return false
		})
	case "command", "type":
		w.lookupArguments(name, args)
	}
}

// lookupArguments checks the arguments of command, which would run a
// builtin without the checks for that builtin's name.
func (w *writer) lookupArguments(name string, args []*syntax.Word) {
	asks := name == "type"
	for _, a := range args {
		lit, ok := exact(a)
		switch {
		case !ok && asks:
			w.fail("what "+name+" looks for is computed", "write the name of the program")
		case !ok:
			w.fail("what "+name+" runs is computed", "write the name of the program")
			return
		case lit == "-v" || lit == "-V":
			asks = true
		case !asks && lit != "-p" && lit != "--":
			if is, _, _ := builtin(lit); is {
				w.fail("command runs the builtin "+lit, "leave out command")
			}
			return
		}
	}
}

// literals requires all arguments to be known literals.
func (w *writer) literals(name string, args []*syntax.Word, known func(string) bool) {
	for _, a := range args {
		lit, ok := exact(a)
		switch {
		case ok && known(lit):
		case !ok && isExpansionOf(a, "!", "$"): // wait $!
		case !ok && name == "wait" && w.isNumeric(a):
		case !ok:
			w.fail(name + " with computed arguments can change what later commands mean")
		default:
			w.fail(name + " " + lit + " can change what later commands mean")
		}
	}
}

func isExpansionOf(word *syntax.Word, names ...string) bool {
	p := soleExpansion(word)
	if p == nil || p.Exp != nil || p.Repl != nil || p.Slice != nil || p.Index != nil || p.Excl || p.Length {
		return false
	}
	return slices.Contains(names, p.Param.Value)
}

// soleExpansion returns the parameter expansion if a word consists of nothing
// else, with or without double quotes; otherwise nil.
func soleExpansion(word *syntax.Word) *syntax.ParamExp {
	if word == nil || len(word.Parts) != 1 {
		return nil
	}
	part := word.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil {
		return nil
	}
	return p
}

// printfArguments rejects printf -v, which evaluates the name it assigns to.
func (w *writer) printfArguments(args []*syntax.Word) {
	if len(args) == 0 {
		return
	}
	first, ok := literal(args[0])
	if lead, known := leading(args[0]); !ok && (!known || strings.HasPrefix(lead, "-")) || ok && strings.HasPrefix(first, "-") && first != "--" && first != "-" {
		w.fail("printf with options or a computed format can assign variables", "begin with a format in quotes, or with --")
	}
}

// leading returns the literal text that a word begins with. false means it may begin with anything.
func leading(word *syntax.Word) (string, bool) {
	if len(word.Parts) == 0 {
		return "", true
	}
	part := word.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) > 0 {
		part = q.Parts[0]
	}
	switch p := part.(type) {
	case *syntax.Lit:
		return p.Value, p.Value != "" && !strings.ContainsAny(p.Value[:1], `\{[*?~`)
	case *syntax.SglQuoted:
		return p.Value, p.Value != "" && !p.Dollar
	}
	return "", false
}

// testArguments rejects test -v, which evaluates a subscript. An unquoted word may become -v. A
// quoted word may too, and is then the operator for the word behind it.
func (w *writer) testArguments(name string, args []*syntax.Word) {
	for i, a := range args {
		lit, ok := exact(a)
		switch {
		case ok && (lit == "-v" || lit == "-R"):
			w.fail(name+" "+lit+" evaluates the name behind it", `use [ -n "${NAME+x}" ]`)
		case ok, w.isNumeric(a), w.isPlainVariable(a):
		case isQuoted(a) && mayBeOperator(a) && i+1 < len(args) && !isExact(args[i+1]):
			w.fail(name+" with a computed word before another one can evaluate that", `put the operator between them, as in [ "$a" = "$b" ]`)
		case isQuoted(a), isOtherPattern(a):
		default:
			w.fail(name+" with an expansion that is not quoted can evaluate it", `put it in double quotes`)
		}
	}
}

func isExact(word *syntax.Word) bool {
	_, ok := exact(word)
	return ok
}

// mayBeOperator reports whether a word may become -v or -R when the command runs.
func mayBeOperator(word *syntax.Word) bool {
	lead, known := leading(word)
	return !known || lead == "-" || lead == "-v" || lead == "-R"
}

// isOtherPattern reports whether a word is a file name pattern that cannot match -v or -R.
func isOtherPattern(word *syntax.Word) bool {
	lit, ok := literal(word)
	if !ok || strings.ContainsAny(lit, "{~") || lit == "" {
		return false
	}
	tail := lit[strings.LastIndexAny(lit, "*?[]")+1:]
	return !strings.ContainsAny(lit[:1], "-*?[") || !strings.HasSuffix("-v", tail) && !strings.HasSuffix("-R", tail)
}

func isQuoted(word *syntax.Word) bool {
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if x, ok := q.(*syntax.ParamExp); ok && isList(x) {
					return false
				}
			}
		case *syntax.SglQuoted:
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, expanding) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// isList reports whether an expansion yields several words even in double quotes.
func isList(p *syntax.ParamExp) bool {
	if p.Param != nil && p.Param.Value == "@" {
		return true
	}
	index, ok := p.Index.(*syntax.Word)
	return ok && index.Lit() == "@" && !p.Length
}

// isNumeric reports whether a word is an expansion that always yields a number.
func (w *writer) isNumeric(word *syntax.Word) bool {
	p := soleExpansion(word)
	if p == nil {
		_, sum := soleArithmetic(word)
		return sum
	}
	return isCount(p) || w.number(p)
}

func soleArithmetic(word *syntax.Word) (*syntax.ArithmExp, bool) {
	if word == nil || len(word.Parts) != 1 {
		return nil, false
	}
	x, ok := word.Parts[0].(*syntax.ArithmExp)
	return x, ok
}

// number reports whether a variable certainly holds a number here.
func (w *writer) number(p *syntax.ParamExp) bool {
	if p.Index != nil || p.Exp != nil || p.Repl != nil || p.Slice != nil || p.Excl {
		return false
	}
	return w.always(p.Param.Value).number && w.scope.has(p.Param.Value)
}

func (w *writer) isPlainVariable(word *syntax.Word) bool {
	p := soleExpansion(word)
	return p != nil && p.Index == nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && !p.Excl && w.always(p.Param.Value).plain && w.scope.has(p.Param.Value)
}

func (w *writer) assigningArguments(name string, args []*syntax.Word) {
	if name != "read" && name != "unset" {
		w.onlyBash(name)
	}
	value := false // the argument is the value of the option before it
	for i, a := range args {
		lit, ok := exact(a)
		switch {
		case value && ok:
			value = false
		case !ok && name == "getopts" && i > 1: // what is parsed, not the variable to assign
		case !ok && name == "read" && value && (isQuoted(a) || w.isNumeric(a) || w.isPlainVariable(a)): // a single word
			value = false
		case !ok:
			w.fail(name+" with a computed name can assign any variable", "write the name")
		case name == "getopts" && i == 0:
		case strings.HasPrefix(lit, "-") && len(lit) > 1:
			value = w.assigningOption(name, lit)
		default:
			w.variable(lit)
			w.scope.set(lit, name != "unset")
		}
	}
}

// assigningOption checks an option and reports whether a value follows it.
func (w *writer) assigningOption(name, option string) bool {
	letters := option[1:]
	switch name {
	case "read":
		if last := letters[len(letters)-1:]; strings.Trim(letters, "ersadnNptu") == "" {
			return strings.Contains("dnNptu", last)
		}
	case "unset":
		if letters == "v" {
			return false
		}
	case "mapfile", "readarray":
		if letters == "t" {
			return false
		}
	}
	w.fail(name + " " + option + " can change what names mean")
	return false
}

// setArguments allows options that only make the shell stricter or
// more verbose, and new positional parameters.
func (w *writer) setArguments(args []*syntax.Word) {
	for i, a := range args {
		lit, ok := literal(a)
		switch {
		case ok && lit == "--" && i == 0:
			return
		case ok && (lit == "pipefail" || lit == "errexit" || lit == "nounset" || lit == "xtrace" || lit == "noglob" || lit == "noclobber"):
		case ok && len(lit) > 1 && (lit[0] == '-' || lit[0] == '+') && strings.Trim(lit[1:], "euxfoC") == "":
		default:
			w.fail("set with other options, or with computed ones, can change how commands are read", "use set -- for positional parameters")
		}
	}
}
