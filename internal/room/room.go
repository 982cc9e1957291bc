// Package room defines the values that describe a chat platform's rooms: who is there, what was
// said where, which agents listen. The packages below it have the rules.
//
// These are plain values without a platform library, network or clock. A connector fills them in,
// applies the rules, and acts on the results.
package room

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"chorus/internal/chat"
)

// Direct takes the place of the guild in direct messages, as in the platform's own links.
const Direct = "@me"

// Kind says what kind of event came.
type Kind string

// The kinds of events. The first four come from the platform, the others from us.
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
// deleted or reacted to. For the last two often only its id is known.
type Event struct {
	Kind    Kind
	Message Message
	Emoji   string // of a reaction: the sign, or the name of a guild's own emoji
	Added   bool   // of a reaction: added, not removed
	By      Author // of a reaction: who reacted
	Raw     any    // what the connector needs to carry it out; no rule reads it
}

// Channel is a place for messages. A platform thread is one too.
type Channel struct {
	Guild  string // "" or Direct for direct messages
	ID     string
	Parent string // of a platform thread: the channel it belongs to
	Name   string
	// HomeName is the name of Home, which for a platform thread is the parent. "" if not known.
	HomeName string
	Private  bool // a platform thread that some people who see its parent do not see
	Board    bool // nobody writes in it directly: it has posts, each a platform thread with a title
}

// Home returns the channel whose agents, settings and memory apply: for a platform thread, the parent.
func (c Channel) Home() string {
	return cmp.Or(c.Parent, c.ID)
}

// Place returns the second part of a channel's thread ids: guild and home. A private thread is a
// place of its own, so that nothing of it can be found from its parent.
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

// PlaceParts splits a place: the guild, the channel whose agents and settings apply, and the
// channel of the conversation, which differs only for private threads.
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
	Name    string // the user name; for a webhook the name it chose
	Display string // what they are called here, if different
	Bot     bool
	Webhook string   // the id of the webhook, if one spoke
	Roles   []string // names of the roles
	Member  bool     // is a member of the guild, so Roles are known
	Admin   bool     // owns or administers the guild
}

// Has reports whether somebody has one of the roles, by name. The owner and administrators of the
// guild count as having all of them, since they could give themselves any.
func (a Author) Has(roles []string) bool {
	return a.Admin || a.Member && slices.ContainsFunc(roles, func(role string) bool {
		return slices.ContainsFunc(a.Roles, func(has string) bool { return strings.EqualFold(has, role) })
	})
}

// Program reports whether the author is not a person. A bridge's webhook speaks for a person.
func (a Author) Program() bool {
	_, bridged := a.bridged()
	return (a.Bot || a.Webhook != "") && !bridged
}

// bridged returns the person behind a bridge: Ada[oblique:12] is Ada.
func (a Author) bridged() (name string, ok bool) {
	if a.Webhook == "" {
		return "", false
	}
	name, rest, ok := strings.Cut(a.Name, "[oblique:")
	name = strings.TrimSpace(name)
	return name, ok && name != "" && strings.HasSuffix(rest, "]")
}

// Participant returns the author as a participant of the conversation.
func (a Author) Participant() chat.Participant {
	p := chat.Participant{ID: a.ID, Name: cmp.Or(a.Display, a.Name), Kind: chat.Person}
	if name, ok := a.bridged(); ok {
		p.Name = name
	} else if a.Program() {
		p.Kind = chat.Bot
	}
	return p
}

// Message is a message in a channel.
type Message struct {
	ID       string
	In       Channel
	Author   Author
	Text     string
	Mentions []string // ids of users that its text mentions; not the one that a reply notifies
	Roles    []string // ids of roles that it mentions
	Everyone bool     // it notifies everybody in the channel
	Named    []Author // the users it mentions, as far as the platform says who they are
	ReplyTo  string   // the id of the message it answers
	Answers  string   // the author of that message; "" if not known
	System   bool     // a notice of the platform, or a message with buttons: not part of a conversation

	At     time.Time // when it was said
	Edited time.Time // when it was last changed; zero if never
	Files  []File
	Embeds string   // the text of a program's embeds, not included in Text
	Pinned bool     // as far as the platform says so
	Own    bool     // this bot account said it
	Aside  bool     // with Own: posted under another name, not part of the conversation
	Nonce  string   // with Own: its nonce, if the platform returns it
	Quoted *Message // the message it answers, if the platform includes it
}

// File is an attachment of a message.
type File struct {
	Name string
	Size int64
	URL  string
}

// Agent is one of our agents that listens in a channel.
type Agent struct {
	Name      string   // as in the thread's id
	User      string   // the id of its user on the platform
	Username  string   // that user's name
	InnerName string   // what it is called in the conversation
	Aliases   []string // other names that people use
	Webhooks  []string // ids of webhooks that it speaks through
	Role      string   // the id of the role that the platform made for it, which people sometimes mention by mistake
}

// Names returns all names of the agent, inner name first, each once.
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

// Mentioned reports whether the message mentions the agent or its role.
func (a Agent) Mentioned(m Message) bool {
	return a.User != "" && slices.Contains(m.Mentions, a.User) || a.Role != "" && slices.Contains(m.Roles, a.Role)
}

// Addressed reports whether targets name the agent. Empty targets mean everybody. Otherwise one of
// its names must be one of the words, or all of them together, ignoring case.
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

// Older reports whether id a was assigned before id b. The platform's ids grow
// with time; they are compared as numbers of any size.
func Older(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// dotCommands are messages that are commands to us and never words for a model.
var dotCommands = []string{".history", ".config", ".switch"}

// IsDotCommand reports whether a text is a command like .history: the
// word at the very beginning, followed only by space.
func IsDotCommand(text string) bool {
	return slices.ContainsFunc(dotCommands, func(word string) bool {
		rest, ok := strings.CutPrefix(text, word)
		return ok && (rest == "" || unicode.IsSpace(rune(rest[0])))
	})
}
