// Package digest decides how much of a channel's history a conversation begins with: the
// newest messages as they are, and a summary of what came before.
//
// A summary is paid for once and used until many messages have arrived since: its boundary is a
// message, not a count from the end. Nothing that was read is lost: each message is either in the
// summary or included as it is.
package digest

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// How many messages are read from a channel, how many are included as they are at
// most, and how many of them remain when there are more.
const (
	Fetched   = 50
	Threshold = 20
	Recent    = 14
)

// Message is one of a channel.
type Message struct {
	ID   string
	From chat.Participant
	Ours bool // written by the agent, or by another agent of the same bot
	Text string
}

// Kept is a summary from before.
type Kept struct {
	UpTo    string `json:"upTo"` // the last message it covers
	Summary string `json:"summary"`
}

// Plan says what a conversation begins with.
type Plan struct {
	Summary string    // the existing summary; "" if none
	Older   []Message // messages to summarise in addition; if empty, nothing has to be paid for
	Recent  []Message // as they are, oldest first
}

// Make computes the plan. The messages are in order, oldest first.
func Make(list []Message, kept Kept) Plan {
	p := Plan{Summary: kept.Summary, Recent: list}
	if kept.Summary != "" {
		p.Recent = list[behind(list, kept.UpTo):]
	}
	if len(p.Recent) <= Threshold {
		return p
	}
	cut := len(p.Recent) - Recent
	p.Older, p.Recent = p.Recent[:cut:cut], p.Recent[cut:]
	return p
}

// behind returns the index of the first message that is newer than id.
func behind(list []Message, id string) int {
	i := slices.IndexFunc(list, func(m Message) bool { return room.Older(id, m.ID) })
	if i < 0 {
		return len(list)
	}
	return i
}

// Boundary returns what to keep once the older messages have been summarised.
func (p Plan) Boundary(summary string) Kept {
	return Kept{UpTo: p.Older[len(p.Older)-1].ID, Summary: summary}
}

// The words around a summary. The answer separates the turns.
const (
	summaryMark = "[CONVERSATION SUMMARY — earlier messages]"
	understood  = "Understood, I have the conversation context."
)

// Excerpt returns what a summary is made from: the previous summary and what came since.
func (p Plan) Excerpt() []chat.Line {
	var out []chat.Line
	if p.Summary != "" {
		out = append(out, chat.Line{Role: "user", From: chat.Participant{Name: "summary so far"}, Blocks: chat.TextBlocks(p.Summary)})
	}
	return append(out, lines(p.Older)...)
}

// Lines returns the turns with which a conversation begins. With named, the
// conversation itself says who spoke. Otherwise names precede the words, and
// consecutive turns of the same side are merged.
func (p Plan) Lines(named bool) []chat.Line {
	var out []chat.Line
	if p.Summary != "" {
		out = append(out, chat.Line{Role: "user", From: chat.Participant{Kind: chat.System}, Blocks: chat.TextBlocks(summaryMark + "\n" + p.Summary)},
			chat.Line{Role: "assistant", From: chat.Participant{Kind: chat.Agent}, Blocks: chat.TextBlocks(understood)})
	}
	for _, l := range lines(p.Recent) {
		if named {
			out = append(out, l)
			continue
		}
		text := l.Blocks.Text()
		if l.Role == "user" {
			text = fmt.Sprintf("[from %s]: %s", l.From.Name, text)
		}
		if n := len(out); n > 0 && out[n-1].Role == l.Role {
			text = out[n-1].Blocks.Text() + "\n" + text
			out = out[:n-1]
		}
		l.Blocks = chat.TextBlocks(text)
		out = append(out, l)
	}
	return out
}

func lines(list []Message) []chat.Line {
	var out []chat.Line
	for _, m := range list {
		if strings.TrimSpace(m.Text) == "" {
			continue
		}
		l := chat.Line{Role: "user", From: m.From, Blocks: chat.TextBlocks(m.Text)}
		if m.Ours {
			l.Role, l.From = "assistant", chat.Participant{Kind: chat.Agent}
		}
		out = append(out, l)
	}
	return out
}
