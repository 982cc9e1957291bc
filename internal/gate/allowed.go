package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/permit/always"
	"chorus/internal/transcript"
)

// whose returns the grantee of a rule that by keeps in this thread: the
// person, the agent, and where the rule holds.
func whose(by chat.Principal, row journal.Thread) always.Grantee {
	w := always.Grantee{By: by.String(), Agent: row.Agent, Dir: row.Dir}
	if row.ID.Transport() != "cli" { // a terminal thread is identified by its directory alone
		w.Channel = row.ID.Transport() + ":" + row.Place
	}
	return w
}

// AllowedFor returns the check that a thread's gate makes before it asks people. The check
// names the kept rules that allow a call, or returns "". Kept rules apply only if every
// sender is the person who gave them and acts for nobody else.
func (g *Gate) AllowedFor(row journal.Thread) func(permit.Judgement, []transcript.Sender) string {
	return func(j permit.Judgement, senders []transcript.Sender) string {
		if len(senders) == 0 {
			return ""
		}
		by := senders[0].Principal
		for _, s := range senders {
			if s.Principal.For != nil || s.Principal.String() != by.String() {
				return ""
			}
		}
		used, ok := g.AllowedRules().Allow(j, whose(by, row))
		if !ok {
			return ""
		}
		var names []string
		for _, k := range used {
			names = append(names, k.ID+" ("+strings.Join(k.Rules, ", ")+")")
		}
		return Shortened("always allowed by " + by.String() + ", rule " + strings.Join(names, ", "))
	}
}

// judged judges the actions of an approval again, the same way their run does for whoever asked.
func (gate *Gate) judged(ctx context.Context, q approval.Approval) (permit.Judgement, journal.Thread, error) {
	row, err := gate.DB.Thread(ctx, q.Thread)
	if err != nil {
		return permit.Judgement{}, row, err
	}
	bot, err := gate.Settings.BotFor(row)
	if err != nil {
		return permit.Judgement{}, row, err
	}
	sender, err := gate.askerOf(ctx, q)
	if err != nil {
		return permit.Judgement{}, row, err
	}
	g := gate.For(row, bot, engine.Work{Terms: sender.Terms, Seq: sender.Seq})
	checks, err := g.checks(g.meant([]transcript.Sender{sender}))
	if err != nil {
		return permit.Judgement{}, row, err
	}
	return g.judge(checks, asRequests(q)), row, nil
}

// askerOf returns whoever asked for this approval, with the terms their run began with.
func (g *Gate) askerOf(ctx context.Context, q approval.Approval) (transcript.Sender, error) {
	out := transcript.Sender{Principal: q.AskedBy}
	at, err := g.DB.LastRunAt(ctx, q.Thread)
	if err != nil {
		return out, err
	}
	events, err := g.DB.Events(ctx, q.Thread, at-1, 1)
	if err != nil || len(events) == 0 {
		return out, err
	}
	if started, ok := events[0].Body.(chat.RunStarted); ok && started.Run == q.Run {
		out.Terms, out.Seq = started.Terms, at
	}
	return out, nil
}

// asRequests turns the actions of a stored approval into permission requests.
func asRequests(q approval.Approval) []permit.Request {
	var out []permit.Request
	facts := approval.FactsOf(q.Bound)
	for _, action := range q.Actions {
		r := permit.RequestOf(action)
		r.Git = slices.Contains(facts.Git, action)
		if !facts.Declared && r.Command == "" && json.Valid([]byte(r.Detail)) {
			r.Detail = permit.ToolDetail([]byte(r.Detail))
		}
		out = append(out, r)
	}
	return out
}

// Propose returns what answering an approval with "always" would mean
// for this person, or why they cannot answer it so.
func (g *Gate) Propose(ctx context.Context, id string, by chat.Principal) (approval.Always, error) {
	q, err := g.DB.Approval(ctx, id)
	if err != nil {
		return approval.Always{}, err
	}
	out, _, err := g.propose(ctx, q, by)
	return out, err
}

func (g *Gate) propose(ctx context.Context, q approval.Approval, by chat.Principal) (approval.Always, journal.Thread, error) {
	j, row, err := g.judged(ctx, q)
	if err != nil {
		return approval.Always{}, row, err
	}
	where := row.Dir
	if strings.HasSuffix(filepath.ToSlash(where), "/"+row.ID.Dir()+"/scratch") { // skip long path names that tell people nothing
		where = "the folder of this conversation"
	}
	out := approval.Always{Where: fmt.Sprintf("for you alone, with agent %s in %s", row.Agent, where)}
	if out.Never = g.Never(q, by); out.Never != "" {
		return out, row, nil
	}
	history, err := g.askedBefore(ctx, q)
	if err != nil {
		return out, row, err
	}
	for _, p := range always.Propose(j, append(history, always.Similar(j)...)...) {
		out.Steps = append(out.Steps, approval.Step{Rules: p.Rules, Means: p.Means, Also: firstFew(p.Also, 4), Still: firstFew(p.Still, 3)})
	}
	if len(out.Steps) == 0 {
		out.Never = always.Never(j)
	}
	return out, row, nil
}

