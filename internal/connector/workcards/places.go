package workcards

import (
	"context"
	"errors"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector/publish"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room/split"
	"chorus/internal/workview"
)

// places remembers channels and threads, so that nothing is tried again and again. It lasts as long as the
// process.
type places struct {
	mu   sync.Mutex
	list map[string]bool
}

func (p *places) add(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == nil {
		p.list = map[string]bool{}
	}
	p.list[id] = true
}

func (p *places) is(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list[id]
}

// cardWithin is how long after a task moved a card is sure to be wanted.
const cardWithin = time.Minute

// maxName is the maximum length of a thread's name.
const maxName = 90

// ShownIn returns where a task's worker is shown: in a thread below its card, which is opened when there is something to show.
func (c *Cards) ShownIn(ctx context.Context, thread chat.ThreadID) (publish.Shown, error) {
	if thread.Transport() != chat.WorkTransport || c.threads == nil {
		return publish.Shown{}, nil
	}
	t, err := c.o.Work.Task(ctx, thread.Thread())
	if err != nil {
		return publish.Shown{}, ignoreUnknown(err)
	}
	channel, err := c.place(ctx, t)
	if err != nil || channel == "" {
		return publish.Shown{}, err
	}
	row, err := c.Backend.Outgoing(ctx, c.Lane(channel), Key(t.ID))
	switch {
	case err != nil && !errors.Is(err, journal.ErrUnknown):
		return publish.Shown{}, err
	case err != nil || row.ID == "" && row.State != journal.Failed:
		// The events of a task are read a moment before or after its conversation.
		return publish.Shown{Later: workview.Visible(t.State) && !t.State.Over() || time.Since(t.Moved) < cardWithin}, nil
	case row.ID == "" || c.closed.is(row.ID):
		return publish.Shown{}, nil
	}
	if _, known := c.Platform.Known(row.ID); known || c.opened.is(row.ID) || c.isBoard(channel) { // a post on a board is a thread
		return publish.Shown{Channel: row.ID}, nil
	}
	if _, err = c.threads.OpenOn(ctx, channel, row.ID, split.Clip(t.Title, maxName)); err != nil {
		if platform.Passing(err) {
			return publish.Shown{Later: true}, err
		}
		c.closed.add(row.ID)
		c.Log.Warn("the thread of a task cannot be opened, so what its worker does is not shown", "event", "thread_not_opened", "task", t.ID, "error", err)
		return publish.Shown{}, nil
	}
	c.opened.add(row.ID)
	return publish.Shown{Channel: row.ID}, nil
}

func ignoreUnknown(err error) error {
	if errors.Is(err, journal.ErrUnknown) {
		return nil
	}
	return err
}
