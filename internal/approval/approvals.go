package approval

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
		return "it expired" + when + ", before anybody had answered"
	case Cancelled:
		return "it was cancelled" + when + ": the call was given up"
	default:
		return ""
	}
}
