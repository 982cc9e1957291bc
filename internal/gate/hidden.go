package gate

import (
	"slices"

	"chorus/internal/permit"
	"chorus/internal/transcript"
)

// searching maps each tool that reads files its call does not name, or shows parts of
// files it changes, to the tools whose rules must allow such a file.
var searching = map[string][]string{
	"edit":          {"read"},
	"hashline_edit": {"read"},
	"apply_patch":   {"read"},
	"search_files":  {"read", "search_files"},
	"list_files":    {"list_files"},
	"git_diff":      {"read"},
	"git_commit":    {"read"},
	"upload":        {"read"},
}

// hides returns a function that reports which files a call must leave out, or nil if there are none. A
// file is hidden if a rule denies reading it, or requires approval for it and the call itself needed
// none. If no rule covers a file, the call's own decision applies.
func (g *Judge) hides(tool string, checks []check, senders []transcript.Sender) func(path string) bool {
	names := searching[tool]
	if len(names) == 0 || !slices.ContainsFunc(checks, limitsReading) {
		return nil
	}
	yes := g.yes(senders)
	return func(path string) bool {
		for _, name := range names {
			d := g.judge(checks, []permit.Request{{Tool: name, Detail: path}}).Decision
			switch {
			case d.Verdict == permit.Deny && d.List != permit.ListImplicit:
				return true
			case d.Verdict == permit.Ask && !yes && name != tool && g.judge(checks, []permit.Request{{Tool: tool, Detail: path}}).Verdict == permit.Allow:
				return true
			}
		}
		return false
	}
}

// Withholds reports whether a file must not be shown to the model without a tool call: either a rule
// denies reading it, or it is reached through a link and a rule requires approval.
func (g *Judge) Withholds(path string, link bool) bool {
	checks, err := g.checks(g.meant(g.Work.Senders))
	if err != nil || !slices.ContainsFunc(checks, limitsReading) {
		return false
	}
	d := g.judge(checks, []permit.Request{{Tool: "read", Detail: path}}).Decision
	return d.List != permit.ListImplicit && (d.Verdict == permit.Deny || link && d.Verdict == permit.Ask)
}

// limitsReading reports whether a profile has custom rules. The
// built-in profiles treat all files of a place alike.
func limitsReading(c check) bool {
	preset, err := permit.Preset(c.Profile.Name())
	return err != nil || preset != c.Profile
}
