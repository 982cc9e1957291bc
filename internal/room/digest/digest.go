// Package digest decides with how much of a channel's history a conversation begins: the
// newest messages as they are, and what came before them as a summary.
//
// It promises that a summary is paid for once and used until many messages have come since:
// its boundary is a message, not a count from the end. Nothing that was read is lost between
// the two: a message is in the summary or told as it is.
package digest

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// How much is read of a channel, how many messages are told as they are at most, and how
// many of them stay when there are more.
const (
	Fetched   = 50
	Threshold = 20
	Recent    = 14
)

// Message is one of a channel.
type Message struct {
	ID   string
	From chat.Participant
	Ours bool // the agent, or another of the same bot, said it
	Text string
}

// Kept is a summary that was made before.
type Kept struct {
	UpTo    string `json:"upTo"` // the last message it covers
	Summary string `json:"summary"`
}

// Plan is with what a conversation begins.
type Plan struct {
	Summary string    // that there is already; "": none
	Older   []Message // to be summed up, on top of that; none: nothing has to be paid for
	Recent  []Message // as they are, the oldest first
}

// Make is the rule. The messages stand in their order, the oldest first.
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

// behind is where the messages begin that are newer than one.
func behind(list []Message, id string) int {
	i := slices.IndexFunc(list, func(m Message) bool { return room.Older(id, m.ID) })
	if i < 0 {
		return len(list)
	}
	return i
}

// Boundary is what is kept once the older messages have been summed up.
func (p Plan) Boundary(summary string) Kept {
	return Kept{UpTo: p.Older[len(p.Older)-1].ID, Summary: summary}
}

// The words around a summary. The answer keeps the turns apart.
const (
	summaryMark = "[CONVERSATION SUMMARY — earlier messages]"
	understood  = "Understood, I have the conversation context."
)

// Excerpt is what a summary is made of: the one before, and what came since.
func (p Plan) Excerpt() []chat.Line {
	var out []chat.Line
	if p.Summary != "" {
		out = append(out, chat.Line{Role: "user", From: chat.Participant{Name: "summary so far"}, Blocks: chat.TextBlocks(p.Summary)})
	}
	return append(out, lines(p.Older)...)
}

// Lines are the turns a conversation begins with. named: who spoke is told by the
// conversation itself; otherwise their names stand before their words, and turns of the
// same side are one.
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
