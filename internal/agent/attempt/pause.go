package attempt

import (
	"fmt"
	"time"

	"chorus/internal/transcript"
)

// Pause returns when the next attempt of a run is due and what to tell people, or "".
func Pause(run *transcript.Run, now time.Time) (at time.Time, say string) {
	if run.Open && run.Lost > 0 {
		// Something keeps ending the process. Another attempt at once would be lost too.
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

// lostPause is the pause after a request lost in a crash, when lost requests before it
// were lost too: 2 seconds, doubled each time, at most a minute.
func lostPause(lost int) time.Duration {
	return min(time.Second<<min(lost, 16), time.Minute)
}
