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

// Judge judges calls by the rights of everyone whose words a run works on, of the
// channel and of the agent, and by the choices made at the terminal.
type Judge struct {
	Limits *Limits
	Place  permit.JudgeOptions
	Choice *overrides.Thread
	Work   engine.Work
	Kept   func(permit.Judgement, []transcript.Sender) string // returns the kept rules that allow a call, or ""; nil if none are kept
	// Above holds the limits of the parent threads: an agent never does more
	// for another agent than that agent may do itself.
	Above []*Limits
}

// For returns the judge for a thread's next run.
func (g *Gate) For(row journal.Thread, bot *config.Bot, work engine.Work) *Judge {
	home, _ := os.UserHomeDir()
	place := permit.JudgeOptions{Home: g.Home.Dir(), Workspace: row.Dir, UserHome: home, Who: permit.Who{Agent: row.Agent, Channel: settings.HomePlace(row.ID.Transport(), row.Place)}}
	load := func(name string) (*permit.Profile, error) { return g.Rules(bot, name) }
	root, above := g.above(row)
	judge := &Judge{LimitsOf(bot, row, load), place, g.Overrides.For(root), work, g.AllowedFor(row), above}
	judge.setSandboxed(bot)
	return judge
}

// above returns the root thread and the limits of every thread above this one. The choices made in the
// session of the root thread apply to all threads below it. Limits that cannot be read allow nothing.
func (g *Gate) above(row journal.Thread) (chat.ThreadID, []*Limits) {
	var out []*Limits
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	for row.Parent.Thread != "" && len(out) <= engine.MaxDepth {
		parent, err := g.DB.Thread(ctx, row.Parent.Thread)
		if err != nil {
			return row.ID, append(out, nothing(fmt.Errorf("it is not known whom agent %s works for: %w", row.Agent, err)))
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

// readTime bounds how long reading the threads above may take.
const readTime = 10 * time.Second

// nothing returns limits that deny everything because of an error.
func nothing(why error) *Limits { return &Limits{broken: why} }

// checks returns all checks that apply to the words of these senders, in this thread and those above.
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

// setSandboxed records whether the run's commands run in a sandbox, which they must not leave.
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

// askedByHook returns the ruling on a call that a tool hook wants a person to see. What a rule
// or a kept rule allows is asked for as well; what is denied stays denied.
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

// toolHooks takes the place of the rule's name if a hook wants a call approved.
const toolHooks = "toolHooks"

// JudgeDuring rules on an action that a call wants to take while it
// runs. tool and detail name it as rules do.
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

// rule turns a judgement into a ruling. It skips the question if an earlier answer covers it.
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
	switch kept := g.keptBy(j, senders); { // reads a file, so it comes last
	case kept != "":
		return approved(d, kept)
	case !g.Choice.Snapshot().CanAsk:
		return approval.Ruling{Verdict: approval.End, Rule: d.Rule,
			Reason: fmt.Sprintf("%s must be asked for (profile %s), and there is no terminal to ask on; run it in a terminal, or pass --yes or a wider --permissions", d.Action, d.Profile)}
	default:
		return approval.Ruling{Verdict: approval.Pending, Rule: d.Rule, Reason: because(d)}
	}
}

// meant returns the senders with the terms that apply to their words now. Later words of a sender
// inherit the terms of their earlier words where they set none; earlier words never inherit from later
// ones. What a terminal session has chosen since applies to its own words.
func (g *Judge) meant(senders []transcript.Sender) []transcript.Sender {
	now := g.Choice.Snapshot()
	out := make([]transcript.Sender, 0, len(senders))
	for _, s := range senders {
		if now.Own(s) {
			s.Terms.Yes = s.Terms.Yes || now.Yes
			if s.Terms.By != now.By { // the session was resumed, so its present flags apply
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

// judge asks every profile. The strictest decision wins and carries the label of its profile.
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

// Possible returns a function that reports whether any call of a tool could be something other than denied.
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

// Open reports whether nothing limits the senders that the run begins with.
func (g *Judge) Open() bool {
	checks, err := g.checks(g.meant(g.Work.Senders))
	return err == nil && len(checks) == 1 && g.Limits.Allows(checks[0])
}

// Granted returns the terms that remain once the rights of those who asked for them are applied.
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

// own reports whether all of these words belong to the session of this process.
func (g *Judge) own(senders []transcript.Sender) bool {
	now := g.Choice.Snapshot()
	for _, s := range senders {
		if !now.Own(s) {
			return false
		}
	}
	return len(senders) > 0
}

// yes reports whether every sender wants all approvals answered yes and may
// do so. One sender's yes does not count for another.
func (g *Judge) yes(senders []transcript.Sender) bool {
	for _, s := range senders {
		if !s.Terms.Yes || !g.Limits.mayAnswer(s) {
			return false
		}
	}
	return len(senders) > 0
}

// mayAnswer reports whether a sender may approve their own request alone.
func (l *Limits) mayAnswer(s transcript.Sender) bool {
	if s.Principal.Kind == chat.LocalUser && s.Principal.For == nil {
		return true
	}
	if p := s.Principal; p.Kind == chat.OtherAgent && p.For != nil { // those for whom the agent works must each be allowed to
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

// mayNotGive returns why these senders may not have the agent change its own rights, or "". They may
// only give a profile that they may give to an agent. Any other setting that affects rights could
// widen them without limit, so it takes somebody who has them all.
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
			continue // does not affect rights
		case "permissions":
			given = value
		}
		if may, why := g.Limits.Grants.MayGive(given, givers...); !may {
			return fmt.Sprintf("the agent's %s cannot be changed: %s", what, why)
		}
	}
	return ""
}

// selfEdit splits an agent's edit of itself into the setting and its new value.
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

// remembered reports whether every action that would be asked about was allowed earlier in this session.
func (g *Judge) remembered(j permit.Judgement) bool {
	for _, d := range j.Decisions {
		if d.Verdict == permit.Ask && !g.Choice.Allowed(d.Action) {
			return false
		}
	}
	return true
}

// keptBy names the kept rule that allows what would be asked, or returns "".
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

// because returns why approval is needed, and names the profile if it is not the run's own.
func because(d permit.Decision) string {
	if _, _, others := strings.Cut(d.Profile, " of "); !others {
		return d.Why
	}
	return strings.TrimPrefix(d.Why+"; profile "+d.Profile+" wants it asked", "; ")
}

// Requests turns a call into the permission requests that rules are matched against.
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
