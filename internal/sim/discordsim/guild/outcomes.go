package guild

import (
	"encoding/json"
	"fmt"

	"chorus/internal/sim/discordsim/components"
	"chorus/internal/sim/discordsim/jsonobject"
)

// Interaction is the state of a click or a command.
type Interaction struct {
	ID ID
	// Answered is true from the first answer on, including a deferral; Failed: there was none in time.
	Answered, Failed bool
	// Message is the answer, if it is a message; 0: there is none yet.
	Message ID
	Modal   json.RawMessage
	Choices json.RawMessage
}

func (i *interaction) state() Interaction {
	out := Interaction{ID: i.id, Answered: i.acked, Failed: i.failed, Message: i.original}
	if i.modal != nil {
		out.Modal, _ = json.Marshal(i.modal) // it came as JSON
	}
	if i.choices != nil {
		out.Choices, _ = json.Marshal(i.choices) // it came as JSON
	}
	return out
}

// Outcome returns the state of an interaction; false: there is none with this id.
func (g *Guild) Outcome(id ID) (Interaction, bool) {
	i := find(g.interactions, func(i *interaction) bool { return i.id == id })
	if i == nil {
		return Interaction{}, false
	}
	return i.state(), true
}

// interactionByToken returns the interaction of a token; nil: there is none.
func (g *Guild) interactionByToken(token string) *interaction {
	return find(g.interactions, func(i *interaction) bool { return i.token == token })
}

// InteractionApp returns the application behind the token of an interaction; nil: there is none.
func (g *Guild) InteractionApp(token string) *Account {
	if i := g.interactionByToken(token); i != nil {
		return i.app
	}
	return nil
}

// InteractionMessages returns the messages of an interaction, by its token: its answer, and the one that was clicked.
func (g *Guild) InteractionMessages(token string) (out []ID) {
	if i := g.interactionByToken(token); i != nil {
		out = append(out, i.original)
		if i.message != nil {
			out = append(out, i.message.ID)
		}
	}
	return out
}

// Submission is what a person's client sends for the open modal, with values by custom id.
func (g *Guild) Submission(person, customID string, values map[string]string) (*InteractionBody, error) {
	for n := len(g.interactions) - 1; n >= 0; n-- {
		i := g.interactions[n]
		if i.person.Username == person && jsonobject.Text(i.modal, "custom_id") == customID {
			filled := components.Fill(jsonobject.List(i.modal, "components"), values)
			return &InteractionBody{Type: interactModal, ApplicationID: i.app.ID, ChannelID: i.channel.ID,
				Data: object{"custom_id": customID, "components": filled}}, nil
		}
	}
	return nil, fmt.Errorf("%s has no modal %q open", person, customID)
}

// InteractionsView returns all interactions with their states.
func (g *Guild) InteractionsView() []object {
	asked := []object{}
	for _, i := range g.interactions {
		asked = append(asked, object{"id": i.id, "type": i.kind, "bot": i.app.Username, "person": i.person.Username, "channel_id": i.channel.ID,
			"answered": i.acked, "failed": i.failed, "answer": i.answer, "message_id": i.original, "data": i.data})
	}
	return asked
}
