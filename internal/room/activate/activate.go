// Package activate decides who answers in a room where nobody has to.
//
// Decisions depend only on their inputs, including the dice, so the same message gets the same
// decision after a restart. When two programs talk to each other, one of them falls silent. A
// request that arrives while the agent is still speaking is kept, as one, and not dropped.
package activate

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"chorus/internal/room"
	"chorus/internal/room/split"
)

// Rules are the configuration for speaking, including pins.
type Rules struct {
	ReplyOnRandom         int  // one message in so many; 0 means never
	ReplyOnName           bool // when called by name
	AutoReplyOwnChannel   bool // always, in the channel with the agent's name
	MaxBotReplyChainDepth int  // answer no further than so many programs in a chain; 0: programs are not answered
	ChainEmote            string
}

// Seen is what else a decision needs to know about the room.
type Seen struct {
	Replied bool          // the message is a reply to this agent
	Chain   []room.Author // the message's author, the author of the message it replies to, and so on
	Recent  []room.Author // the message's author, the author of the previous message in the channel, and so on
	Turn    bool          // the agent was the last of the agents here to speak, or is the only one
}

// Why says why an agent speaks or is silent.
type Why string

// The reasons to speak, those for messages in the order in which they
// are checked, and the reasons to be silent.
const (
	ByCommand  Why = "command"
	ByMention  Why = "mention"
	ByReply    Why = "reply"
	ByChannel  Why = "own channel"
	ByName     Why = "name"
	ByChance   Why = "random"
	ByItself   Why = "self activation"
	ByTimer    Why = "timer"
	NotAsked   Why = "" // nobody asked
	NotWords   Why = "not for agents"
	NotOurs    Why = "another's command"
	TooDeep    Why = "too many programs in a row"
	NotReplied Why = "a program's reply"
)

// Decision is what to do about an event.
type Decision struct {
	Answer bool
	Why    Why
	Delete bool   // the message was a command and is deleted
	Drop   bool   // it is not part of the conversation
	React  string // add this reaction to it
}

// Dice returns a number from 0 to n-1. It is called at most once per decision, and only when chance decides.
type Dice func(n int) int

// Decide says whether the agent answers an event.
func Decide(e room.Event, agent room.Agent, rules Rules, seen Seen, dice Dice) Decision {
	switch e.Kind {
	case room.Said:
		return message(e.Message, agent, rules, seen, dice)
	case room.SelfActivation:
		return Decision{Answer: true, Why: ByItself}
	case room.Timer:
		return Decision{Answer: true, Why: ByTimer}
	default:
		return Decision{} // changes are noted but not answered
	}
}

func message(m room.Message, agent room.Agent, rules Rules, seen Seen, dice Dice) Decision {
	if m.System || agent.Wrote(m.Author) {
		return Decision{Why: NotWords}
	}
	if d, ok := command(m, agent, seen); ok {
		return d
	}
	if room.IsDotCommand(m.Text) || dotted(m.Text) {
		return Decision{Why: NotWords}
	}
	why := reason(m, agent, rules, seen, dice)
	if why == NotAsked || why == NotReplied {
		return Decision{Why: why}
	}
	if m.Author.Program() && max(Depth(seen.Chain), Depth(seen.Recent)) >= rules.MaxBotReplyChainDepth {
		d := Decision{Why: TooDeep}
		if why == ByMention || why == ByReply {
			d.React = rules.ChainEmote
		}
		return d
	}
	return Decision{Answer: true, Why: why}
}

func reason(m room.Message, agent room.Agent, rules Rules, seen Seen, dice Dice) Why {
	program := m.Author.Program()
	switch {
	case agent.Mentioned(m):
		return ByMention
	case seen.Replied && !program:
		return ByReply
	case rules.AutoReplyOwnChannel && own(m.In.Name, agent):
		return ByChannel
	case rules.ReplyOnName && Called(m.Text, agent.Names()):
		return ByName
	case rules.ReplyOnRandom > 0 && dice != nil && dice(rules.ReplyOnRandom) == 0:
		return ByChance
	case seen.Replied:
		return NotReplied
	default:
		return NotAsked
	}
}

// dotted reports whether a dot at the beginning keeps a message between people.
func dotted(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), ".") }

// own reports whether the channel has the agent's name, in the spelling of channel names.
func own(channel string, agent room.Agent) bool {
	spelled := func(s string) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return unicode.IsSpace(r) || r == '-' || r == '_' || r == '#' }), "-")
	}
	channel = spelled(channel)
	return channel != "" && slices.ContainsFunc(agent.Names(), func(name string) bool { return spelled(name) == channel })
}

// Depth counts the programs at the newest end of a chain of authors, newest first.
// A program that speaks several times in a row counts once; a person ends the chain.
func Depth(newestFirst []room.Author) int {
	depth, last := 0, ""
	for _, a := range newestFirst {
		if !a.Program() {
			break
		}
		if who := a.Webhook + "/" + a.ID; who != last {
			depth, last = depth+1, who
		}
	}
	return depth
}

// Called reports whether one of the names occurs in the text as a separate
// word, ignoring case. Code and links do not count.
func Called(text string, names []string) bool {
	found := false
	split.Prose(text, func(s string) string {
		found = found || slices.ContainsFunc(names, func(name string) bool { return word(s, name) })
		return s
	})
	return found
}

func word(text, name string) bool {
	if name == "" {
		return false
	}
	low, want := strings.ToLower(text), strings.ToLower(name)
	for from := 0; ; {
		i := strings.Index(low[from:], want)
		if i < 0 {
			return false
		}
		at := from + i
		before, _ := utf8.DecodeLastRuneInString(low[:at])
		after, _ := utf8.DecodeRuneInString(low[at+len(want):])
		if (at == 0 || !inWord(before)) && (at+len(want) == len(low) || !inWord(after)) {
			return true
		}
		_, n := utf8.DecodeRuneInString(low[at:])
		from = at + n
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// Deepest is the maximum length of a chain that a decision needs.
func (r Rules) Deepest() int { return 2*r.MaxBotReplyChainDepth + 2 }

// String returns the decision in a word, for logs.
func (d Decision) String() string {
	verb := "silent"
	if d.Answer {
		verb = "answers"
	}
	if d.Why == NotAsked {
		return verb
	}
	return fmt.Sprintf("%s (%s)", verb, d.Why)
}
