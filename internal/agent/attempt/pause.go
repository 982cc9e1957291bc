package attempt

import (
	"fmt"
	"time"

	"chorus/internal/transcript"
)

// Pause is when the next attempt of a run is made, and what people are told of it; "": nothing.
func Pause(run *transcript.Run, now time.Time) (at time.Time, say string) {
	if run.Open && run.Lost > 0 {
		// Something ends the process again and again: another attempt at once would be lost, too.
		at = run.Asked.Add(lostPause(run.Lost))
		if d := at.Sub(now); d > time.Second {
			say = fmt.Sprintf("Chorus ended %d times while the model was answering; the next attempt is in %s", run.Lost+1, d.Round(time.Second))
		}
		return at, say
	}
	if d := run.RetryAt.Sub(now); run.Failure != nil && !run.Failure.Until.IsZero() && d > 0 {
		say = fmt.Sprintf("the provider does not answer; the next attempt is in %s, the last one at %s", d.Round(time.Second), run.Failure.Until.Format("15:04 MST"))
	}
	return run.RetryAt, say
}

// lostPause is how long after a request that was lost in a crash the next one is made, when
// so many before it were lost, too: 2 seconds, doubled, at most a minute.
func lostPause(lost int) time.Duration {
	return min(time.Second<<min(lost, 16), time.Minute)
}
