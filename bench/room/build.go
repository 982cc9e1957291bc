package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/transcript"
)

// Times are medians of building one prompt for a full window.
type Times struct {
	Warm time.Duration // in a process that knows the thread: from new words to the bytes that are sent
	Cold time.Duration // in a new process: what is stored of the window is read first
}

// Build fills a thread with a history of so many messages, lets the agent answer
// once, and then measures how long the next prompt takes to build.
func Build(ctx context.Context, dir string, history int, wrap Wrap, progress func(done int)) (times Times, err error) {
	r, err := open(ctx, dir, wrap)
	if err != nil {
		return Times{}, err
	}
	defer func() { err = errors.Join(err, r.close(context.WithoutCancel(ctx))) }()
	script := Script()
	if err := r.fill(ctx, history, script, progress); err != nil {
		return Times{}, err
	}
	// Enough answers that the window is full and has a snapshot, as in any thread that is used.
	for i := range 3 {
		line := script[i]
		line.Asks, line.Answer = true, "Yes."
		if _, err := r.hear(ctx, line); err != nil {
			return Times{}, err
		}
	}
	return r.measure(ctx)
}

// fill writes what was said in the room, many messages to a commit.
func (r *room) fill(ctx context.Context, n int, script []Line, progress func(int)) error {
	who := chat.Principal{Kind: chat.LocalUser, ID: "Ada"}
	const page = 500
	for at := 0; at < n; at += page {
		c := journal.Commit{Thread: thread, Create: &journal.Thread{Agent: "chorus", Place: "room", Owner: who}}
		for i := at; i < min(n, at+page); i++ {
			line := script[i%len(script)]
			c.Events = append(c.Events, chat.Event{Body: chat.Received{From: chat.Participant{Name: line.From, Kind: chat.Person}, Principal: who, Blocks: chat.TextBlocks(line.Text)}})
		}
		if _, err := r.db.Commit(ctx, c); err != nil {
			return fmt.Errorf("fill the room: %w", err)
		}
		if progress != nil {
			progress(min(n, at+page))
		}
	}
	return nil
}

func (r *room) measure(ctx context.Context) (Times, error) {
	var warm, cold []time.Duration
	log, err := r.load(ctx)
	if err != nil {
		return Times{}, err
	}
	for i := range 41 {
		start := time.Now()
		fresh, err := r.load(ctx)
		if err == nil {
			err = r.build(fresh)
		}
		if err != nil {
			return Times{}, err
		}
		took := time.Since(start)
		start = time.Now()
		ev := chat.Event{Seq: log.Seq() + 1, Body: chat.Received{From: chat.Participant{Name: "Ada"}, Blocks: chat.TextBlocks("And now?")}}
		if err := errors.Join(log.Apply(ev), r.build(log)); err != nil {
			return Times{}, err
		}
		if i > 0 { // the first one warms up
			warm, cold = append(warm, time.Since(start)), append(cold, took)
		}
	}
	slices.Sort(warm)
	slices.Sort(cold)
	return Times{Warm: warm[len(warm)/2], Cold: cold[len(cold)/2]}, nil
}

func (r *room) load(ctx context.Context) (*transcript.Log, error) {
	log, err := engine.Load(ctx, r.db, thread)
	if err != nil {
		return nil, err
	}
	return log, engine.Fold(ctx, r.db, thread, log)
}

// build is everything between new words and the bytes that are sent.
func (r *room) build(log *transcript.Log) error {
	log.RollDue(chat.Settings{Window: Limits}, time.Now())
	req, err := log.Request(r.head, log.Seq())
	if err != nil {
		return err
	}
	if err := transcript.CheckPairs(req.Messages); err != nil {
		return err
	}
	req.Model, req.Settings = modelName, chat.Settings{MaxTokens: 1000, Window: Limits}
	if _, err := req.Digest(); err != nil {
		return err
	}
	_, err = r.model.Prepare(req)
	return err
}
