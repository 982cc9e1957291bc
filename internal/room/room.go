// Package room has the words in which a chat platform's rooms are spoken of: who is
// there, what was said where, which agents listen. The rules about them stand in the
// packages below it.
//
// It promises to be plain values: no library of a platform, no network, no clock. A
// connector fills them in, asks the rules, and does what they answer.
package room

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"chorus/internal/chat"
)

// Direct stands for the guild of direct messages, as in the platform's own links.
const Direct = "@me"

// Kind says what sort of event came.
type Kind string

// The closed set of kinds. The first four come from the platform, the others from us.
const (
	Said           Kind = "message"
	Reacted        Kind = "reaction"
	Edited         Kind = "edit"
	Deleted        Kind = "delete"
	SelfActivation Kind = "self_activation"
	Timer          Kind = "timer"
	Internal       Kind = "internal"
)

// FromPlatform reports whether events of this kind come from the platform.
func (k Kind) FromPlatform() bool {
	return k == Said || k == Reacted || k == Edited || k == Deleted
}

// Known reports whether k is one of the kinds.
func (k Kind) Known() bool {
	return k.FromPlatform() || k == SelfActivation || k == Timer || k == Internal
}

// Event is one thing that happened in a channel. Message is what was said, changed,
// taken back or reacted to; of the last two often only its id is known.
type Event struct {
	Kind    Kind
	Message Message
	Emoji   string // of a reaction: the sign, or the name of one of the guild's own
	Added   bool   // of a reaction: put on, not taken off
	By      Author // of a reaction: whose
	Raw     any    // what the connector needs to carry it out; no rule looks at it
}

// Channel is a place where messages stand. A platform thread is one too.
type Channel struct {
	Guild  string // "" or Direct: direct messages
	ID     string
	Parent string // of a platform thread: the channel it hangs under
	Name   string
	// HomeName is the name of Home: of a platform thread the parent's. "": not known.
	HomeName string
	Private  bool // a platform thread that not everybody sees who sees its parent
	Board    bool // nobody writes in it: it has posts, each a platform thread with a title
}

// Home is the channel that lends its agents, settings and memory: of a platform thread
// the parent.
func (c Channel) Home() string {
	return cmp.Or(c.Parent, c.ID)
}

// Place is the second part of the thread ids of a channel: guild and home. A private
// thread is a place of its own, so that nothing of it is found from its parent.
func (c Channel) Place() string {
	place := c.Guild + "/" + c.Home()
	if c.Guild == "" {
		place = Direct + place
	}
	if c.Private && c.Parent != "" {
		place += "/" + c.ID
	}
	return place
}

// PlaceParts takes a place apart: the guild, the channel whose agents and settings hold
// there, and the channel where it is said, which is the same but for private threads.
func PlaceParts(place string) (guild, home, in string) {
	guild, rest, _ := strings.Cut(place, "/")
	home, in, under := strings.Cut(rest, "/")
	if !under {
		in = home
	}
	return guild, home, in
}

// Author is whoever wrote a message.
type Author struct {
	ID      string
	Name    string // the user name; of a webhook the one it gave itself
	Display string // what they are called here, where that is another name
	Bot     bool
	Webhook string   // the id of the webhook, when one spoke
	Roles   []string // names of the roles
	Member  bool     // a member of the guild, so that Roles are known
	Admin   bool     // owns or administers the guild
}

// Has reports whether somebody has one of the roles, by name. Whoever owns or administers the
// guild has what it could give them anyway.
func (a Author) Has(roles []string) bool {
	return a.Admin || a.Member && slices.ContainsFunc(roles, func(role string) bool {
		return slices.ContainsFunc(a.Roles, func(has string) bool { return strings.EqualFold(has, role) })
	})
}

// Program reports whether no person wrote it. A bridge's webhook speaks for a person.
func (a Author) Program() bool {
	_, bridged := a.bridged()
	return (a.Bot || a.Webhook != "") && !bridged
}

// bridged finds the person behind a bridge: Ada[oblique:12] is Ada.
func (a Author) bridged() (name string, ok bool) {
	if a.Webhook == "" {
		return "", false
	}
	name, rest, ok := strings.Cut(a.Name, "[oblique:")
	name = strings.TrimSpace(name)
	return name, ok && name != "" && strings.HasSuffix(rest, "]")
}