// Never returns why this person can never allow the call for good, or "".
func (g *Gate) Never(q approval.Approval, by chat.Principal) string {
	state, err := approval.Weigh(q, by, true)
	each := approval.FactsOf(q.Bound).Each
	switch {
	case err != nil:
		return err.Error()
	case approval.IsQuestion(q.Actions):
		return "it is a question, and no rule can answer it"
	case each != "":
		return "no rule can allow this call, so it is asked each time: " + each
	case state != approval.Approved || q.NeedsTwo():
		return "two people must say yes each time"
	case q.AskedBy.String() != by.String() || q.AskedBy.For != nil:
		return "somebody else asked for it, and what you allow for good applies only to you"
	}
	for _, action := range q.Actions {
		if g.Logs.Redactor().Text(action) != action {
			return "it contains a secret, and a rule would store that"
		}
	}
	return ""
}

// maxAsked is how many earlier approvals are searched for samples.
const maxAsked = 50

// askedBefore lists what the same agent asked the same person before, newest first.
func (g *Gate) askedBefore(ctx context.Context, q approval.Approval) ([]string, error) {
	list, err := g.DB.Approvals(ctx, approval.Filter{Newest: true, Limit: maxAsked})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, x := range list {
		if x.ID == q.ID || x.Thread.Agent() != q.Thread.Agent() || x.AskedBy.String() != q.AskedBy.String() || x.Dir != q.Dir {
			continue
		}
		for _, action := range x.Actions {
			out = append(out, strings.TrimPrefix(action, "tool:bash:"))
		}
	}
	return out, nil
}

// firstFew returns at most n items of a list.
func firstFew(list []string, n int) []string { return list[:min(len(list), n)] }

// Keep approves a call and stores the rules. It approves first: if somebody
// else has already answered, no rule must be left behind.
func (g *Gate) Keep(ctx context.Context, id string, by chat.Principal, rules []string) error {
	q, err := g.DB.Approval(ctx, id)
	if err != nil {
		return err
	}
	offer, row, err := g.propose(ctx, q, by)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(offer.Steps, func(s approval.Step) bool { return slices.Equal(s.Rules, rules) })
	if at < 0 {
		return errors.New(strings.TrimSuffix("these rules are not offered for this call: "+offer.Never, ": "))
	}
	if _, err := g.ListAllowed(); err != nil {
		return fmt.Errorf("nothing was answered or kept, because the file has an error: %w; fix it, or remove it to start over", err)
	}
	if err := g.Engine(nil).Answer(ctx, id, by, true, ""); err != nil {
		return err
	}
	w := whose(by, row)
	entry := always.Entry{By: w.By, Agent: w.Agent, Dir: w.Dir, Channel: w.Channel, At: time.Now().UTC().Truncate(time.Second),
		Approval: q.ID, Means: offer.Steps[at].Means, Rules: rules}
	if err := g.AddAllowed(ctx, entry, by); err != nil {
		return fmt.Errorf("it was approved, but the rule could not be kept: %w", err)
	}
	return nil
}

// AddAllowed adds an entry and records in the audit log who did it.
func (g *Gate) AddAllowed(ctx context.Context, entry always.Entry, by chat.Principal) error {
	known := false
	entry.ID = entry.Name()
	err := g.changeAllowed(ctx, func(list []always.Entry) ([]always.Entry, error) {
		if known = slices.ContainsFunc(list, func(k always.Entry) bool { return k.ID == entry.ID }); known {
			return list, nil
		}
		return append(list, entry), nil
	})
	if err != nil || known {
		return err
	}
	hide := g.Logs.Redactor()
	return g.DB.Audit(ctx, approval.Audit{Agent: entry.Agent, Principal: by, Action: "permit allowed add", Decision: Changed,
		Detail: hide.Text(Shortened(keptDetail(entry)))})
}

func keptDetail(k always.Entry) string {
	text := fmt.Sprintf("%s for %s in %s: %s", k.ID, k.By, k.Dir, strings.Join(k.Rules, ", "))
	if k.Approval != "" {
		text += "; approval " + k.Approval
	}
	return text
}
