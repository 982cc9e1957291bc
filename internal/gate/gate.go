package gate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/overrides"
	"chorus/internal/permit"
	"chorus/internal/settings"
	"chorus/internal/transcript"
)

// Judge judges calls by the rights of everybody on whose words a run works, of the
// channel and of the agent, and by what the person at the terminal chose.
type Judge struct {
	Limits *Limits
	Place  permit.JudgeOptions
	Choice *overrides.Thread
	Work   engine.Work
	Kept   func(permit.Judgement, []transcript.Sender) string // by which kept rule it is allowed; nil: none are
	// Above are the limits of the threads whose agents began this one: nobody does more for another than that one may.
	Above []*Limits
}

// For is the judge of a thread's next run.
func (g *Gate) For(row journal.Thread, bot *config.Bot, work engine.Work) *Judge {
	home, _ := os.UserHomeDir()
	place := permit.JudgeOptions{Home: g.Home.Dir(), Workspace: row.Dir, UserHome: home, Who: permit.Who{Agent: row.Agent, Channel: settings.HomePlace(row.ID.Transport(), row.Place)}}
	load := func(name string) (*permit.Profile, error) { return g.Rules(bot, name) }
	root, above := g.above(row)
	judge := &Judge{LimitsOf(bot, row, load), place, g.Overrides.For(root), work, g.AllowedFor(row), above}
	judge.setSandboxed(bot)
	return judge
}

// above are the limits of those for whom a thread's agent works, and the thread at the top: what its session chose
// holds for all below it. Limits that cannot be read allow nothing.
func (g *Gate) above(row journal.Thread) (chat.ThreadID, []*Limits) {
	var out []*Limits
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	for row.Parent.Thread != "" && len(out) <= engine.MaxDepth {
		parent, err := g.DB.Thread(ctx, row.Parent.Thread)
		if err != nil {
			return row.ID, append(out, nothing(fmt.Errorf("whom agent %s works for is not known: %w", row.Agent, err)))
		}
		bot, err := g.Settings.BotFor(parent)
		if err != nil {
			return row.ID, append(out, nothing(err))
		}
		out = append(out, LimitsOf(bot, parent, func(name string) (*permit.Profile, error) { return g.Rules(bot, name) }))
		row = parent
	}
	return row.ID, out
}

// readTime bounds the reading of the threads above.
const readTime = 10 * time.Second

// nothing are limits that allow nothing, because of an error.
func nothing(why error) *Limits { return &Limits{broken: why} }

// checks are all that hold for the words of these people, here and above.
func (g *Judge) checks(senders []transcript.Sender) ([]check, error) {
	out, err := g.Limits.Checks(senders)
	for _, l := range g.Above {
		if err != nil {
			break
		}
		var more []check
		more, err = l.Checks(senders)
		for _, c := range more {
			out = add(out, c)
		}
	}
	if err != nil {
		return nil, err
	}
	return g.Limits.restricting(out), nil
}

// setSandboxed finds out whether the run's commands run in a sandbox, which nothing may lead out of.
func (g *Judge) setSandboxed(bot *config.Bot) {
	g.Place.Sandboxed = settings.Sandboxed(bot, g.Work.Terms.Sandbox, cmp.Or(g.Granted(g.Work.Terms).Profile, bot.Permissions))
}

// Judge rules on a call.
func (g *Judge) Judge(q agent.ProposedCall, who chat.Principal) approval.Ruling {
	senders := q.Senders
	if len(senders) == 0 {
		senders = []transcript.Sender{{Principal: who, Terms: g.Work.Terms, Seq: g.Work.Seq}}
	}
	asked := Requests(q)
	own := g.own(senders)
	senders = g.meant(senders)
	if why := g.mayNotGive(asked, senders); why != "" {
		return refused(why, "self-edit")
	}
	checks, err := g.checks(senders)
	if err != nil {
		return refused(err.Error(), "rights")
	}
	judged := g.judge(checks, asked)
	ruling := g.rule(judged, senders, own)
	if q.Ask != "" {
		ruling = g.askedByHook(q.Ask, judged, ruling, senders)
	}
	if ruling.Verdict == approval.Pending {
		ruling.Assessment = Assess(judged, string(q.Tool.Spec().Risk))
	}
	if name := q.Tool.Spec().Name; name == "web_fetch" {
		ruling.Hides = g.redirects(asked, checks, senders, own)
	} else {
		ruling.Hides = g.hides(name, checks, senders)
	}
	return ruling
}

// askedByHook is the ruling on a call that a tool hook wants a person to look at: what rules allow, and what somebody has
// allowed for longer, is asked for all the same. What is denied stays denied.
func (g *Judge) askedByHook(why string, j permit.Judgement, ruling approval.Ruling, senders []transcript.Sender) approval.Ruling {
	switch {
	case ruling.Verdict == approval.Pending:
		ruling.Reason = why + "; " + ruling.Reason
		return ruling
	case ruling.Verdict != approval.Allow:
		return ruling
	case g.yes(senders):
		return approved(j.Decision, "--yes; "+why)
	case !g.Choice.Snapshot().CanAsk:
		return approval.Ruling{Verdict: approval.End, Rule: toolHooks, Reason: why + ", and there is no terminal to ask on; run it in a terminal, or pass --yes"}
	default:
		return approval.Ruling{Verdict: approval.Pending, Rule: toolHooks, Reason: why}
	}
}

