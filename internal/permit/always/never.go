package always

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"chorus/internal/permit"
)

// Never returns why no rule that is kept can allow a call for which Propose has no proposal, as a clause
// for people. It names what would still be asked or refused with a rule for exactly this call. It does not
// say how the command could be written otherwise, because whoever reads it did not write it.
func Never(j permit.Judgement) string {
	switch j.Verdict {
	case permit.Allow:
		return "it is already allowed"
	case permit.Deny:
		return "it is refused, and no rule that you keep changes that" + colon(refusal(j.Decision))
	}
	return "no rule can allow this call, so it is asked each time" + colon(remaining(j))
}

func colon(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func refusal(d permit.Decision) string {
	switch d.List {
	case permit.ListCatastrophic:
		return cmp.Or(d.Why, "it is refused under every profile")
	case permit.ListDeny:
		return "a rule denies " + ruleWords(d.Rule)
	}
	return "no rule of the profile covers it"
}

// ruleWords says what a rule is about.
func ruleWords(rule string) string {
	words, err := permit.Words(rule)
	if err != nil || words == "whatever fits this expression" {
		return rule
	}
	return words
}

// remaining returns why a call is still asked with a rule for exactly this call.
func remaining(j permit.Judgement) string {
	exact := proposed(j, 0, true)
	after := extended(j, exact.Rules)
	if after == nil {
		if slices.ContainsFunc(exact.Rules, func(rule string) bool { return !utf8.ValidString(rule) }) {
			return "it has bytes that are not text"
		}
		return "it is longer than a rule may be"
	}
	why := ""
	for _, p := range after {
		for _, d := range p.Judge(j.Requests, j.Options).Decisions {
			switch {
			case d.Verdict != permit.Allow && d.Doubt != nil && d.Doubt.Denies != "":
				return d.Doubt.Reason + ": " + ruleWords(d.Doubt.Denies)
			case d.Verdict != permit.Allow && d.Doubt != nil:
				return d.Doubt.Reason
			case d.Verdict != permit.Allow:
				why = cmp.Or(why, d.Why)
			}
		}
	}
	return why
}
