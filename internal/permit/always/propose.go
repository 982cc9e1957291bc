package always

import (
	"regexp"
	"slices"
	"strings"

	"chorus/internal/permit"
	"chorus/internal/text"
)

// Proposal is a set of rules for an allow list that lets pass what is asked for now.
type Proposal struct {
	Rules []string // each an RE2 pattern that matches whole action strings
	Means string   // what they allow, in words
	Also  []string // what else of the history they would allow
	Still []string // what of the history would be asked or denied as before
}

// maxExamples is as many as a person reads before deciding.
const maxExamples = 8

// Propose gives what "always allow" may mean for a call that is asked for: first exactly
// what was asked and nothing else, then at most two wider steps that people usually mean.
// Each one allows what the one before it allows. The history (shell commands, or action
// strings beginning with "tool:") is searched for what else each would allow.
//
// It proposes nothing for what is allowed or denied already, nor for what would be asked
// in spite of any rule. It judges again with the rules added, so a proposal that would
// not do what it says is not made.
func Propose(j permit.Judgement, history ...string) []Proposal {
	if j.Verdict != permit.Ask || len(j.By) == 0 {
		return nil
	}
	// A command may be asked for under a second name too (git fetch in the shell is also
	// the git tool's fetch); rules for that one are added only where they are needed.
	for _, both := range []bool{false, true} {
		if out := propose(j, both, history); len(out) > 0 {
			return out
		}
	}
	return nil
}

func propose(j permit.Judgement, both bool, history []string) []Proposal {
	var out []Proposal
	for level := range maxLevel + 1 {
		p := proposed(j, level, both)
		if len(out) > 0 && slices.Equal(p.Rules, out[len(out)-1].Rules) {
			continue
		}
		after := extended(j, p.Rules)
		if after == nil || strictest(after, j.Requests, j.Options) != permit.Allow {
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

// proposed joins the rules for everything that is asked.
func proposed(j permit.Judgement, level int, both bool) Proposal {
	p := Proposal{}
	var means []string
	for _, d := range j.Decisions {
		if d.Verdict != permit.Ask {
			continue
		}
		s := stepAt(d, level, j.Options)
		p.Rules = text.AddNew(p.Rules, s.rules...)
		if both {
			p.Rules = text.AddNew(p.Rules, s.stricter...)
		}
		means = text.AddNew(means, s.means)
	}
	p.Means = strings.Join(means, "; ")
	return p
}

// extended gives the profiles of a judgement with further allow rules; nil if one cannot
// be compiled (an action may be longer than any rule).
func extended(j permit.Judgement, rules []string) []*permit.Profile {
	more, err := permit.CompilePatterns(rules)
	if err != nil {
		return nil
	}
	out := make([]*permit.Profile, len(j.By))
	for i, p := range j.By {
		out[i] = p.Allowing(more)
	}
	return out
}

func strictest(profiles []*permit.Profile, requests []permit.Request, opt permit.JudgeOptions) permit.Verdict {
	worst := permit.Allow
	for _, p := range profiles {
		worst = max(worst, p.Judge(requests, opt).Verdict)
	}
	return worst
}

// examples are the entries of the history that only the new rules allow, and those that
// they do not allow either.
func examples(j permit.Judgement, after []*permit.Profile, history []string) (also, still []string) {
	for _, h := range history {
		r := permit.RequestOf(h)
		if slices.Contains(also, h) || slices.Contains(still, h) || slices.Contains(j.Requests, r) {
			continue
		}
		switch {
		case strictest(after, []permit.Request{r}, j.Options) != permit.Allow:
			if len(still) < maxExamples {
				still = append(still, h)
			}
		case strictest(j.By, []permit.Request{r}, j.Options) != permit.Allow && len(also) < maxExamples:
			also = append(also, h)
		}
	}
	return also, still
}

// step is what one asked action becomes at some level of width.
type step struct {
	rules    []string
	stricter []string // the same for the action's second name
	means    string
}

// maxLevel is the widest: level 0 is literal, then come two steps.
const maxLevel = 2

// stepAt makes the rules for one decision. For an action with fewer levels, its last one
// is repeated.
func stepAt(d permit.Decision, level int, opt permit.JudgeOptions) step {
	steps := []step{{rules: []string{literal(d.Action)}, means: "exactly this"}}
	if d.Stricter != "" {
		steps[0].stricter = []string{literal(d.Stricter)}
	}
	steps = append(steps, wider(d, opt)...)
	return steps[min(level, len(steps)-1)]
}

// literal is the pattern of exactly one string.
func literal(s string) string { return regexp.QuoteMeta(s) }
