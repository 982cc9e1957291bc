package owner_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"chorus/internal/owner"
)

// lossy gives everything, and can take it away.
type lossy struct {
	mu   sync.Mutex
	fail error
	lose context.CancelCauseFunc
	out  int // things that were not released
}

type lossyHeld struct {
	o   *lossy
	ctx context.Context
}

func (h lossyHeld) Context() context.Context { return h.ctx }

func (h lossyHeld) Release() {
	h.o.mu.Lock()
	defer h.o.mu.Unlock()
	h.o.out--
}

func (o *lossy) Take(context.Context, owner.Name) (owner.Held, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.fail; err != nil {
		o.fail = nil
		return nil, err
	}
	h := lossyHeld{o: o}
	h.ctx, o.lose = context.WithCancelCause(context.Background())
	o.out++
	return h, nil
}

// Work is ended when its thing is lost, taken up again when it is got back, and ends with its context.
func TestWhile(t *testing.T) {
	t.Parallel()
	o := &lossy{fail: errors.New("the database is away")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failed []error
	rounds, ended := make(chan context.Context), make(chan struct{})
	go func() {
		defer close(ended)
		owner.While(ctx, o, "thing", time.Millisecond, func(err error) { failed = append(failed, err) }, func(ctx context.Context) {
			rounds <- ctx
			<-ctx.Done()
		})
	}()
	first := <-rounds
	o.mu.Lock()
	lose := o.lose
	o.mu.Unlock()
	lose(owner.ErrLost)
	second := <-rounds
	if !errors.Is(context.Cause(first), owner.ErrLost) || second.Err() != nil {
		t.Errorf("%v, %v", context.Cause(first), second.Err())
	}
	cancel()
	<-ended
	if o.out != 0 || len(failed) != 1 {
		t.Errorf("%d are still held; failures: %v", o.out, failed)
	}
}