// Participant is the author as the conversation knows them.
func (a Author) Participant() chat.Participant {
	p := chat.Participant{ID: a.ID, Name: cmp.Or(a.Display, a.Name), Kind: chat.Person}
	if name, ok := a.bridged(); ok {
		p.Name = name
	} else if a.Program() {
		p.Kind = chat.Bot
	}
	return p
}

// Message is what was said.
type Message struct {
	ID       string
	In       Channel
	Author   Author
	Text     string
	Mentions []string // ids of users that its text mentions; not the one that a reply rings
	Roles    []string // ids of roles that it mentions
	Everyone bool     // it notifies everybody in the channel
	Named    []Author // those whom it mentions, as far as the platform says who they are
	ReplyTo  string   // the id of the message it answers
	Answers  string   // the name of whoever wrote that; "" if it is not known
	System   bool     // the platform's own notice, or a message with buttons: no words of a conversation

	At     time.Time // when it was said
	Edited time.Time // when it was last changed; zero: never
	Files  []File
	Embeds string   // the words of a program's embeds, beside Text
	Pinned bool     // as far as the platform says so
	Own    bool     // this bot account said it
	Aside  bool     // with Own: under another name, beside the conversation
	Nonce  string   // with Own: the one it was sent with, where the platform gives it back
	Quoted *Message // the message that it answers, where the platform sends it along
}

// File is something that was attached to a message.
type File struct {
	Name string
	Size int64
	URL  string
}

// Agent is somebody of ours who listens in a channel.
type Agent struct {
	Name      string   // as in the thread's id
	User      string   // the id of its user on the platform
	Username  string   // that user's name
	InnerName string   // what it is called in the conversation
	Aliases   []string // what else people call it
	Webhooks  []string // ids of webhooks that it speaks through
	Role      string   // the id of the role that the platform made for it, which people mention by mistake
}

// Names are all the words the agent is called by, the inner name first, each once.
func (a Agent) Names() []string {
	var names []string
	for _, name := range append([]string{a.InnerName, a.Name, a.Username}, a.Aliases...) {
		if name = strings.TrimSpace(name); name != "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, name)
		}
	}
	return names
}

// Wrote reports whether the author is this agent's user or one of its webhooks.
func (a Agent) Wrote(by Author) bool {
	if by.Webhook != "" {
		return slices.Contains(a.Webhooks, by.Webhook)
	}
	return a.User != "" && by.ID == a.User
}

// Mentioned reports whether the message mentions the agent, or the role that is its own.
func (a Agent) Mentioned(m Message) bool {
	return a.User != "" && slices.Contains(m.Mentions, a.User) || a.Role != "" && slices.Contains(m.Roles, a.Role)
}

// Addressed reports whether targets name the agent: nobody means everybody; else one of
// its names is one of the words, or all of them together, whatever their case.
func (a Agent) Addressed(targets string) bool {
	targets = strings.TrimSpace(targets)
	if targets == "" {
		return true
	}
	words := append(strings.Fields(targets), targets)
	return slices.ContainsFunc(words, func(word string) bool {
		if a.User != "" && (word == "<@"+a.User+">" || word == "<@!"+a.User+">") {
			return true
		}
		word = strings.TrimPrefix(word, "@")
		return slices.ContainsFunc(a.Names(), func(name string) bool { return strings.EqualFold(word, name) })
	})
}

// Older reports whether one id was given before the other. The platform's ids grow with
// time; they are compared as the numbers they are, without a limit to their size.
func Older(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// dotCommands are the messages that are orders to us and never words for a model.
var dotCommands = []string{".history", ".config", ".switch"}

// IsDotCommand reports an order like .history: the word at the very beginning, and
// nothing but space behind it.
func IsDotCommand(text string) bool {
	return slices.ContainsFunc(dotCommands, func(word string) bool {
		rest, ok := strings.CutPrefix(text, word)
		return ok && (rest == "" || unicode.IsSpace(rune(rest[0])))
	})
}
