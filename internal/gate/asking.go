package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/sandbox/process"
	"chorus/internal/usage"
)

// Asking is how people are asked about what a thread does. Whoever sits at a terminal
// sees the question: it has no end there unless somebody wants one.
func (g *Gate) Asking(row journal.Thread, bot *config.Bot, profile string) (engine.Asking, error) {
	out := engine.Asking{Env: g.variables()}
	out.Who, _ = bot.Asked(profile, "by")
	for what, into := range map[string]*time.Duration{"deadline": &out.For, "remind": &out.Remind} {
		text, set := bot.Asked(profile, what)
		if row.ID.Transport() == "cli" && !set {
			continue
		}
		d, err := config.HowLong(text)
		if err != nil {
			return out, fmt.Errorf("approvals: %s %w", what, err)
		}
		*into = d
	}
	return out, nil
}

// variables are the names that commands find in their environment.
func (g *Gate) variables() []string {
	var out []string
	for _, entry := range process.Environ(g.Environ) {
		name, _, _ := strings.Cut(entry, "=")
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Approvals is where questions of all threads lie. It answers them in the journal, and runs
// nothing itself: whoever has the thread goes on with it.
func (g *Gate) Approvals() approval.Approvals { return g.Engine(nil) }

// FindApproval finds an approval by the beginning of its id. Without one it is the
// only question there is.
func (g *Gate) FindApproval(ctx context.Context, name string) (approval.Approval, error) {
	name = strings.ToLower(name)
	f := approval.Filter{Prefix: name, Newest: true}
	if name == "" {
		f.State = approval.Open
	}
	found, err := g.Approvals().Approvals(ctx, f)
	if err != nil {
		return approval.Approval{}, err
	}
	for _, x := range found {
		if x.ID == name {
			return x, nil
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && name == "":
		return approval.Approval{}, errors.New("nothing waits for an answer")
	case len(found) == 0:
		return approval.Approval{}, fmt.Errorf("there is no approval %q: %w; `chorus approvals list --all` shows them", name, journal.ErrUnknown)
	case name == "":
		return approval.Approval{}, usage.Wrap(fmt.Errorf("%d questions wait; say which: `chorus approvals list` shows them", len(found)))
	default:
		return approval.Approval{}, usage.Wrap(fmt.Errorf("%q is the beginning of %d approvals; give more of it", name, len(found)))
	}
}

// Approve answers an approval for the person at this terminal and gives it as it is
// then: still open where a second person must say yes too.
func (g *Gate) Approve(ctx context.Context, name string, ok bool, note string) (approval.Approval, error) {
	x, err := g.FindApproval(ctx, name)
	if err != nil {
		return x, err
	}
	err = g.Approvals().Answer(ctx, x.ID, g.Me(), ok, note)
	now, rerr := g.DB.Approval(ctx, x.ID)
	switch {
	case errors.Is(err, journal.ErrSettled) && rerr == nil:
		return now, fmt.Errorf("too late: %s", now.Ended())
	case err != nil:
		return x, err
	}
	return now, rerr
}
