package profiles

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/service"
	"chorus/internal/settings"
	"chorus/internal/store/audit"
)

// Limits of a trial.
const (
	maxTrialChanges = 200
	maxTrialSame    = 20
	auditPage       = 500
	trialTime       = 5 * time.Second // the audit log may have millions of lines; the result covers what was read by then
)

// TryProfile implements the operation of that name.
func (o *Handler) TryProfile(ctx context.Context, by operation.Caller, in operations.ProfileDraft) (operations.ProfileTrial, error) {
	_, now, there, err := o.rulesOf(in.Name)
	if err != nil {
		return operations.ProfileTrial{}, err
	}
	wished := drafted(now, in.Allow, in.Ask, in.Deny)
	if err := checkRules(wished); err != nil {
		return operations.ProfileTrial{}, err
	}
	if from := in.From; from != "" || !there {
		var known bool
		if _, now, known, err = o.rulesOf(cmp.Or(from, service.StandardProfile)); err != nil {
			return operations.ProfileTrial{}, err
		}
		if !known {
			return operations.ProfileTrial{}, operation.Errorf(operation.NotFound, "there is no permission profile %.64q", from)
		}
	}
	before, err := permit.Compile(in.Name, now)
	if err != nil {
		return operations.ProfileTrial{}, err
	}
	after, err := permit.Compile(in.Name, wished)
	if err != nil {
		return operations.ProfileTrial{}, err
	}
	t := &trial{o: o, before: before, after: after, calls: map[pastCall]*operations.TrialCall{}, dirs: map[chat.ThreadID]string{}, used: map[string]bool{}}
	if t.userHome, err = os.UserHomeDir(); err != nil {
		t.userHome = "" // then ~ has no meaning
	}
	if err := t.read(ctx, in.Agent, cmp.Or(in.Last, 2000)); err != nil {
		return operations.ProfileTrial{}, err
	}
	out := t.result()
	out.Draft.Deny, out.Draft.Allow, out.Draft.Ask = inWords(wished.Deny), inWords(wished.Allow), inWords(wished.Ask)
	for _, rule := range slices.Concat(out.Draft.Deny, out.Draft.Allow, out.Draft.Ask) {
		if !t.used[patternOf(rule.Rule)] {
			out.Unused = append(out.Unused, rule)
		}
	}
	return out, nil
}

// patternOf returns the expression of a rule, which decisions name.
func patternOf(text string) string {
	if r, err := permit.ParseRule(text); err == nil {
		return r.Rule
	}
	return text
}

// pastCall is a past call; repeated calls are evaluated once.
type pastCall struct{ action, agent, channel, dir string }

type trial struct {
	o             *Handler
	before, after *permit.Profile
	userHome      string
	calls         map[pastCall]*operations.TrialCall
	order         []*operations.TrialCall // the newest first
	dirs          map[chat.ThreadID]string
	used          map[string]bool // expressions that decided something
	out           operations.ProfileTrial
}

// read evaluates the newest decisions of the audit log again.
func (t *trial) read(ctx context.Context, agent string, last int) error {
	until := time.Now().Add(trialTime)
	f := audit.Filter{Agent: agent, Limit: auditPage}
	for seen := 0; seen < last && time.Now().Before(until); {
		list, err := t.o.app.DB.AuditLog(ctx, f)
		if err != nil {
			return err
		}
		for _, line := range list {
			if seen++; seen > last {
				break
			}
			if decided(line.Audit) {
				if err := t.judge(ctx, line); err != nil {
					return err
				}
			}
		}
		if len(list) < auditPage {
			return nil
		}
		f.Before = list[len(list)-1].ID
	}
	return nil
}

// decided reports whether a line is about a call that rules decided.
func decided(a approval.Audit) bool {
	return strings.HasPrefix(a.Action, "tool:") && slices.Contains([]string{"allow", "ask_approved", "ask_denied", "deny"}, a.Decision)
}

func (t *trial) judge(ctx context.Context, line audit.Line) error {
	dir, known := t.dirs[line.Thread]
	if !known && line.Thread != "" {
		row, err := t.o.app.DB.Thread(ctx, line.Thread)
		if err == nil {
			dir = row.Dir
		}
		t.dirs[line.Thread] = dir // "" if it is unknown
	}
	channel := settings.HomePlace(line.Thread.Transport(), line.Thread.Place())
	key := pastCall{line.Action, line.Agent, channel, dir}
	call := t.calls[key]
	if call == nil {
		opt := permit.JudgeOptions{Home: t.o.app.Home.Dir(), Workspace: dir, UserHome: t.userHome, Who: permit.Who{Agent: line.Agent, Channel: channel, Roles: line.Principal.Roles}}
		was := t.before.Judge([]permit.Request{permit.RequestOf(line.Action)}, opt)
		is := t.after.Judge([]permit.Request{permit.RequestOf(line.Action)}, opt)
		for _, d := range is.Decisions {
			t.used[d.Rule] = true
		}
		words, _ := permit.Words(is.Decision.Rule) // it was compiled
		if is.Decision.Rule == "" {
			words = ""
		}
		hide := t.o.app.Logs.Redactor()
		call = &operations.TrialCall{Action: hide.Text(line.Action), At: line.At, Agent: line.Agent, Session: line.Thread.Thread(), Before: was.Verdict.String(), After: is.Verdict.String(),
			Rule: is.Decision.Rule, Words: words, Why: is.Decision.Why}
		t.calls[key] = call
		t.order = append(t.order, call)
	}
	call.Times++
	t.out.Looked++
	t.out.Since = line.At
	count(&t.out.Before, call.Before)
	count(&t.out.After, call.After)
	return nil
}

func count(c *operations.TrialCounts, verdict string) {
	switch verdict {
	case permit.Allow.String():
		c.Allow++
	case permit.Ask.String():
		c.Ask++
	default:
		c.Deny++
	}
}

func (t *trial) result() operations.ProfileTrial {
	out := t.out
	out.Changes, out.Same, out.Unused = []operations.TrialCall{}, []operations.TrialCall{}, []operations.RuleWords{}
	for _, call := range t.order {
		switch {
		case call.Before != call.After:
			out.Changes = append(out.Changes, *call)
		case len(out.Same) < maxTrialSame:
			out.Same = append(out.Same, *call)
		}
	}
	slices.SortStableFunc(out.Changes, func(a, b operations.TrialCall) int { return b.Times - a.Times })
	if n := len(out.Changes) - maxTrialChanges; n > 0 {
		out.Changes, out.More = out.Changes[:maxTrialChanges], n
	}
	return out
}
