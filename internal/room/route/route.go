// Package route says which conversations a message belongs to: who hears it
// and, where no other rule is needed, who answers.
//
// The result depends only on the message, the agents that listen there and what is known of
// earlier messages, so a message that arrives twice is routed the same way twice. Thread ids are
// discord:<guild>/<channel>:<root>@<agent>. A platform thread has the place of its parent channel,
// and therefore its agents and its memory.
package route

import (
	"cmp"
	"fmt"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/room"
	"chorus/internal/window"
)

// Routing says what counts as one conversation in a channel.
type Routing string

// The routings.
const (
	Reply  Routing = "reply"  // a new message begins one; a reply continues the one that produced the message
	Thread Routing = "thread" // each platform thread is one
	Room   Routing = "room"   // the whole channel is one, with rules about who speaks
)

// Answer says which messages an agent answers outside of rooms.
type Answer string

// The choices.
const (
	AnswerBound     Answer = "bound"     // in channels that are bound to it, everything that is not for others; elsewhere mentions and replies
	AnswerMentioned Answer = "mentioned" // mentions and replies
	AnswerAll       Answer = "all"       // everything that does not mention or reply to another of our agents
)

// Listener is an agent that reads the channel.
type Listener struct {
	room.Agent
	Routing Routing     // "" means Reply
	Intake  chat.Intake // "" means Queue for what begins a conversation, and Inject for what continues one
	Answer  Answer      // "" means AnswerBound
	Bound   bool        // the channel, or the one above it, is bound to the agent
}

// Known is what is known of earlier messages, and on which platform. The functions may be nil.
type Known struct {
	Platform string // the first part of the threads' ids
	// Produced returns the thread whose answer (or status, or card) the message is.
	Produced func(message string) (chat.ThreadID, bool)
	// Joined reports whether such a thread exists already.
	Joined func(thread chat.ThreadID) bool
}

func (k Known) produced(message string) (chat.ThreadID, bool) {
	if k.Produced == nil || message == "" {
		return "", false
	}
	return k.Produced(message)
}

// Way says how a message came to a thread.
type Way string

// The ways.
const (
	Opened    Way = "opened"    // it begins the thread
	Continued Way = "continued" // it replies to a message of the thread
	InThread  Way = "in thread" // it was posted in the platform thread that is the thread
	InRoom    Way = "in room"   // it was said in the room
)

// Heard is one thread that a message goes to.
type Heard struct {
	Thread chat.ThreadID
	Agent  room.Agent
	Way    Way
	Intake chat.Intake
	Post   string // the channel where an answer goes
	Open   bool   // the connector opens a platform thread on the message, with the message's id
	Prompt bool   // it is to be answered; always false in a room, where package activate decides
	Hidden bool   // hidden from models by a dot at the beginning
}

// Message says where a message goes, in the order of the threads' ids. Commands to us,
// notices of the platform, and an agent's own words go nowhere.
func Message(m room.Message, listeners []Listener, known Known) ([]Heard, error) {
	if m.System || m.ID == "" || room.IsDotCommand(m.Text) {
		return nil, nil
	}
	speaker := ""
	if thread, ok := known.produced(m.ID); ok {
		speaker = thread.Agent()
	}
	var out []Heard
	for _, l := range listeners {
		if speaker == l.Name && speaker != "" || speaker == "" && l.Wrote(m.Author) {
			continue
		}
		h, ok, err := one(m, l, listeners, known)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Heard) int { return cmp.Compare(a.Thread, b.Thread) })
	return slices.CompactFunc(out, func(a, b Heard) bool { return a.Thread == b.Thread }), nil
}

