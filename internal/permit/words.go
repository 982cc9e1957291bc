package permit

import (
	"regexp/syntax"
	"slices"
	"strings"

	"chorus/internal/permit/action"
)

// Words says what a rule of a list is about, for people who do not read regular expressions. For an
// expression without a short description it says only that it is one; people must try what it matches.
func Words(text string) (string, error) {
	only, err := ParseRule(text)
	if err != nil {
		return "", err
	}
	parsed, err := syntax.Parse(only.Rule, syntax.Perl|syntax.DotNL)
	if err != nil {
		return "", CheckRule(ListAllow, 0, text)
	}
	words := RuleName(only.Rule)
	if words == "" {
		words = spell(parsed)
	}
	if scope := only.Scope(); scope != "" {
		words += ", only for " + scope
	}
	return words, nil
}

// maxSpelled is how many alternatives a readable sentence can hold.
const maxSpelled = 24

// spell describes an expression by the texts that it can begin with and what may follow them.
func spell(re *syntax.Regexp) string {
	heads, rest := []string{""}, parts(re)
	for len(rest) > 0 {
		more, ok := alternatives(rest[0])
		if !ok || len(heads)*len(more) > maxSpelled {
			break
		}
		heads, rest = product(heads, more), rest[1:]
	}
	tail := tailOf(rest)
	if tail == tailOther {
		return "whatever fits this expression"
	}
	var out []string
	for _, g := range groupHeads(heads) {
		out = append(out, g.sentence(tail))
	}
	return strings.Join(out, "; ")
}

// parts splits an expression into the parts that follow one another.
func parts(re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpConcat:
		var out []*syntax.Regexp
		for _, sub := range re.Sub {
			out = append(out, parts(sub)...)
		}
		return out
	case syntax.OpCapture:
		return parts(re.Sub[0])
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText:
		return nil
	default:
		return []*syntax.Regexp{re}
	}
}

// alternatives returns all texts that an expression matches; false if there are too many.
func alternatives(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}, re.Flags&syntax.FoldCase == 0
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpCharClass:
		var out []string
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if out = append(out, string(r)); len(out) > 6 {
					return nil, false
				}
			}
		}
		return out, true
	case syntax.OpQuest:
		out, ok := alternatives(re.Sub[0])
		return append([]string{""}, out...), ok
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			some, ok := alternatives(sub)
			if out = append(out, some...); !ok || len(out) > maxSpelled {
				return nil, false
			}
		}
		return out, true
	case syntax.OpConcat, syntax.OpCapture:
		out := []string{""}
		for _, sub := range parts(re) {
			some, ok := alternatives(sub)
			if !ok || len(out)*len(some) > maxSpelled {
				return nil, false
			}
			out = product(out, some)
		}
		return out, true
	}
	return nil, false
}

func product(heads, more []string) []string {
	out := make([]string, 0, len(heads)*len(more))
	for _, a := range heads {
		for _, b := range more {
			out = append(out, a+b)
		}
	}
	return out
}

// How an expression can continue after its beginning.
const (
	tailNone      = "none"      // it ends
	tailAnything  = "anything"  // with any text
	tailArguments = "arguments" // it ends, or continues with a space and any text
	tailOther     = "other"     // in a way that has no short name
)

func tailOf(rest []*syntax.Regexp) string {
	switch {
	case len(rest) == 0:
		return tailNone
	case len(rest) > 1:
		return tailOther
	}
	re := rest[0]
	if anything(re) {
		return tailAnything
	}
	if re.Op != syntax.OpQuest {
		return tailOther
	}
	if p := parts(re.Sub[0]); len(p) == 2 && p[0].Op == syntax.OpLiteral && string(p[0].Rune) == " " && anything(p[1]) {
		return tailArguments
	}
	return tailOther
}

func anything(re *syntax.Regexp) bool {
	return (re.Op == syntax.OpStar || re.Op == syntax.OpPlus) && (re.Sub[0].Op == syntax.OpAnyChar || re.Sub[0].Op == syntax.OpAnyCharNotNL)
}

// headGroup groups tools of one kind that share their details.
type headGroup struct {
	kind    string // what is done with the details; "" for a tool by its name
	tools   []string
	details []string
	partial bool // the tool names are only prefixes
}

// kinds says in words what tools do.
var kinds = map[string]string{"bash": "running", "run_background": "leaving running", "run_concurrent": "leaving running", "read": "reading", "list_files": "reading", "search_files": "reading", "upload": "uploading",
	"write": "changing", "edit": "changing", "apply_patch": "changing", "git": "git", "web_fetch": "fetching", "web_search": "searching the web for"}

// groupHeads groups beginnings of action strings that people see as one thing.
func groupHeads(heads []string) []headGroup {
	var out []headGroup
	for _, head := range heads {
		tool, detail, whole := action.Split(head)
		if !whole {
			tool = strings.TrimPrefix(head, "tool:")
		}
		kind := kinds[tool]
		at := slices.IndexFunc(out, func(g headGroup) bool { return g.partial == !whole && g.kind == kind })
		if at < 0 {
			out, at = append(out, headGroup{kind: kind, partial: !whole}), len(out)
		}
		g := &out[at]
		if !slices.Contains(g.tools, tool) {
			g.tools = append(g.tools, tool)
		}
		if !slices.Contains(g.details, detail) {
			g.details = append(g.details, detail)
		}
	}
	return out
}

func (g headGroup) sentence(tail string) string {
	details := either(quoteAll(g.details))
	bare := len(g.details) == 1 && g.details[0] == ""
	switch {
	case g.partial && len(g.tools) == 1 && g.tools[0] == "" && tail == tailAnything:
		return "anything"
	case g.partial && tail == tailAnything:
		return "tools whose name begins with " + either(quoteAll(g.tools))
	case g.partial:
		return "whatever fits this expression"
	case g.kind == "" && bare && tail == tailAnything:
		return "the tool " + either(g.tools) + ", whatever it is called with"
	case g.kind == "":
		return "the tool " + either(g.tools) + ", called with " + details + after(tail)
	case g.kind == "reading" || g.kind == "changing" || g.kind == "uploading":
		return g.kind + " " + pathWords(details, bare, tail)
	case bare && tail == tailAnything:
		return map[string]string{"running": "any shell command", "leaving running": "leaving any command running", "git": "any git command", "fetching": "fetching any address", "searching the web for": "any search of the web"}[g.kind]
	case g.kind == "running":
		return "running " + details + after(tail)
	case g.kind == "git":
		return "git " + details + after(tail)
	default:
		return g.kind + " " + details + after(tail)
	}
}

func pathWords(details string, bare bool, tail string) string {
	switch {
	case bare && tail == tailAnything:
		return "any file"
	case tail == tailAnything:
		return "files whose path begins with " + details
	}
	return details + after(tail)
}

func after(tail string) string {
	switch tail {
	case tailArguments:
		return ", alone or with any arguments"
	case tailAnything:
		return " and whatever follows"
	}
	return ", exactly as it stands"
}

func quoteAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = "“" + s + "”"
	}
	return out
}

func either(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