// toolHooks stands where the rule does that asks, of a call that a hook wants asked for.
const toolHooks = "toolHooks"

// JudgeDuring rules on something that a call wants to do while it runs, named as rules name it.
func (g *Judge) JudgeDuring(tool, detail string) approval.Ruling {
	own := g.own(g.Work.Senders)
	senders := g.meant(g.Work.Senders)
	checks, err := g.Limits.Checks(senders)
	if err != nil {
		return refused(err.Error(), "rights")
	}
	judged := g.judge(checks, []permit.Request{{Tool: tool, Detail: detail}})
	ruling := g.rule(judged, senders, own)
	if ruling.Verdict == approval.Pending {
		ruling.Assessment = Assess(judged, string(permit.MediumRisk))
	}
	return ruling
}

// rule turns a judgement into a ruling: what would be asked may have been answered before.
func (g *Judge) rule(j permit.Judgement, senders []transcript.Sender, own bool) approval.Ruling {
	d := j.Decision
	switch j.Verdict {
	case permit.Allow:
		return approval.Ruling{Verdict: approval.Allow, Rule: d.Rule}
	case permit.Deny:
		return approval.Ruling{Verdict: approval.Deny, Rule: d.Rule, Reason: why(d), Audit: &approval.Audit{Decision: "deny", Detail: d.List}}
	}
	if g.yes(senders) {
		return approved(d, "--yes")
	}
	if own && g.remembered(j) {
		return approved(d, "allowed for this session")
	}
	switch kept := g.keptBy(j, senders); { // reads a file: only where nothing else says yes
	case kept != "":
		return approved(d, kept)
	case !g.Choice.Snapshot().CanAsk:
		return approval.Ruling{Verdict: approval.End, Rule: d.Rule,
			Reason: fmt.Sprintf("%s must be asked for (profile %s), and there is no terminal to ask on; run it in a terminal, or pass --yes or a wider --permissions", d.Action, d.Profile)}
	default:
		return approval.Ruling{Verdict: approval.Pending, Rule: d.Rule, Reason: because(d)}
	}
}

// meant is on which terms people's words count now. Somebody's further words are on the
// terms of their earlier ones, where they say nothing else; never the other way round.
// What a session at the terminal has said since counts for the words that are its own.
func (g *Judge) meant(senders []transcript.Sender) []transcript.Sender {
	now := g.Choice.Snapshot()
	out := make([]transcript.Sender, 0, len(senders))
	for _, s := range senders {
		if now.Own(s) {
			s.Terms.Yes = s.Terms.Yes || now.Yes
			if s.Terms.By != now.By { // taken up again: with the flags of now
				s.Terms.Profile = cmp.Or(now.Profile, s.Terms.Profile)
			}
		}
		for _, earlier := range out {
			if earlier.Principal.Same(s.Principal) {
				s.Terms.Yes = s.Terms.Yes || earlier.Terms.Yes
				s.Terms.Profile = cmp.Or(s.Terms.Profile, earlier.Terms.Profile)
			}
		}
		out = append(out, s)
	}
	return out
}

// judge asks every profile; the strictest of them decides, and says whose it is.
func (g *Judge) judge(checks []check, asked []permit.Request) permit.Judgement {
	js := make([]permit.Judgement, len(checks))
	for i, c := range checks {
		place := g.Place
		place.Who.Roles = c.roles
		js[i] = c.Profile.Judge(asked, place)
		js[i].Decision.Profile = c.label()
		for k := range js[i].Decisions {
			js[i].Decisions[k].Profile = c.label()
		}
	}
	return permit.Strictest(js...)
}

// Possible reports whether some call of a tool could be anything but denied.
func (g *Judge) Possible() func(tool string) bool {
	checks, err := g.checks(g.meant(g.Work.Senders))
	return func(tool string) bool {
		for _, c := range checks {
			if !c.Profile.Possible(tool) {
				return false
			}
		}
		return err == nil
	}
}

// Open reports that nothing limits those whose words the run begins with.
func (g *Judge) Open() bool {
	checks, err := g.checks(g.meant(g.Work.Senders))
	return err == nil && len(checks) == 1 && g.Limits.Allows(checks[0])
}

// Granted is what of the terms of a run holds, given who asked for them.
func (g *Judge) Granted(t chat.Terms) chat.Terms {
	var people []chat.Principal
	for _, s := range g.Work.Senders {
		people = append(people, s.Principal)
	}
	t.Yes = g.yes(g.meant(g.Work.Senders))
	if may, _ := g.Limits.Grants.MayGive(t.Profile, people...); !may && !g.Limits.Grants.Narrower(t.Profile, g.Limits.Bot.Permissions) {
		t.Profile = ""
	}
	return t
}