func one(m room.Message, l Listener, all []Listener, known Known) (Heard, bool, error) {
	h := Heard{Agent: l.Agent, Post: m.In.ID, Intake: cmp.Or(l.Intake, chat.Queue)}
	var root string
	switch cmp.Or(l.Routing, Reply) {
	case Room:
		h.Way, h.Hidden, root = InRoom, Hidden(m.Text), m.In.ID
	case Thread:
		if !addressed(m, l, all, known) {
			return Heard{}, false, nil
		}
		h.Prompt, h.Way, root = true, InThread, m.In.ID
		if m.In.Parent == "" && m.In.Guild != "" && m.In.Guild != room.Direct {
			if thread, ok := continued(m, l, known); ok && thread.Place() == m.In.Place() {
				h.Thread, h.Way, h.Intake, h.Post = thread, Continued, cmp.Or(l.Intake, chat.Inject), thread.Thread()
				return h, true, nil
			}
			h.Way, h.Open, root, h.Post = Opened, true, m.ID, m.ID
		}
	case Reply:
		if !addressed(m, l, all, known) {
			return Heard{}, false, nil
		}
		h.Prompt = true
		if thread, ok := continued(m, l, known); ok {
			h.Thread, h.Way, h.Intake = thread, Continued, cmp.Or(l.Intake, chat.Inject)
			return h, true, nil
		}
		h.Way, root = Opened, m.ID
		if m.In.Parent != "" {
			h.Way, root = InThread, m.In.ID
		}
	default:
		return Heard{}, false, fmt.Errorf("routing %q: there are reply, thread and room", l.Routing)
	}
	id, err := chat.NewThreadID(known.Platform, m.In.Place(), root, l.Name)
	if err != nil {
		return Heard{}, false, fmt.Errorf("route message %s: %w", m.ID, err)
	}
	h.Thread = id
	return h, true, nil
}

// continued finds the thread of this agent that a reply continues. In a platform
// thread that was opened on an answer, every message continues it.
func continued(m room.Message, l Listener, known Known) (chat.ThreadID, bool) {
	for _, message := range []string{m.ReplyTo, starter(m.In)} {
		if thread, ok := known.produced(message); ok && thread.Agent() == l.Name {
			return thread, true
		}
	}
	return "", false
}

// starter returns the message on which a platform thread was opened; they have the same id.
func starter(c room.Channel) string {
	if c.Parent == "" {
		return ""
	}
	return c.ID
}

// addressed reports whether this agent should answer the message, outside of rooms. A reply is
// for whoever is replied to, a mention for whoever is mentioned. For other messages its Answer
// decides, and of several agents that would answer the same words only one does. Programs must
// mention us, so that no two of them talk endlessly.
func addressed(m room.Message, l Listener, all []Listener, known Known) bool {
	if l.Mentioned(m) {
		return true
	}
	if m.Author.Program() {
		return false
	}
	if thread, ok := known.produced(m.ReplyTo); ok && listens(all, thread.Agent()) {
		return thread.Agent() == l.Name
	}
	answer := cmp.Or(l.Answer, AnswerBound)
	if answer != AnswerAll {
		if m.ReplyTo != "" && m.Quoted != nil && l.Wrote(m.Quoted.Author) {
			return true // said before this home existed
		}
		if forOthers(m) {
			return false
		}
	}
	if thread, ok := known.produced(starter(m.In)); ok && listens(all, thread.Agent()) {
		return thread.Agent() == l.Name
	}
	switch {
	case answer == AnswerAll:
		return !slices.ContainsFunc(all, func(other Listener) bool { return other.Mentioned(m) })
	case joined(m, l, known):
		return true
	case answer == AnswerMentioned:
		return false
	default:
		return l.Bound && l.Name == firstBound(all) && !slices.ContainsFunc(all, func(other Listener) bool { return joined(m, other, known) })
	}
}

// forOthers reports whether words in an agent's channel are not for the agent: for
// everybody, for those they mention, or from one person to another.
func forOthers(m room.Message) bool {
	answersOther := m.ReplyTo != "" && m.Quoted != nil && m.Quoted.Author.ID != m.Author.ID
	return m.Everyone || len(m.Mentions) > 0 || len(m.Roles) > 0 || answersOther
}

// joined reports whether the message is in a platform thread that is a conversation with the agent.
func joined(m room.Message, l Listener, known Known) bool {
	if l.Routing != Thread || m.In.Parent == "" || known.Joined == nil {
		return false
	}
	id, err := chat.NewThreadID(known.Platform, m.In.Place(), m.In.ID, l.Name)
	return err == nil && known.Joined(id)
}

// firstBound returns the one agent that answers for all to which the channel is bound, or "".
func firstBound(all []Listener) string {
	first := ""
	for _, l := range all {
		if l.Bound && cmp.Or(l.Answer, AnswerBound) == AnswerBound && l.Routing != Room && (first == "" || l.Name < first) {
			first = l.Name
		}
	}
	return first
}

func listens(all []Listener, agent string) bool {
	return slices.ContainsFunc(all, func(l Listener) bool { return l.Name == agent })
}

// Hidden reports whether words in a room are for people only, because they begin with a dot.
func Hidden(text string) bool { return window.Hidden(window.Item{Text: text, Heard: true}) }
