package permit

import (
	"regexp"
	"slices"
	"strings"
)

// Proposal is a set of rules for an allow list that lets pass what is asked for now.
type Proposal struct {
	Rules []string // each an RE2 pattern that matches whole action strings
	Means string   // what they allow, in words
	Also  []string // what else of the history would be allowed by them
	Still []string // what of the history would be asked or denied as before
}

// mostExamples is as many as a person reads before saying yes.
const mostExamples = 8

// Narrow proposes what "always allow" may mean for a call that is asked for: first
// exactly what was asked and nothing else, then at most two wider steps that people
// usually mean. Each one allows what the one before it allows. The history (shell
// commands, or action strings beginning with "tool:") is searched for what else
// each would let pass.
//
// Nothing is proposed for what is allowed or denied already, nor for what would be
// asked in spite of any rule: what is opaque stays asked, what is denied or
// catastrophic stays denied. It judges anew with the rules added, so a proposal
// that would not do what it says is not made.
func Narrow(j Judgement, history ...string) []Proposal {
	if j.Verdict != Ask || len(j.by) == 0 {
		return nil
	}
	// A command may be asked under a second name too (git fetch in the shell is also
	// the tool's fetch); rules for that are added only where they are needed.
	for _, both := range []bool{false, true} {
		if out := narrow(j, both, history); len(out) > 0 {
			return out
		}
	}
	return nil
}

func narrow(j Judgement, both bool, history []string) []Proposal {
	var out []Proposal
	for level := range widest + 1 {
		p := proposed(j, level, both)
		if len(out) > 0 && slices.Equal(p.Rules, out[len(out)-1].Rules) {
			continue
		}
		after := j.with(p.Rules)
		if after == nil || judgeUnder(after, j.requests, j.opt) != Allow {
			if level == 0 {
				return nil
			}
			continue
		}
		p.Also, p.Still = examples(j, after, history)
		out = append(out, p)
	}
	return out
}

// proposed puts the rules for everything that is asked together.
func proposed(j Judgement, level int, both bool) Proposal {
	p := Proposal{}
	var means []string
	for _, d := range j.Decisions {
		if d.Verdict != Ask {
			continue
		}
		w := widened(d, level, j.opt)
		p.Rules = addNew(p.Rules, w.rules...)
		if both {
			p.Rules = addNew(p.Rules, w.under...)
		}
		means = addNew(means, w.means)
	}
	p.Means = strings.Join(means, "; ")
	return p
}

// with gives the profiles of a judgement with further allow rules; nil if one
// cannot be compiled (an action may be longer than any rule).
func (j Judgement) with(rules []string) []*Profile {
	var more []rule
	for i, text := range rules {
		r, _, err := compileRule(ListAllow, i, text)
		if err != nil {
			return nil
		}
		more = append(more, r)
	}
	return j.widened(more)
}

// widened gives the profiles with further allow rules. However wide these are, they
// do not make a profile one that lets pass what cannot be resolved.
func (j Judgement) widened(more []rule) []*Profile {
	more = slices.Clone(more)
	for i := range more {
		more[i].shell = false
	}
	out := make([]*Profile, len(j.by))
	for i, p := range j.by {
		wider := *p
		wider.allow = slices.Concat(p.allow, more)
		wider.mention = mentions(wider.deny, wider.allow, wider.ask)
		wider.narrowed = true
		out[i] = &wider
	}
	return out
}

func judgeUnder(profiles []*Profile, requests []Request, opt JudgeOptions) Verdict {
	worst := Allow
	for _, p := range profiles {
		worst = max(worst, p.Judge(requests, opt).Verdict)
	}
	return worst
}

// examples are the entries of the history that only the new rules allow, and those
// that they do not allow either.
func examples(j Judgement, after []*Profile, history []string) (also, still []string) {
	for _, h := range history {
		r := requestOf(h)
		if slices.Contains(also, h) || slices.Contains(still, h) ||
			slices.ContainsFunc(j.requests, func(asked Request) bool { return sameRequest(asked, r) }) {
			continue
		}
		switch {
		case judgeUnder(after, []Request{r}, j.opt) != Allow:
			if len(still) < mostExamples {
				still = append(still, h)
			}
		case judgeUnder(j.by, []Request{r}, j.opt) != Allow && len(also) < mostExamples:
			also = append(also, h)
		}
	}
	return also, still
}

// RequestOf is the request that an action string, or a shell command, stands for.
func RequestOf(entry string) Request { return requestOf(entry) }

func requestOf(entry string) Request {
	tool, detail, ok := Split(entry)
	if !ok {
		return Request{Tool: "bash", Command: entry}
	}
	if slices.Contains(shellTools, tool) {
		return Request{Tool: tool, Command: detail}
	}
	return Request{Tool: tool, Detail: detail}
}

func sameRequest(a, b Request) bool {
	return a.Tool == b.Tool && a.Command+"\x00"+a.Detail == b.Command+"\x00"+b.Detail
}

func addNew(to []string, more ...string) []string {
	for _, s := range more {
		if s != "" && !slices.Contains(to, s) {
			to = append(to, s)
		}
	}
	return to
}

// wide is what one asked action becomes at some level.
type wide struct {
	rules []string
	under []string // the same for the second name of the action
	means string
}

// widest is the last level: literal, then two steps.
const widest = 2

// widened makes the rules for one decision. The levels of an action that has fewer
// are its last one again.
func widened(d Decision, level int, opt JudgeOptions) wide {
	steps := []wide{{rules: []string{literal(d.Action)}, means: "exactly this"}}
	if d.tight != "" {
		steps[0].under = []string{literal(d.tight)}
	}
	steps = append(steps, wider(d, opt)...)
	return steps[min(level, len(steps)-1)]
}

// literal is the pattern of exactly one string.
func literal(s string) string { return regexp.QuoteMeta(s) }
