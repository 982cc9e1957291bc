package chatcommand

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/room/render"
	"chorus/internal/text"
)

// Limits of what /why reads of a run, and of each part that it shows.
const (
	maxWhyEvents = 5000
	maxWhyRules  = 20
	maxWhyLine   = 200
)

// why explains an answer, by default the last one: who asked, what the agent knew and was shown, what was allowed, what
// it read and changed, and what it cost.
func (t *turn) why(ctx context.Context, which string) (string, error) {
	if len(t.session.Runs) == 0 {
		return "nothing has been answered here yet", nil
	}
	at, err := t.answerAt(which)
	if err != nil {
		return "", err
	}
	told, err := operations.GetTimeline.Call(ctx, t.to, t.by, operations.RunAt{ID: t.session.ID, At: at})
	if err != nil {
		return "", err
	}
	events, err := t.runEvents(ctx, told.Run, told.Seq)
	if err != nil {
		return "", err
	}
	run := render.StepsOf(events, func(name string, _ []byte) string { return name })
	var pairs []string
	add := func(name, value string) {
		pairs = append(pairs, name, text.Clip(text.OneLine(value), maxWhyLine))
	}
	for _, seq := range run.Prompts {
		add("asked", t.promptWords(ctx, seq))
	}
	add("answered by", fmt.Sprintf("%s on %s, permissions %s", t.session.Agent, run.Model, cmp.Or(run.Profile, "none")))
	add("outcome", whyOutcome(run))
	for _, words := range append(run.Dropped, run.Left...) {
		add("left out", words)
	}
	t.decisions(ctx, run.Run, add)
	add("knew", strings.Join(told.Knew, ", "))
	add("reminded of", strings.Join(run.Noted, ", "))
	add("read", strings.Join(run.Read, ", "))
	add("changed", strings.Join(run.Changed, ", "))
	add("tokens", render.Tokens(run.Usage))
	if run.End != nil {
		add("cost", cmp.Or(render.Money(run.End.Cost), "nothing"))
	}
	return rows(pairs...), nil
}

// answerAt returns the number of an event of the answer that is meant: 2 is the second to last answer, #120 the answer
// of event 120, as in page addresses that end with #e120.
func (t *turn) answerAt(which string) (int64, error) {
	if _, after, ok := strings.Cut(which, "#"); ok {
		if seq, err := strconv.ParseInt(strings.TrimPrefix(after, "e"), 10, 64); err == nil && seq > 0 {
			return seq, nil
		}
		return 0, operation.InvalidField("line", "%.80q is not the address of an answer; one ends with # and a number", which)
	}
	if which == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(which)
	if err != nil || n < 1 {
		return 0, operation.InvalidField("line", "/why takes a number, such as 2 for the second to last answer, or the address of an answer, which ends with #e and a number")
	}
	if n > len(t.session.Runs) {
		return 0, operation.InvalidField("line", "only the last %d answers can be counted from the end; use the address of older ones, such as #e12", len(t.session.Runs))
	}
	return t.session.Runs[n-1].Seq, nil
}

// runEvents returns the events of a run that begins at a number.
func (t *turn) runEvents(ctx context.Context, run string, seq int64) (out []chat.Event, err error) {
	for q := (operations.EventQuery{ID: t.session.ID, After: max(seq-1, 0), Limit: 500}); len(out) < maxWhyEvents; {
		page, err := operations.Events.Call(ctx, t.to, t.by, q)
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Items {
			body, err := chat.DecodeBody(chat.Kind(raw.Kind), raw.Body)
			if err != nil {
				continue // from a newer version of Chorus
			}
			out = append(out, chat.Event{Seq: raw.Seq, At: raw.At, Run: run, Body: body})
			if end, over := body.(chat.RunEnded); over && end.Run == run {
				return out, nil // later events belong to other runs
			}
		}
		if page.Next == "" {
			break
		}
		if q.After, err = strconv.ParseInt(page.Next, 10, 64); err != nil {
			return nil, fmt.Errorf("the next page: %w", err)
		}
	}
	return out, nil
}

// promptWords returns the text of a prompt.
func (t *turn) promptWords(ctx context.Context, seq int64) string {
	page, err := operations.Events.Call(ctx, t.to, t.by, operations.EventQuery{ID: t.session.ID, After: max(seq-1, 0), Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return ""
	}
	body, err := chat.DecodeBody(chat.Kind(page.Items[0].Kind), page.Items[0].Body)
	if err != nil {
		return ""
	}
	switch b := body.(type) {
	case chat.Received:
		return cmp.Or(b.From.Name, b.From.ID) + ": " + b.Blocks.Text()
	case chat.Steered:
		return cmp.Or(b.From.Name, b.From.ID) + ", while it worked: " + b.Blocks.Text()
	}
	return ""
}

// decisions lists what was allowed or denied and by which rule, in order.
func (t *turn) decisions(ctx context.Context, run string, add func(name, value string)) {
	list, err := operations.ListAudit.Call(ctx, t.to, t.by, operations.AuditQuery{Session: t.session.ID, Run: run, Limit: maxWhyRules})
	if operation.KindOf(err) == operation.Forbidden && err != nil {
		add("decided", "your token may not read the audit log")
		return
	}
	names := t.tokenNames(ctx)
	for i := len(list.Items) - 1; i >= 0; i-- { // newest first
		line := list.Items[i]
		name := map[string]string{"ask_approved": "approved", "ask_denied": "denied", "allow": "allowed"}[line.Decision]
		words := strings.Replace(strings.TrimPrefix(line.Action, "tool:"), ":", " ", 1)
		if rule := cmp.Or(permit.RuleName(line.Rule), line.Rule); rule != "" {
			words = text.Clip(text.OneLine(words), 100) + " (rule: " + rule + ")"
		}
		if line.Detail != "" {
			words += ", " + decidedBy(line.Detail, names)
		}
		add(cmp.Or(name, "refused"), words)
	}
}

// tokenNames maps token ids to names, if the caller may see them.
func (t *turn) tokenNames(ctx context.Context) map[string]string {
	list, err := operations.ListTokens.Call(ctx, t.to, t.by, operation.None{})
	if err != nil {
		return nil // show ids instead
	}
	out := map[string]string{}
	for _, token := range list.Items {
		out[token.ID] = token.Name
	}
	return out
}

// decidedBy returns the name of who answered: "by local:ada" gives ada.
func decidedBy(detail string, names map[string]string) string {
	who, ok := strings.CutPrefix(detail, "by ")
	_, id, of := strings.Cut(who, ":")
	if !ok || !of || strings.ContainsAny(who, " \t") {
		return detail
	}
	return "by " + cmp.Or(names[id], id)
}

// whyOutcome says how the run ended.
func whyOutcome(run render.RunSteps) string {
	if run.End == nil {
		return "still running"
	}
	words := fmt.Sprintf("%s in %s and %s", run.End.Reason, text.Count(run.End.Steps, "step"), render.Duration(run.Ended.Sub(run.Began)))
	if run.End.Error != nil {
		words += ": " + run.End.Error.Message
	}
	return words
}
