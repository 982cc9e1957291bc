package guild

import (
	"encoding/json"
	"slices"
)

// Event is an event for everybody who may see it.
type Event struct {
	Name     string
	intent   int      // the intent it needs; 0: everybody gets it
	dmIntent int      // the same for direct messages
	Channel  *Channel // only for those who see this channel; nil: for everybody
	only     ID       // only for this account
	message  *Message // data is this message, rendered per viewer
	data     any
}

// Reaches reports whether an account may get an event at all.
func (g *Guild) Reaches(e Event, who *Account) bool {
	if e.only != 0 {
		return e.only == who.ID
	}
	return e.Channel == nil || g.Sees(who, e.Channel)
}

// Needs returns the intents for an event; 0: everybody gets it.
func (e Event) Needs() int {
	if e.Channel != nil && e.Channel.Type == TypeDM {
		return e.dmIntent
	}
	return e.intent
}

// Render returns an event's data for an account; nil: for the guild itself. Accounts that may not read the content get
// messages without text, unless these are their own, mention them or are direct.
func (g *Guild) Render(e Event, who *Account, content bool) []byte {
	if e.message == nil {
		return rendered(e.data)
	}
	var viewer ID
	if who != nil {
		viewer = who.ID
	}
	m := g.ViewMessage(e.message, viewer, true)
	if !content && m.Author.ID != viewer && e.Channel.Type != TypeDM && !slices.Contains(m.mentions, viewer) {
		m = hidden(m)
	}
	return rendered(m)
}

func rendered(data any) []byte {
	raw, err := json.Marshal(data)
	if err != nil {
		return []byte("null")
	}
	return raw
}

// hidden is a message for a bot that may not read its text.
func hidden(m Message) Message {
	m.Content, m.Embeds, m.Attachments, m.Components, m.Poll, m.Snapshots = "", []object{}, []Attachment{}, []object{}, nil, nil
	return m
}
