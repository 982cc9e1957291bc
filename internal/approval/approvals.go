package approval

import (
	"context"
	"iter"

	"chorus/internal/chat"
)

// Approvals is where questions lie, for whoever shows them to people: a terminal, a chat
// platform, an API. All of them see the same questions, and the first answer wins.
type Approvals interface {
	// Approvals lists them. Those whose time is over are ended before.
	Approvals(ctx context.Context, f Filter) ([]Approval, error)
	// WatchApprovals yields those the filter lets through as they are now, and each
	// one again when it changes (also when it no longer passes the filter), until
	// ctx ends.
	WatchApprovals(ctx context.Context, f Filter) iter.Seq2[Approval, error]
	// Answer says yes or no for somebody. Where two people must say yes, the first
	// one leaves the question open. The errors are journal.ErrUnknown,
	// journal.ErrSettled (with who answered, and when, in its text) and ErrMayNot.
	Answer(ctx context.Context, id string, by chat.Principal, ok bool, note string) error
}

// Ended says in a sentence how an approval ended; "" while it is open.
func (a Approval) Ended() string {
	when := ""
	if !a.AnsweredAt.IsZero() {
		when = " at " + a.AnsweredAt.Local().Format("2006-01-02 15:04:05")
	}
	switch a.State {
	case Approved, Refused:
		text := "it was " + string(a.State) + " by " + a.AnsweredBy + when
		if a.Note != "" {
			text += ": " + a.Note
		}
		return text
	case Expired:
		return "its time was over" + when + ", before anybody had answered"
	case Cancelled:
		return "it was cancelled" + when + ": the call was given up"
	default:
		return ""
	}
}
