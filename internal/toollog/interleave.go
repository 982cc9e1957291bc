package toollog

// Rules say how much of the calls a context shows. Zero means none.
type Rules struct {
	Last   int // so many calls, the newest
	Result int // so many characters of each result; a longer one ends in "…"

	// Unanswered keeps calls whose answer was never posted, or is not in the window
	// any more. Chapter3 leaves them out.
	Unanswered bool
}

// DefaultRules are Chapter3's.
func DefaultRules() Rules { return Rules{Last: 5, Result: 2000} }

// Insert is one call in a context: what the agent wrote, then what the tool answered.
type Insert struct {
	After  int    // index in the window of the message that the agent was answering
	Text   string // the completion that held the call; empty where the call before had the same one
	Call   Call
	Result string // cut
	Failed bool
}

// Interleave says which calls a context shows and where. Window holds the ids of its
// messages, oldest first. A call stands behind the message it was made for; calls
// for the same message keep their order. A call whose message has left the window is gone, and,
// unless the rules keep it, one without an answer there. It is a pure function.
func Interleave(entries []Entry, window []string, rules Rules) []Insert {
	place := make(map[string]int, len(window))
	for i, id := range window {
		if id != "" {
			place[id] = i
		}
	}
	var shown []Entry
	for _, e := range entries {
		if _, ok := place[e.Call.MessageID]; ok && (rules.Unanswered || answered(e, place)) {
			shown = append(shown, e)
		}
	}
	shown = shown[max(0, len(shown)-max(0, rules.Last)):]
	at := make([][]Entry, len(window))
	for _, e := range shown {
		i := place[e.Call.MessageID]
		at[i] = append(at[i], e)
	}
	var out []Insert
	for i, list := range at {
		text := ""
		for _, e := range list {
			insert := Insert{After: i, Call: e.Call, Result: cut(e.Result.Answer(), max(0, rules.Result)), Failed: e.Result.Error != ""}
			if e.Call.Text != text {
				insert.Text, text = e.Call.Text, e.Call.Text
			}
			out = append(out, insert)
		}
	}
	return out
}

func answered(e Entry, place map[string]int) bool {
	for _, id := range e.Call.BotMessageIDs {
		if _, ok := place[id]; ok {
			return true
		}
	}
	return false
}
