package permit

import (
	"regexp"
	"regexp/syntax"
	"slices"

	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
)

// Possible reports whether some call of a tool could be anything but denied. If false, the
// tool need not be offered to a model. It may err towards true, never towards false. The
// tool is named as in action strings, by our name or an alias.
func (p *Profile) Possible(tool string) bool {
	if known, ok := p.possibleCache.Load(tool); ok {
		return known.(bool)
	}
	possible := p.possible(tool)
	p.possibleCache.Store(tool, possible)
	return possible
}

func (p *Profile) possible(tool string) bool {
	switch tool {
	case "file":
		return slices.ContainsFunc([]string{"read", "list_files", "write", "edit", "apply_patch"}, p.Possible)
	case "agent_comm":
		if slices.ContainsFunc([]string{"send_to_agent", "read_agent_docs", "list_agents"}, p.Possible) {
			return true
		}
	}
	ours, detail := canonicalName(tool, "")
	// Every call has these names, whatever its detail.
	always := []string{action.Join(ours, detail)}
	for _, a := range aliases[ours] {
		if a != "agent_comm" {
			always = append(always, action.Join(a, detail))
		}
	}
	for i := range p.deny {
		if slices.ContainsFunc(append(always, action.Join(tool, "")), p.deny[i].covers) {
			return false
		}
	}
	var n nfa
	for _, begin := range slices.Concat(always, optionalPrefixes(ours)) {
		spans := []shell.Span{{Text: begin}, {Gap: true}}
		if couldMatch(&n, p.allow, spans) != nil || couldMatch(&n, p.ask, spans) != nil {
			return true
		}
		// It is not known yet who will ask, so a restricted rule may apply.
		if !p.resolved && slices.ContainsFunc(p.scoped, func(s scoped) bool { return s.list != ListDeny && s.rule.couldMatch(&n, spans) }) {
			return true
		}
	}
	return false
}

// optionalPrefixes returns prefixes of further names that calls of a tool may have.
func optionalPrefixes(tool string) []string {
	switch tool {
	case "read", "list_files", "write", "edit", "apply_patch":
		return []string{action.Join("file", "")}
	case "git":
		return []string{"tool:git_", action.Join("GitStatus", ""), action.Join("GitDiff", "")}
	case "self_edit":
		return []string{"tool:self_edit_"}
	case "send_to_agent", "read_agent_docs", "list_agents":
		return []string{action.Join("agent_comm", "")}
	}
	return nil
}

// covers reports whether the rule matches every string with this prefix. It only
// recognises patterns that end in ".*", so it may be wrongly false.
func (r *rule) covers(begin string) bool {
	if r.matchesAll {
		return true
	}
	parsed, err := syntax.Parse(r.pattern, syntax.Perl|syntax.DotNL)
	return err == nil && coversAll(nil, parsed, begin)
}

// coversAll is covers for the concatenation of head and tail.
func coversAll(head []*syntax.Regexp, tail *syntax.Regexp, begin string) bool {
	switch tail.Op {
	case syntax.OpCapture:
		return coversAll(head, tail.Sub[0], begin)
	case syntax.OpAlternate:
		return slices.ContainsFunc(tail.Sub, func(s *syntax.Regexp) bool { return coversAll(head, s, begin) })
	case syntax.OpConcat:
		last := len(tail.Sub) - 1
		return coversAll(slices.Concat(head, tail.Sub[:last]), tail.Sub[last], begin)
	case syntax.OpStar:
		return tail.Sub[0].Op == syntax.OpAnyChar && matchesSomeBeginning(head, begin)
	}
	return false
}

// matchesSomeBeginning reports whether the parts match the string or a prefix of it.
func matchesSomeBeginning(parts []*syntax.Regexp, begin string) bool {
	text := ""
	for _, p := range parts {
		if looksAhead(p) {
			return false
		}
		text += "(?:" + p.String() + ")"
	}
	re, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return false
	}
	for i := 0; i <= len(begin); i++ {
		if re.MatchString(begin[:i]) {
			return true
		}
	}
	return false
}

// looksAhead reports whether an expression has assertions that depend on what follows.
func looksAhead(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEndLine, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(re.Sub, looksAhead)
}
