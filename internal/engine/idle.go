package engine

import "time"

// An actor keeps its thread's folded log for the next words. For a few actors that is little
// memory. For a thousand it is most of the process's memory, although most of those
// conversations do not continue. So many actors stay for a shorter time.
const (
	manyActors = 64
	rushIdle   = 20 * time.Second
)

// idleAfter is how long an actor stays when it has nothing to do.
func (e *Engine) idleAfter() time.Duration {
	if e.Actors() > manyActors {
		return min(e.IdleAfter, rushIdle)
	}
	return e.IdleAfter
}

// rushLeft is how long after a rush nothing of it is left: unused connections to providers are closed by then.
const rushLeft = time.Minute

// rush notices that many actors have come and gone, and returns their memory to
// the system. The runtime by itself would keep it for minutes. It does so a
// second time when connections have been closed too.
type rush struct {
	most    int
	again   time.Time
	release func()
}

// see is called from time to time with the number of actors.
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
