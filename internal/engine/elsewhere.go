package engine

import (
	"context"
	"iter"
	"sync"

	"chorus/internal/await"
	"chorus/internal/bus"
	"chorus/internal/chat"
)

// Elsewhere fetches the live pieces of threads that other processes run. Pieces
// may be dropped, because the events come from the journal.
type Elsewhere interface {
	// Follow publishes the pieces of a thread in order until ctx ends. It publishes nil whenever
	// there was a gap or nobody runs the thread any more. look receives a value when another
	// process has written new events to the thread: it may have started to run somewhere.
	Follow(ctx context.Context, thread chat.ThreadID, look <-chan struct{}, publish func(chat.Live))
}

// remote is a thread that is watched here and may run elsewhere.
type remote struct {
	watchers int // under the engine's lock
	stop     context.CancelFunc
	look     chan struct{}

	mu   sync.Mutex
	text liveText
}

// followElsewhere fetches the live pieces of a thread as long as somebody
// watches it. It returns nil if the engine has no Elsewhere.
func (e *Engine) followElsewhere(thread chat.ThreadID) *remote {
	if e.Elsewhere == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil
	}
	r := e.remotes[thread]
	if r == nil {
		r = &remote{look: make(chan struct{}, 1)}
		var ctx context.Context
		ctx, r.stop = context.WithCancel(e.ctx)
		e.remotes[thread] = r
		e.wg.Go(func() {
			e.Elsewhere.Follow(ctx, thread, r.look, func(piece chat.Live) { r.publish(e.Bus, thread, piece) })
		})
	}
	r.watchers++
	return r
}

func (e *Engine) leaveElsewhere(thread chat.ThreadID, r *remote) {
	if r == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.watchers--; r.watchers == 0 {
		r.stop()
		delete(e.remotes, thread)
	}
}

// lookElsewhere signals that the thread may have started to run.
func (r *remote) lookElsewhere() {
	if r == nil {
		return
	}
	await.Notify(r.look)
}

// publish passes a piece to those who watch here and keeps the text for those who join later.
func (r *remote) publish(b *bus.Bus, thread chat.ThreadID, piece chat.Live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if piece == nil {
		r.text = liveText{}
		return
	}
	if d, ok := piece.(chat.Delta); ok {
		r.text.add(d)
	}
	b.Publish(thread, bus.Note{Live: piece})
}

// add adds a piece at its offset. A text with a gap is kept up to the gap.
func (t *liveText) add(d chat.Delta) {
	if d.Run != t.run || d.Step != t.step || d.Attempt != t.attempt {
		*t = liveText{run: d.Run, step: d.Step, attempt: d.Attempt}
	}
	text := &t.text
	if d.What == chat.DeltaThinking {
		text = &t.thinking
	}
	if d.What != chat.DeltaArgs && d.Offset <= len(*text) {
		*text = append((*text)[:d.Offset], d.Text...)
	}
}

// late returns the text so far, for somebody who joins now.
func (t *liveText) late() (out []chat.Live) {
	for what, text := range map[chat.DeltaKind][]byte{chat.DeltaText: t.text, chat.DeltaThinking: t.thinking} {
		if len(text) > 0 && (what != chat.DeltaText || !t.held()) {
			out = append(out, chat.Delta{Run: t.run, Step: t.step, Attempt: t.attempt, What: what, Text: string(text)})
		}
	}
	return out
}

// Live yields the live pieces of a run in this process, starting with the text so far, until the
// run or ctx ends. ok is false if this process runs nothing in the thread.
func (e *Engine) Live(ctx context.Context, thread chat.ThreadID) (pieces iter.Seq[chat.Live], ok bool) {
	if !e.Awake(thread) {
		return nil, false
	}
	return func(yield func(chat.Live) bool) {
		subscription, late := e.listen(thread, nil)
		defer subscription.Close()
		for _, piece := range late {
			if !yield(piece) {
				return
			}
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-e.ctx.Done():
				return
			case <-subscription.Wake():
			}
			notes, _ := subscription.Take()
			for _, n := range notes {
				if n.Live != nil && !yield(n.Live) {
					return
				}
				for _, ev := range n.Events {
					if ev.Body.Kind() == chat.KindRunEnded || ev.Body.Kind() == chat.KindApprovalAsked {
						return // it may continue anywhere
					}
				}
			}
		}
	}, true
}
