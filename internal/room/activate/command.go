package activate

import (
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/room"
)

// bare are the m commands that are understood without saying to whom. Anything longer
// could be a sentence that somebody began in a hurry, and would be deleted.
var bare = []string{"continue"}

var mentions = pattern.Lazy(`<@!?\d{1,25}>`)

// command reads an m command. It is for this agent if it mentions it, answers it, or is
// one of the bare ones and it is the agent's turn; then it is taken away, and the
// agent goes on. One for somebody else is none of this agent's words.
func command(m room.Message, agent room.Agent, seen Seen) (Decision, bool) {
	if m.Author.Program() {
		return Decision{}, false
	}
	words := strings.TrimSpace(mentions().ReplaceAllString(m.Text, " "))
	isBare := slices.ContainsFunc(bare, func(word string) bool { return strings.EqualFold(strings.Join(strings.Fields(words), " "), "m "+word) })
	inFront := strings.HasPrefix(strings.TrimSpace(m.Text), "m ")
	others := len(m.Mentions) > 0 && !agent.Mentioned(m)
	switch {
	case !isBare && !inFront:
		return Decision{}, false
	case agent.Mentioned(m), seen.Replied && !others, isBare && seen.Turn && !others && m.ReplyTo == "":
		return Decision{Answer: true, Why: ByCommand, Delete: true, Drop: true}, true
	case isBare, others:
		return Decision{Why: NotOurs, Drop: true}, true
	default:
		return Decision{}, false // somebody is just sleepy
	}
}