// own reports that all of these words are the business of the session in this process.
func (g *Judge) own(senders []transcript.Sender) bool {
	now := g.Choice.Snapshot()
	for _, s := range senders {
		if !now.Own(s) {
			return false
		}
	}
	return len(senders) > 0
}

// yes reports that everybody whose words these are wants every approval answered yes,
// and that each of them may: one's yes is no answer for another.
func (g *Judge) yes(senders []transcript.Sender) bool {
	for _, s := range senders {
		if !s.Terms.Yes || !g.Limits.mayAnswer(s) {
			return false
		}
	}
	return len(senders) > 0
}

// mayAnswer reports whether somebody's yes to their own approval is enough.
func (l *Limits) mayAnswer(s transcript.Sender) bool {
	if s.Principal.Kind == chat.LocalUser && s.Principal.For == nil {
		return true
	}
	if p := s.Principal; p.Kind == chat.OtherAgent && p.For != nil { // it is the yes of those for whom the agent works
		for _, who := range append([]chat.Principal{*p.For}, p.And...) {
			if !l.mayAnswer(transcript.Sender{Principal: who, Terms: s.Terms, Seq: s.Seq}) {
				return false
			}
		}
		return true
	}
	by, _ := l.Bot.Asked(cmp.Or(s.Terms.Profile, l.Bot.Permissions), "by")
	state, err := approval.Weigh(approval.Approval{AskedBy: s.Principal, Who: by}, s.Principal, true)
	return err == nil && state == approval.Approved
}

// mayNotGive says why these people may not have the agent change what it may do itself.
// A profile is given only by those who may give it; whatever else decides over rights
// could widen them in any way, and takes somebody who has them all.
func (g *Judge) mayNotGive(asked []permit.Request, senders []transcript.Sender) string {
	var givers []chat.Principal
	for _, s := range senders {
		givers = append(givers, s.Principal)
	}
	for _, r := range asked {
		what, value, ok := selfEdit(r)
		if !ok {
			continue
		}
		given := Everything
		switch what {
		case "docs", "system_prompt", "model", "web_search":
			continue // decide over no rights
		case "permissions":
			given = value
		}
		if may, why := g.Limits.Grants.MayGive(given, givers...); !may {
			return fmt.Sprintf("the agent's %s cannot be changed: %s", what, why)
		}
	}
	return ""
}

// selfEdit takes an edit of the agent by itself apart: what, and to which value.
func selfEdit(r permit.Request) (what, value string, ok bool) {
	detail := r.Detail
	if op, old := strings.CutPrefix(r.Tool, "self_edit_"); old {
		detail = op + " " + detail
	} else if r.Tool != "self_edit" {
		return "", "", false
	}
	what, value, _ = strings.Cut(strings.TrimSpace(detail), " ")
	return what, strings.TrimSpace(value), true
}

func refused(why, detail string) approval.Ruling {
	return approval.Ruling{Verdict: approval.Deny, Reason: why, Audit: &approval.Audit{Decision: "deny", Detail: detail}}
}

func approved(d permit.Decision, how string) approval.Ruling {
	return approval.Ruling{Verdict: approval.Allow, Rule: d.Rule, Audit: &approval.Audit{Decision: "ask_approved", Detail: how}}
}

// remembered reports that everything that would be asked was allowed before.
func (g *Judge) remembered(j permit.Judgement) bool {
	for _, d := range j.Decisions {
		if d.Verdict == permit.Ask && !g.Choice.Allowed(d.Action) {
			return false
		}
	}
	return true
}

// keptBy says by which rule what would be asked was allowed for good; "" by none.
func (g *Judge) keptBy(j permit.Judgement, senders []transcript.Sender) string {
	if g.Kept == nil {
		return ""
	}
	return g.Kept(j, senders)
}

func why(d permit.Decision) string {
	switch d.List {
	case permit.ListCatastrophic:
		return fmt.Sprintf("%s is refused under every profile: %s", d.Action, d.Why)
	case permit.ListDeny:
		return fmt.Sprintf("%s is denied by the rule %s of profile %s", d.Action, d.Rule, d.Profile)
	default:
		return fmt.Sprintf("no rule of profile %s allows %s", d.Profile, d.Action)
	}
}

// because says why something is asked; and under whose profile, if it is not the run's.
func because(d permit.Decision) string {
	if _, _, others := strings.Cut(d.Profile, " of "); !others {
		return d.Why
	}
	return strings.TrimPrefix(d.Why+"; profile "+d.Profile+" wants it asked", "; ")
}

// Requests is what a call touches, for the rules.
func Requests(q agent.ProposedCall) []permit.Request {
	if len(q.Touches) == 0 {
		return []permit.Request{{Tool: q.Tool.Spec().Name, Detail: permit.ToolDetail(q.Args)}}
	}
	out := make([]permit.Request, len(q.Touches))
	for i, t := range q.Touches {
		out[i] = permit.Request{Tool: t.Tool, Detail: t.Detail, Command: t.Command, Git: t.Git}
	}
	return out
}
