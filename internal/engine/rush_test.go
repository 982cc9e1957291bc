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
	r, began := rush{release: func() { given++ }}, time.Now()
	for _, step := range []struct {
		second        int
		actors, given int
	}{
		{0, 10, 0}, {1, 2, 0}, {2, 1000, 0}, {3, 900, 0}, {4, 251, 0}, {5, 200, 1}, {6, 150, 1}, {7, 40, 2}, {8, 0, 2},
		{60, 60, 2}, {61, 0, 2}, {68, 0, 3}, {69, 0, 3}, {600, 0, 3}, // once more when connections have gone too
		{601, 100, 3}, {602, 0, 4}, {603, 3, 4}, {663, 3, 5}, {900, 3, 5},
	} {
		if r.see(step.actors, began.Add(time.Duration(step.second)*time.Second)); given != step.given {
			t.Fatalf("in second %d, at %d actors, memory was given back %d times, want %d", step.second, step.actors, given, step.given)
		}
	}
}
