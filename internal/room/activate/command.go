package activate

import (
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/room"
)

// bare are the m commands that need no addressee. Anything longer could be
// the beginning of a sentence, which would be deleted.
var bare = []string{"continue"}

var mentions = pattern.Lazy(`<@!?\d{1,25}>`)

// command reads an m command. It is for this agent if it mentions the agent, replies to it, or
// is a bare one and it is the agent's turn. Then the message is deleted and the agent
// continues. A command for somebody else is not words for this agent.
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
