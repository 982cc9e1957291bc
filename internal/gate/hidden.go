package gate

import (
	"slices"

	"chorus/internal/permit"
	"chorus/internal/transcript"
)

// searching are the tools that look at files which their call does not name, or show parts of those that they change, and under
// which names a file must be allowed so that they may.
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

// hides says which files a call of a tool must leave out; nil: none. A rule that denies reading a file counts, and one
// that wants it asked, unless the call itself was asked for. Where no rule says anything of a file, the call decides.
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

// Withholds reports a file that must not be put before the model without a call: a rule denies reading it; or it is
// reached by a link and a rule wants it asked.
func (g *Judge) Withholds(path string, link bool) bool {
	checks, err := g.checks(g.meant(g.Work.Senders))
	if err != nil || !slices.ContainsFunc(checks, limitsReading) {
		return false
	}
	d := g.judge(checks, []permit.Request{{Tool: "read", Detail: path}}).Decision
	return d.List != permit.ListImplicit && (d.Verdict == permit.Deny || link && d.Verdict == permit.Ask)
}

// limitsReading reports a profile with rules of somebody's own: the built-in ones treat all files of a place alike.
func limitsReading(c check) bool {
	preset, err := permit.Preset(c.Profile.Name())
	return err != nil || preset != c.Profile
}
