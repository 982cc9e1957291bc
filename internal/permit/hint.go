package permit

import (
	"errors"
	"regexp/syntax"
	"strings"
)

const hintOrder = "RE2 has no lookaround or backreferences: deny is tried first, then allow, then ask, " +
	"so put the exception into deny, or, to have it asked, spell out in allow what is allowed and leave the rest to ask"

// otherSyntax lists syntax of other regular expression languages. If one
// entry is a prefix of another, the longer comes first.
var otherSyntax = []struct{ begin, problem, hint string }{
	{"(?=", "lookaround (?= is not supported", hintOrder},
	{"(?!", "lookaround (?! is not supported", hintOrder},
	{"(?<=", "lookaround (?<= is not supported", hintOrder},
	{"(?<!", "lookaround (?<! is not supported", hintOrder},
	{"(?P=", "backreference (?P= is not supported", hintOrder},
	{"(?P>", "recursion (?P> is not supported", "spell the inner pattern out"},
	{"(?R", "recursion (?R is not supported", "spell the inner pattern out"},
	{"(?&", "recursion (?& is not supported", "spell the inner pattern out"},
	{"(?(", "conditional (?( is not supported", "write both cases with |, or as two rules"},
	{"(?>", "atomic group (?> is not supported", "RE2 never backtracks, so a plain group (?: does the same"},
	{"(?|", "branch reset (?| is not supported", "a plain group (?: does the same here"},
	{"(?#", "comment (?# is not supported", "write the comment beside the rule (YAML has #)"},
	{"(?'", "named group (?' is not supported", "write (?P<name>, or (?: as the name is not used"},
	{"(?^", "flags (?^ are not supported", "the flags are i, m, s and U"},
	{"(*", "verb (* is not supported", "leave it out"},
	{`\k`, `backreference \k is not supported`, hintOrder},
	{`\g`, `backreference \g is not supported`, hintOrder},
	{`\K`, `\K is not supported`, "a rule matches the whole action; leave it out"},
	{`\G`, `\G is not supported`, "a rule matches the whole action; leave it out"},
	{`\Z`, `\Z is not supported`, "a rule matches the whole action; leave it out"},
	{`\R`, `\R is not supported`, `write \r?\n`},
	{`\h`, `\h is not supported`, `write [ \t]`},
	{`\X`, `\X is not supported`, "write . instead"},
	{`\N`, `\N is not supported`, `write [^\n]`},
	{`\e`, `\e is not supported`, `write \x1b`},
	{`\u`, `\u is not supported`, `write \x{…} with the code point`},
	{`\c`, `\c is not supported`, `write \x{…} with the code point`},
}

// explainSyntax returns where and why a pattern is wrong, and how to write it instead.
func explainSyntax(pattern string, err error) (pos int, problem, hint string) {
	var se *syntax.Error
	if !errors.As(err, &se) {
		return 0, err.Error(), ""
	}
	pos, problem = locate(pattern, se.Expr), se.Code.String()
	switch se.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return strayParen(pattern), problem, ""
	case syntax.ErrTrailingBackslash:
		return len(pattern) - 1, problem, `write \\ for a backslash`
	case syntax.ErrInvalidRepeatOp:
		if strings.HasSuffix(se.Expr, "+") {
			return pos, "possessive quantifier " + se.Expr + " is not supported", "RE2 never backtracks, so it does the same without the last +"
		}
		return pos, problem + " " + se.Expr, "put what is repeated into a group (?:…)"
	case syntax.ErrInvalidRepeatSize:
		return pos, problem + " " + se.Expr, "RE2 repeats at most 1000 times in all; write * or + instead"
	case syntax.ErrInvalidEscape:
		if len(se.Expr) == 2 && se.Expr[1] >= '1' && se.Expr[1] <= '9' {
			return pos, "backreference " + se.Expr + " is not supported", hintOrder
		}
		problem += " " + se.Expr
	case syntax.ErrMissingRepeatArgument:
		// The parser reports the star; the verb begins before it.
		if pos > 0 && pattern[pos-1] == '(' && pos+1 < len(pattern) && pattern[pos+1] >= 'A' && pattern[pos+1] <= 'Z' {
			pos--
		}
	case syntax.ErrInvalidPerlOp:
		problem += " " + se.Expr
		hint = "the flags are i, m, s and U; write a plain group as (?:"
		if len(se.Expr) == 3 && se.Expr[2] >= '0' && se.Expr[2] <= '9' {
			return pos, "recursion " + se.Expr + " is not supported", "spell the inner pattern out"
		}
	}
	for _, f := range otherSyntax {
		if strings.HasPrefix(pattern[pos:], f.begin) {
			return pos, f.problem, f.hint
		}
	}
	return pos, problem, hint
}

// locate finds the position that the parser complains about, ignoring the
// same characters inside a class or a quotation.
func locate(pattern, what string) int {
	if what == "" {
		return 0
	}
	inClass := strings.HasPrefix(what, `\`) || strings.HasPrefix(what, "[") || strings.Contains(what, "-")
	class := false
	for i := 0; i < len(pattern); i++ {
		named := what == "(?P" && strings.HasPrefix(pattern[i:], "(?P<") // valid
		if strings.HasPrefix(pattern[i:], what) && (!class || inClass) && !named {
			return i
		}
		switch c := pattern[i]; {
		case c == '\\':
			i++
			if i < len(pattern) && pattern[i] == 'Q' && !class {
				end := strings.Index(pattern[i:], `\E`)
				if end < 0 {
					return max(strings.Index(pattern, what), 0)
				}
				i += end + 1
			}
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(pattern[i+1:], "^") {
				i++
			}
			if strings.HasPrefix(pattern[i+1:], "]") {
				i++
			}
		}
	}
	return max(strings.Index(pattern, what), 0)
}

// strayParen finds an unbalanced parenthesis.
func strayParen(pattern string) int {
	var open []int
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if i+1 < len(pattern) && pattern[i+1] == ']' {
				i++
			}
		case c == '(':
			open = append(open, i)
		case c == ')':
			if len(open) == 0 {
				return i
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return open[len(open)-1]
	}
	return 0
}
