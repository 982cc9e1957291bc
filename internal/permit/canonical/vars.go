package canonical

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variable describes everything that the whole text assigns to a name.
type variable struct {
	number bool // only ever a whole number
	plain  bool // only ever a literal without characters that are special to test
}

// analyse collects every assignment in a text.
func analyse(file *syntax.File) map[string]variable {
	vars := map[string]variable{"REPLY": {}, "OPTARG": {}, "MAPFILE": {}} // set by builtins without being named
	note := func(name string, v variable) {
		if old, ok := vars[name]; ok {
			v.number, v.plain = v.number && old.number, v.plain && old.plain
		}
		vars[name] = v
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				note(n.Name.Value, assigned(n))
			}
		case *syntax.WordIter:
			v := variable{number: n.InPos.IsValid(), plain: n.InPos.IsValid()}
			for _, w := range n.Items {
				lit, ok := literal(w)
				v.number = v.number && ok && (isNumber(lit) || isNumberRange(lit))
				v.plain = v.plain && ok && isPlain(lit)
			}
			note(n.Name.Value, v)
		case *syntax.CStyleLoop:
			if b, ok := n.Init.(*syntax.BinaryArithm); ok && b.Op == syntax.Assgn {
				if w, ok := b.X.(*syntax.Word); ok {
					note(w.Lit(), variable{number: true, plain: true})
				}
			}
		case *syntax.CallExpr:
			// These builtins set variables from their input.
			if name, _ := literal(firstOf(n.Args)); name == "read" || name == "getopts" || name == "mapfile" || name == "readarray" {
				for _, a := range n.Args[1:] {
					if lit, ok := literal(a); ok && isName(lit) {
						note(lit, variable{})
					}
				}
			}
		}
		return true
	})
	return vars
}

func assigned(a *syntax.Assign) variable {
	if a.Array != nil || a.Index != nil {
		return variable{}
	}
	if a.Value != nil && len(a.Value.Parts) == 1 {
		switch p := a.Value.Parts[0].(type) {
		case *syntax.ArithmExp:
			return variable{number: !a.Append, plain: !a.Append}
		case *syntax.ParamExp:
			if isCount(p) {
				return variable{number: !a.Append, plain: !a.Append}
			}
		}
	}
	lit, ok := literal(a.Value)
	return variable{number: ok && !a.Append && isNumber(lit), plain: ok && isPlain(lit)}
}

// isCount reports whether an expansion is always a number: $#, $?, $!, $$ or a length.
func isCount(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Excl {
		return false
	}
	return p.Length || p.Index == nil && strings.Contains("#?!$", p.Param.Value)
}

// scope holds the variables that are certainly assigned at the writer's position: earlier at
// the same level, or at an enclosing level. The last entry for a name counts. Code that
// enters a level saves the scope and restores it afterwards.
type scope []assignment

type assignment struct {
	name string
	set  bool // false if it was unset
}

func (s scope) has(name string) bool {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].name == name {
			return s[i].set
		}
	}
	return false
}

func (s *scope) set(name string, assigned bool) {
	if n := len(*s); n > 0 && (*s)[n-1] == (assignment{name, assigned}) {
		return
	}
	*s = append(*s, assignment{name, assigned})
}

// changesMeaning reports whether a variable must not be assigned because it
// changes what names, words or later commands mean.
func changesMeaning(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "SHELLOPTS", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "EXECIGNORE", "POSIXLY_CORRECT",
		"FUNCNEST", "FUNCNAME", "HISTFILE", "HISTCMD", "OPTIND", "RANDOM", "SECONDS", "SRANDOM", "LINENO", "FCEDIT", "DIRSTACK", "GROUPS", "UID", "EUID", "PPID",
		"PWD", "OLDPWD", "COMP_WORDBREAKS", "TIMEFORMAT", "_", "SHELL", "GCONV_PATH", "LOCPATH":
		return true
	}
	return strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "PS") && len(name) == 3 ||
		strings.HasPrefix(name, "MALLOC_") || strings.HasPrefix(name, "GLIBC_")
}

// isLocale reports whether a variable determines how bytes become characters.
func isLocale(name string) bool { return name == "LC_ALL" || name == "LC_CTYPE" || name == "LANG" }

// isPlainLocale reports whether a word is a literal locale in which the shell reads bytes as this
// package does. In other locales, such as Big5, the last byte of a character and the following byte can
// form one character, so that a backslash no longer quotes what follows.
func isPlainLocale(word *syntax.Word) bool {
	if word == nil {
		return true
	}
	value, ok := literal(word)
	_, charset, _ := strings.Cut(value, ".")
	return ok && (value == "" || value == "C" || value == "POSIX" || strings.EqualFold(charset, "UTF-8") || strings.EqualFold(charset, "utf8"))
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) < 19
}

// isNumberRange reports whether s is a range such as {1..9}.
func isNumberRange(s string) bool {
	s, ok := strings.CutPrefix(s, "{")
	s, end := strings.CutSuffix(s, "}")
	from, to, dots := strings.Cut(s, "..")
	return ok && end && dots && isNumber(from) && isNumber(to)
}

// isPlain reports whether no builtin reads s as an option, an operator or a subscript.
func isPlain(s string) bool {
	if s == "" || s[0] == '-' || s[0] == '!' || s[0] == '=' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./:,@%+-", r))
	}) < 0
}

func firstOf(words []*syntax.Word) *syntax.Word {
	if len(words) == 0 {
		return nil
	}
	return words[0]
}
