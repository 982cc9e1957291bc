package engine

import "time"

// An actor keeps its thread's folded log for the next words. Of a few that is little; of a thousand it is most of
// the process's memory, for conversations of which most do not go on. So many actors rest for a shorter time.
const (
	manyActors = 64
	rushIdle   = 20 * time.Second
)

// idleAfter is how long an actor that has nothing to do stays.
func (e *Engine) idleAfter() time.Duration {
	if e.Actors() > manyActors {
		return min(e.IdleAfter, rushIdle)
	}
	return e.IdleAfter
}

// rush notices that many actors were there and are gone, and gives their memory back to the system: the runtime by
// itself keeps it for the next ones, for minutes.
type rush struct {
	most    int
	release func()
}

// see is told from time to time how many actors there are.
func (r *rush) see(actors int) {
	r.most = max(r.most, actors)
	if r.most > manyActors && actors <= r.most/4 {
		r.most = actors
		r.release()
	}
}
