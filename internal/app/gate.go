package app

import (
	"fmt"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/desk"
	"chorus/internal/engine"
	"chorus/internal/permit"
	"chorus/internal/transcript"
)

// gate judges calls by a profile and by what the person at the terminal chose.
type gate struct {
	profile *permit.Profile
	place   permit.JudgeOptions
	choice  *Choice
	work    engine.Work
	kept    func(permit.Judgement, []transcript.Sender) string // by which kept rule it is allowed; nil: none are
}

// Judge implements engine.Gate.
func (g *gate) Judge(q agent.Question, who chat.Principal) desk.Ruling {
	place := g.place
	place.Who.Roles = who.Roles
	j := g.profile.Judge(requests(q), place)
	d := j.Decision
	switch j.Verdict {
	case permit.Allow:
		return desk.Ruling{Verdict: desk.Allow, Rule: d.Rule}
	case permit.Deny:
		return desk.Ruling{Verdict: desk.Deny, Rule: d.Rule, Reason: why(g.profile, d),
			Audit: &desk.Audit{Decision: "deny", Detail: d.List}}
	}
	now := g.choice.snapshot()
	own, kept := now.own(g.work), g.keptBy(j, q)
	switch {
	case g.work.Terms.Yes || own && now.Yes:
		return approved(d, "--yes")
	case own && g.remembered(j):
		return approved(d, "allowed for this session")
	case kept != "":
		return approved(d, kept)
	case !now.canAsk:
		return desk.Ruling{Verdict: desk.End, Rule: d.Rule,
			Reason: fmt.Sprintf("%s must be asked for (profile %s), and there is no terminal to ask on; run it in a terminal, or pass --yes or a wider --permissions", d.Action, g.profile.Name())}
	default:
		return desk.Ruling{Verdict: desk.Pending, Rule: d.Rule, Reason: d.Why}
	}
}

func approved(d permit.Decision, how string) desk.Ruling {
	return desk.Ruling{Verdict: desk.Allow, Rule: d.Rule, Audit: &desk.Audit{Decision: "ask_approved", Detail: how}}
}

// remembered reports that everything that would be asked was allowed before.
func (g *gate) remembered(j permit.Judgement) bool {
	for _, d := range j.Decisions {
		if d.Verdict == permit.Ask && !g.choice.allowed(d.Action) {
			return false
		}
	}
	return true
}

// keptBy says by which rule what would be asked was allowed for good; "" by none.
func (g *gate) keptBy(j permit.Judgement, q agent.Question) string {
	if g.kept == nil {
		return ""
	}
	return g.kept(j, q.Senders)
}

func why(p *permit.Profile, d permit.Decision) string {
	switch d.List {
	case permit.ListCatastrophic:
		return fmt.Sprintf("%s is refused under every profile: %s", d.Action, d.Why)
	case permit.ListDeny:
		return fmt.Sprintf("%s is denied by the rule %s of profile %s", d.Action, d.Rule, p.Name())
	default:
		return fmt.Sprintf("no rule of profile %s allows %s", p.Name(), d.Action)
	}
}

func requests(q agent.Question) []permit.Request {
	if len(q.Touches) == 0 {
		return []permit.Request{{Tool: q.Tool.Spec().Name, Detail: permit.ToolDetail(q.Args)}}
	}
	out := make([]permit.Request, len(q.Touches))
	for i, t := range q.Touches {
		out[i] = permit.Request{Tool: t.Tool, Detail: t.Detail, Command: t.Command}
	}
	return out
}
