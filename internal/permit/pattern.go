package permit

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	lazy "chorus/internal/pattern"
	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
)

// maxPatternLen keeps one rule from slowing down every decision.
const maxPatternLen = 4096

// deepPattern is a number of parentheses with which a pattern surely stays below the nesting that the regexp package
// allows: 1000 levels, of which a pair of parentheses needs four at most.
const deepPattern = 200

// rule is one compiled pattern.
type rule struct {
	pattern    string
	scope      string                // for whom it holds; "" means everybody
	matchesAll bool                  // matches every string, so the regexp need not run
	allShell   bool                  // covers every shell command
	noShell    bool                  // matches no shell command
	prefix     string                // prefix of every match
	prefixOnly bool                  // matches everything with that prefix, so the regexp need not run
	re         func() *regexp.Regexp // compiled on demand: the prefix rules out most rules
	prog       *syntax.Prog          // tells whether the rule could match text that is not fully known
}

// PatternError says which pattern is wrong and where.
type PatternError struct {
	List     string // "allow", "ask" or "deny"
	Index    int    // index in the list
	Pattern  string
	Position int // byte offset in the pattern
	Problem  string
	Hint     string // how to fix it; may be ""
}

// Error returns everything in one line.
func (e *PatternError) Error() string {
	s := fmt.Sprintf("invalid %s pattern %d %q at position %d: %s", e.List, e.Index+1, e.Pattern, e.Position+1, e.Problem)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// CheckRule parses one entry of a list as Compile does and returns what is wrong with it.
func CheckRule(list string, index int, text string) error {
	_, _, err := compileRule(list, index, text)
	return err
}

// compileRule compiles one entry of a list.
func compileRule(list string, index int, text string) (rule, Rule, error) {
	only, err := ParseRule(text)
	if err != nil {
		return rule{}, only, &PatternError{List: list, Index: index, Pattern: text, Problem: err.Error()}
	}
	r, err := compilePattern(list, index, only.Rule)
	r.scope = only.Scope()
	return r, only, err
}

func compilePattern(list string, index int, pattern string) (rule, error) {
	bad := func(pos int, problem, hint string) (rule, error) {
		return rule{}, &PatternError{List: list, Index: index, Pattern: pattern, Position: pos, Problem: problem, Hint: hint}
	}
	if len(pattern) > maxPatternLen {
		return bad(maxPatternLen, fmt.Sprintf("longer than %d bytes", maxPatternLen), "split it into several rules")
	}
	// The dot also matches newlines, so that rules can match multi-line commands.
	parsed, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	if err != nil {
		pos, problem, hint := explainSyntax(pattern, err)
		return bad(pos, problem, hint)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return bad(0, err.Error(), "")
	}
	whole := `(?s:\A(?:` + closeQuote(pattern) + `)\z)`
	if strings.Count(pattern, "(") > deepPattern {
		if _, err := syntax.Parse(whole, syntax.Perl); err != nil { // slightly more nested than the pattern itself
			return bad(0, err.Error(), "")
		}
	}
	prefix, _ := prog.Prefix()
	r := rule{pattern: pattern, matchesAll: pattern == ".*", prefix: prefix, prefixOnly: pattern == regexp.QuoteMeta(prefix)+".*", re: lazy.Lazy(whole), prog: prog}
	r.noShell = !r.couldMatch(new(nfa), []shell.Span{{Text: "tool:bash:"}, {Gap: true}})
	r.allShell = !r.noShell && r.coversShell()
	return r, nil
}

// Patterns are compiled patterns that extend a profile's allow list.
type Patterns []rule

// CompilePatterns compiles patterns. None may be restricted to some people.
func CompilePatterns(patterns []string) (Patterns, error) {
	var out Patterns
	for i, text := range patterns {
		r, only, err := compileRule(ListAllow, i, text)
		if err == nil && only.restricted() {
			err = &PatternError{List: ListAllow, Index: i, Pattern: text, Problem: "expected only a pattern, without roles, agents or channels"}
		}
		if err != nil {
			return nil, err
		}
		// However wide the pattern is, it must not allow commands that cannot be resolved.
		r.allShell = false
		out = append(out, r)
	}
	return out, nil
}

// Allowing returns the profile with further allow rules.
func (p *Profile) Allowing(more Patterns) *Profile {
	out := *p
	out.allow = slices.Concat(p.allow, more)
	out.mentioned = mentions(out.deny, out.allow, out.ask)
	out.resolved, out.possibleCache = true, new(sync.Map)
	return &out
}

// closeQuote closes a \Q that runs to the end of the pattern and would swallow the anchor after it.
func closeQuote(pattern string) string {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] != '\\' {
			continue
		}
		i++
		if pattern[i] != 'Q' {
			continue
		}
		end := strings.Index(pattern[i:], `\E`)
		if end < 0 {
			return pattern + `\E`
		}
		i += end + 1
	}
	return pattern
}

