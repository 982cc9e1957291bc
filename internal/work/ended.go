package work

import (
	"cmp"
	"time"

	"chorus/internal/chat"
)

// Change says what happens to a task: a step, and what to write with it.
type Change struct {
	Step      Step
	Retries   int
	NotBefore time.Time
	Why       string
	Outcome   Outcome
	Kind      ErrorKind
}

// How long a task waits after a failure, and after a limit of the provider.
const (
	firstWait = 5 * time.Second
	limitWait = time.Minute
	maxWait   = 5 * time.Minute
)

// Ended returns the change that the end of a run makes to its task.
func Ended(t Task, end chat.RunEnded, now time.Time) Change {
	kind := KindOfRun(end)
	why := end.Text
	if end.Error != nil {
		why = cmp.Or(end.Error.Message, why)
	}
	switch {
	case end.Reason == chat.EndDone:
		return Change{Step: AgentCompleted, Retries: t.Retries, Outcome: OutcomeCompleted}
	case end.Reason == chat.EndAborted:
		return Change{Step: AdminStop, Retries: t.Retries, Outcome: OutcomeStopped, Kind: ErrorStopped, Why: cmp.Or(why, "somebody stopped it")}
	case kind.Temporary():
		wait := Backoff(limitWait, t.Attempt)
		if end.Error != nil { // the provider may say until when it limits
			wait = max(wait, time.Duration(end.Error.RetryMS)*time.Millisecond)
		}
		return Change{Step: TokensExhausted, Retries: t.Retries, NotBefore: now.Add(wait), Kind: kind, Why: cmp.Or(why, kind.Title()),
			Outcome: map[ErrorKind]Outcome{ErrorRateLimit: OutcomeRateLimit, ErrorBudget: OutcomeTokens}[kind]}
	case end.Reason == chat.EndDenied:
		return Change{Step: Denied, Retries: t.Retries, Outcome: OutcomeFailed, Kind: kind, Why: cmp.Or(why, kind.Title())}
	default:
		return Failure(t, kind, cmp.Or(why, kind.Title()), now)
	}
}

// Failure returns the change for a failure of a running task: another try later, or no more tries.
func Failure(t Task, kind ErrorKind, why string, now time.Time) Change {
	c := Change{Step: Retry, Retries: t.Retries + 1, Outcome: OutcomeFailed, Kind: kind, Why: why}
	if c.Retries >= t.MaxRetries {
		c.Step = MaxRetries
		return c
	}
	c.NotBefore = now.Add(Backoff(firstWait, c.Retries))
	return c
}

// Backoff doubles a wait each time, up to five minutes.
func Backoff(first time.Duration, times int) time.Duration {
	wait := first
	for ; times > 1 && wait < maxWait; times-- {
		wait *= 2
	}
	return min(wait, maxWait)
}

// KindOfRun classifies the end of one of our runs by its structured data, never by the words of its message.
func KindOfRun(end chat.RunEnded) ErrorKind {
	switch end.Reason {
	case chat.EndDone:
		return ErrorNone
	case chat.EndAborted:
		return ErrorStopped
	case chat.EndBudget:
		return ErrorBudget
	case chat.EndDenied:
		return ErrorDenied
	case chat.EndLimit:
		return ErrorSteps
	}
	if end.Error == nil {
		return ErrorUnexpected
	}
	switch end.Error.Kind {
	case "auth":
		return ErrorAuth
	case "rate_limit", "overloaded":
		return ErrorRateLimit
	case "context_too_long":
		return ErrorContext
	case "network":
		return ErrorNetwork
	}
	if kind := ErrorKind(end.Error.Kind); explanations[kind] != [2]string{} {
		return kind // from a program
	}
	return ErrorUnexpected
}
