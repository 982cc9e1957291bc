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

// rushLeft is after how long a rush has left nothing behind: connections to vendors that nobody uses are closed by then.
const rushLeft = time.Minute

// rush notices that many actors were there and are gone, and gives their memory back to the system: the runtime by
// itself keeps it for the next ones, for minutes. It does so once more when connections have been given up too.
type rush struct {
	most    int
	again   time.Time
	release func()
}

// see is told from time to time how many actors there are.
func (r *rush) see(actors int, now time.Time) {
	r.most = max(r.most, actors)
	switch {
	case r.most > manyActors && actors <= r.most/4:
		r.most, r.again = actors, now.Add(rushLeft)
	case !r.again.IsZero() && now.After(r.again):
		r.again = time.Time{}
	default:
		return
	}
	r.release()
}