func (r *rule) matches(s string) bool {
	if r.matchesAll {
		return true
	}
	if !strings.HasPrefix(s, r.prefix) || r.noShell && strings.HasPrefix(s, "tool:bash:") {
		return false
	}
	return r.prefixOnly || r.re().MatchString(s)
}

// probes are shell commands that no rule is specifically about: a pattern that
// matches all of them is meant to cover every command.
var probes = []string{"tool:bash:", "tool:bash:\x01Zq9 '$`\"\\~\n;|&<>(){}*é", "tool:bash:$x"}

// coversShell reports whether a pattern covers every shell command, like ".*".
func (r *rule) coversShell() bool {
	for _, p := range probes {
		if !r.couldMatch(new(nfa), []shell.Span{{Text: p}}) || !r.matches(p) { // the first check rules out most rules without compiling
			return false
		}
	}
	return true
}

// couldMatch reports whether the rule matches for some contents of the gaps. It may err towards
// true, never towards false: assertions inside a pattern count as true. It runs on n, whose memory
// the next call may use again.
func (r *rule) couldMatch(n *nfa, spans []shell.Span) bool {
	if r.matchesAll {
		return true
	}
	if !r.couldBegin(spans) {
		return false
	}
	if r.prefixOnly {
		return true
	}
	n.begin(r.prog)
	for _, s := range spans {
		if s.Gap {
			n.widen()
			continue
		}
		for _, c := range s.Text {
			if !n.step(c) {
				return false
			}
		}
	}
	return n.matched()
}

// couldBegin compares the known beginning with the prefix of every match, which rules out most rules.
func (r *rule) couldBegin(spans []shell.Span) bool {
	prefix := r.prefix
	for i, s := range spans {
		switch {
		case s.Gap:
			return true
		case i == 0 && r.noShell && strings.HasPrefix(s.Text, action.Bash):
			return false
		case len(s.Text) >= len(prefix):
			return strings.HasPrefix(s.Text, prefix)
		case !strings.HasPrefix(prefix, s.Text):
			return false
		}
		prefix = prefix[len(s.Text):]
	}
	return prefix == ""
}

// nfa runs a compiled pattern over partly unknown text, which the regexp package cannot do.
type nfa struct {
	prog  *syntax.Prog
	mark  []uint32 // round in which each state was last added
	round uint32
	list  []uint32
	spare []uint32
	stack []uint32
}

// begin prepares for a pattern. Marks that another pattern left are of earlier rounds.
func (n *nfa) begin(prog *syntax.Prog) {
	n.prog = prog
	if len(n.mark) < len(prog.Inst) {
		n.mark, n.round = make([]uint32, len(prog.Inst)), 0
	}
	n.list = n.list[:0]
	n.nextRound()
	n.add(uint32(prog.Start), false)
}

// nextRound begins a new round and returns the states of the previous one.
func (n *nfa) nextRound() []uint32 {
	n.round++
	n.list, n.spare = n.spare[:0], n.list
	return n.spare
}

// add adds a state and everything reachable from it without reading a character.
// With through, it also adds what reading any character reaches.
func (n *nfa) add(start uint32, through bool) {
	n.stack = append(n.stack[:0], start)
	for len(n.stack) > 0 {
		pc := n.stack[len(n.stack)-1]
		n.stack = n.stack[:len(n.stack)-1]
		if n.mark[pc] == n.round {
			continue
		}
		n.mark[pc] = n.round
		inst := &n.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			n.stack = append(n.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			n.stack = append(n.stack, inst.Out)
		case syntax.InstMatch:
			n.list = append(n.list, pc)
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			n.list = append(n.list, pc)
			if through {
				n.stack = append(n.stack, inst.Out)
			}
		}
	}
}

// step reads one character and reports whether any state is left.
func (n *nfa) step(c rune) bool {
	for _, pc := range n.nextRound() {
		inst := &n.prog.Inst[pc]
		if inst.Op != syntax.InstMatch && inst.MatchRune(c) {
			n.add(inst.Out, false)
		}
	}
	return len(n.list) > 0
}

// widen reads arbitrary text.
func (n *nfa) widen() {
	for _, pc := range n.nextRound() {
		n.add(pc, true)
	}
}

func (n *nfa) matched() bool {
	for _, pc := range n.list {
		if n.prog.Inst[pc].Op == syntax.InstMatch {
			return true
		}
	}
	return false
}
