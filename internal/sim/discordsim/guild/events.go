package guild

import (
	"encoding/json"
	"slices"
)

// Event is something that happened, on its way to those who may see it.
type Event struct {
	Name     string
	intent   int      // which intent brings it; 0: everybody gets it
	dmIntent int      // the same where it happened in a direct message
	Channel  *Channel // who does not see this channel does not hear of it; nil: everybody does
	only     ID       // nobody but this account
	message  *Message // data is this message, as each one sees it
	data     any
}

// Reaches is whether an account may hear of an event at all.
func (g *Guild) Reaches(e Event, who *Account) bool {
	if e.only != 0 {
		return e.only == who.ID
	}
	return e.Channel == nil || g.Sees(who, e.Channel)
}

// Needs are the intents that bring an event; 0: everybody gets it.
func (e Event) Needs() int {
	if e.Channel != nil && e.Channel.Type == TypeDM {
		return e.dmIntent
	}
	return e.intent
}

// Render is an event's data as an account sees it; nil: as the guild itself does. Who may not read the content gets
// messages without what people wrote, unless they are its own, name it or come directly.
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

// hidden is a message for a bot that may not read what people write.
func hidden(m Message) Message {
	m.Content, m.Embeds, m.Attachments, m.Components, m.Poll, m.Snapshots = "", []object{}, []Attachment{}, []object{}, nil, nil
	return m
}
