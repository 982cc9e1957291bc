package activate

import (
	"slices"
	"strings"
)

// The words that answer a question, and those that withdraw a preceding yes.
var (
	yesWords = []string{"yes", "y", "yep", "yeah", "ok", "okay", "sure", "approve", "approved", "allow", "allowed", "go", "go ahead", "do it",
		"ship it", "lgtm", "looks good", "yes please", "please do", "ja", "✅", "👍", "☑", "✔"}
	noWords  = []string{"no", "n", "nope", "nah", "deny", "denied", "reject", "rejected", "refuse", "stop", "cancel", "abort", "don't", "do not", "no thanks", "nein", "❌", "👎", "✖", "🛑"}
	takeback = []string{"but", "however", "except", "unless", "if", "only", "not", "without", "after", "before", "first", "instead", "wait", "aber", "nur", "wenn"}
)

// Answered reads a reply to a question: a yes or a no, alone or with a note after a colon, a
// comma, a full stop or on the next line. Anything else is a no with the words as its note,
// for the agent to read. So is a yes with a condition, since nobody could hold the agent to
// it. plain reports whether it was clearly an answer.
func Answered(text string) (order Order, note string, plain bool) {
	text = strings.TrimSpace(text)
	word, rest := cutAnswer(text)
	word = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(word), "\ufe0f"))
	switch {
	case text == "":
		return None, "", false
	case slices.Contains(noWords, word):
		return Deny, rest, true
	case slices.Contains(yesWords, word) && !conditional(rest):
		return Approve, rest, true
	default:
		return Deny, text, false
	}
}

// cutAnswer cuts a reply after its first phrase.
func cutAnswer(text string) (word, rest string) {
	i := strings.IndexAny(text, ":,;.!\n—–")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimSpace(strings.TrimLeft(text[i:], ":,;.!\n—– "))
}

// conditional reports whether a note withdraws or postpones what precedes it.
func conditional(note string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(note)) {
		if slices.Contains(takeback, strings.Trim(word, ".,:;!?")) {
			return true
		}
	}
	return false
}
