package always

import (
	"regexp"
	"slices"
	"strings"

	"chorus/internal/permit"
	"chorus/internal/permit/action"
	"chorus/internal/text"
)

// Proposal is a set of rules for an allow list that would allow the present call.
type Proposal struct {
	Rules []string // each an RE2 pattern that matches whole action strings
	Means string   // what they allow, in words
	Also  []string // other history entries that they would allow
	Still []string // history entries that would still be asked or denied
}

// maxExamples is how many examples a person is expected to read before deciding.
const maxExamples = 8

// Propose returns what "always allow" may mean for a call that needs approval: first exactly this
// call, then at most two wider steps that people usually mean. Each step allows everything that the
// step before it allows. For each step, Propose searches the history (shell commands, or action
// strings that begin with "tool:") for what else it would allow.
//
// It proposes nothing for calls that are already allowed or denied, or that would need approval despite any
// rule; Never says why. It judges the call again with the new rules, so it never makes a proposal that would not work.
func Propose(j permit.Judgement, history ...string) []Proposal {
	if j.Verdict != permit.Ask || len(j.By) == 0 {
		return nil
	}
	// A command may need approval under a second name too (git fetch in the shell is also the
	// git tool's fetch). Rules for that name are added only where needed.
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

// proposed joins the rules for all actions that need approval.
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

// extended returns the profiles of a judgement with further allow rules, or nil if a rule
// cannot be compiled (an action may be longer than the longest rule).
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

// examples splits the history into entries that only the new rules
// allow, and entries that even they do not allow.
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

// step is the rule for one asked action at some level of width.
type step struct {
	rules    []string
	stricter []string // the same for the action's second name
	means    string
}

// maxLevel is the widest level: level 0 is literal, and two wider steps follow.
const maxLevel = 2

// stepAt returns the rules for one decision. For an action with fewer levels, it repeats the last one.
func stepAt(d permit.Decision, level int, opt permit.JudgeOptions) step {
	steps := []step{{rules: []string{literal(matched(d.Action))}, means: "exactly this"}}
	if d.Stricter != "" {
		steps[0].stricter = []string{literal(d.Stricter)}
	}
	steps = append(steps, wider(d, opt)...)
	return steps[min(level, len(steps)-1)]
}

// matched returns an action as rules are matched against it: with the one spelling of its path.
func matched(given string) string {
	tool, detail, ok := action.Split(given)
	if !ok || !action.IsPath(tool) || detail == "" {
		return given
	}
	return action.Join(tool, action.CleanPath(detail))
}

// literal returns the pattern that matches exactly one string.
func literal(s string) string { return regexp.QuoteMeta(s) }
