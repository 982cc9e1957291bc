package engine

import (
	"testing"
	"time"

	"chorus/internal/chat"
)

// A thousand conversations stayed in memory for five minutes, and their memory for longer.
func TestManyActorsRestForAShorterTime(t *testing.T) {
	t.Parallel()
	e := &Engine{Config: Config{IdleAfter: DefaultIdleAfter}, actors: map[chat.ThreadID]*actor{}}
	for n := range 2 * manyActors {
		want := DefaultIdleAfter
		if n > manyActors {
			want = rushIdle
		}
		if got := e.idleAfter(); got != want {
			t.Fatalf("with %d actors: %s, want %s", n, got, want)
		}
		e.actors[chat.ThreadID(rune(n))] = nil
	}
	if e.IdleAfter = time.Second; e.idleAfter() != time.Second {
		t.Errorf("what was configured is shorter, and does not count")
	}
}

func TestMemoryIsGivenBackAfterARush(t *testing.T) {
	t.Parallel()
	given := 0
	r := rush{release: func() { given++ }}
	for _, step := range []struct{ actors, given int }{{10, 0}, {2, 0}, {1000, 0}, {900, 0}, {251, 0}, {200, 1}, {150, 1}, {40, 2}, {0, 2}, {60, 2}, {0, 2}, {100, 2}, {0, 3}} {
		if r.see(step.actors); given != step.given {
			t.Fatalf("at %d actors memory was given back %d times, want %d", step.actors, given, step.given)
		}
	}
}
