// Package ownertest tests every implementation of owner.Owner in the same way.
package ownertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"chorus/internal/owner"
)

// Run runs the suite. two returns two owners that compete for the same things, as two processes
// would. who is what the second one is told when the first one has it.
func Run(t *testing.T, two func(t *testing.T) (first, second owner.Owner, who string)) {
	t.Run("one has it, and the other is told who", func(t *testing.T) {
		t.Parallel()
		a, b, who := two(t)
		held := take(t, a, "thing")
		refused(t, b, "thing", who)
		refused(t, a, "thing", who) // not twice in one process either
		take(t, b, "another thing")
		held.Release()
		held.Release()
		again := take(t, b, "thing")
		held.Release() // it no longer has it
		if _, err := a.Take(t.Context(), "thing"); !errors.Is(err, owner.ErrHeld) {
			t.Fatalf("the second one's was given away: %v", err)
		}
		if err := again.Context().Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
	})
	t.Run("names are told apart", func(t *testing.T) {
		t.Parallel()
		a, b, _ := two(t)
		for _, name := range []owner.Name{owner.Thread("cli:a:main:default"), owner.Thread("cli:b:main:default"), owner.Bot("discord", "a"), owner.Hooks, owner.Work, owner.Schedules, owner.Sweeps, owner.Search} {
			take(t, a, name)
			if _, err := b.Take(t.Context(), name); !errors.Is(err, owner.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("never two at once", func(t *testing.T) {
		t.Parallel()
		a, b, _ := two(t)
		var have, got atomic.Int32
		var all sync.WaitGroup
		for i := range 4 {
			o := a
			if i%2 == 1 {
				o = b
			}
			all.Go(func() {
				for range 50 {
					held, err := o.Take(t.Context(), "thing")
					if errors.Is(err, owner.ErrHeld) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					if have.Add(1) != 1 {
						t.Error("two have it")
					}
					got.Add(1)
					have.Add(-1)
					held.Release()
				}
			})
		}
		all.Wait()
		if got.Load() == 0 {
			t.Error("nobody ever had it")
		}
	})
	t.Run("waiting ends when it is free, or when nobody wants it any more", func(t *testing.T) {
		t.Parallel()
		a, b, _ := two(t)
		held := take(t, a, "thing")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := owner.Await(ctx, b, "thing", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("waited for a thing that is held: %v", err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := owner.Await(t.Context(), b, "thing", 1)
			got <- err
		}()
		held.Release()
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

func take(t *testing.T, o owner.Owner, name owner.Name) owner.Held {
	t.Helper()
	held, err := o.Take(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.Release)
	return held
}

func refused(t *testing.T, o owner.Owner, name owner.Name, who string) {
	t.Helper()
	_, err := o.Take(t.Context(), name)
	if held, ok := errors.AsType[*owner.HeldError](err); !ok || held.By != who || held.Name != name {
		t.Errorf("taken twice, or refused for another reason: %v", err)
	}
}
