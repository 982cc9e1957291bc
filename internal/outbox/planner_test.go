package outbox

import (
	"context"
	"errors"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// planner is a durable reader of the journal: it folds what is new in threads and writes what
// is wanted, in one transaction with its place. It stands for what a connector does.
type planner struct {
	db   mortalStore
	wake func(...journal.Lane)
	news chan struct{}
}

const plannerName = "outbox"

func (p *planner) look() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// run reads until the context ends. What fails is tried again with the next tick.
func (p *planner) run(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		behind, _, _ := p.db.BehindSince(ctx, plannerName, "talk", 0, nil)
		for _, thread := range behind {
			if p.read(ctx, thread) != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.news:
		}
	}
}

// read plans what is new in a thread. The text of a message is the sum of all its events, so
// those before are folded again.
func (p *planner) read(ctx context.Context, thread chat.ThreadID) error {
	at, err := p.db.Reader(ctx, plannerName, thread)
	if err != nil {
		return err
	}
	plan := journal.Plan{Reader: plannerName, Thread: thread, From: at, UpTo: at}
	texts := map[string]string{}
	for ev, err := range p.db.AllEvents(ctx, thread, 0) {
		if err != nil {
			return err
		}
		d := told(texts, ev.Body.(chat.Received).Blocks.Text())
		if ev.Seq > at {
			d.Thread, d.Seq, plan.UpTo = thread, ev.Seq, ev.Seq
			plan.Desired = append(plan.Desired, d)
		}
	}
	if err := p.db.Plan(ctx, plan); err != nil && !errors.Is(err, journal.ErrMoved) {
		return err
	}
	for _, d := range plan.Desired {
		p.wake(d.Lane)
	}
	return nil
}
