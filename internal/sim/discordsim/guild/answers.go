package guild

import (
	"encoding/json"
	"net/http"
	"slices"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/components"
)

// The kinds of first answers.
const (
	answerMessage     = 4
	answerDefer       = 5
	answerDeferUpdate = 6
	answerUpdate      = 7
	answerChoices     = 8
	answerModal       = 9
)

// CallbackBody is an application's first answer.
type CallbackBody struct {
	Type int             `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Callback takes the first answer to an interaction, within three seconds and once. It returns Discord's reply for callers that want one.
func (g *Guild) Callback(id ID, token string, b *CallbackBody, files []Upload) (object, error) {
	i := find(g.interactions, func(i *interaction) bool { return i.id == id && i.token == token })
	switch {
	case i == nil, i.failed:
		return nil, apierror.NotFound(10062, "interaction")
	case i.acked:
		return nil, apierror.BadRequest(40060, "Interaction has already been acknowledged.")
	case g.Now().Sub(i.made) > g.Scale(answerWithin):
		return nil, apierror.NotFound(10062, "interaction")
	}
	fits := map[int]bool{
		answerMessage: i.kind != InteractAutocomplete, answerDefer: i.kind != InteractAutocomplete,
		answerDeferUpdate: i.message != nil, answerUpdate: i.message != nil,
		answerChoices: i.kind == InteractAutocomplete, answerModal: i.kind == InteractCommand || i.kind == InteractComponent,
	}
	if !fits[b.Type] {
		return nil, apierror.Wrong("type", "INTERACTION_RESPONSE_TYPE_INVALID", "Interaction response type %d is not valid here", b.Type)
	}
	m, err := g.firstAnswer(i, b, files)
	if err != nil {
		return nil, err
	}
	i.acked, i.answer = true, b.Type
	g.tellPerson(i, "INTERACTION_SUCCESS", nil)
	about := object{"id": i.id, "type": i.kind}
	out := object{"interaction": about}
	if m != nil {
		about["response_message_id"] = m.ID
		about["response_message_loading"] = m.Flags&FlagLoading != 0
		about["response_message_ephemeral"] = m.ephemeral()
		out["resource"] = object{"type": b.Type, "message": g.ViewMessage(m, i.app.ID, false)}
	}
	return out, nil
}

func (g *Guild) firstAnswer(i *interaction, b *CallbackBody, files []Upload) (*Message, error) {
	switch b.Type {
	case answerMessage, answerDefer:
		body, err := DecodeMessage(b.Data, files)
		if err != nil {
			return nil, apierror.InData(err)
		}
		m, err := g.answerWith(i, body, b.Type == answerDefer)
		if err == nil {
			i.original = m.ID
		}
		return m, err
	case answerDeferUpdate:
		i.original = i.message.ID
		return i.message, nil
	case answerUpdate:
		body, err := DecodeEdit(b.Data, files)
		if err != nil {
			return nil, apierror.InData(err)
		}
		i.original = i.message.ID
		return i.message, g.Edit(nil, i.channel, i.message, body)
	case answerChoices:
		var data struct {
			Choices []object `json:"choices"`
		}
		if err := apierror.Decode(b.Data, &data); err != nil {
			return nil, apierror.InData(err)
		}
		if len(data.Choices) > 25 {
			return nil, apierror.Wrong("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		i.choices = data.Choices
		g.tellPerson(i, "APPLICATION_COMMAND_AUTOCOMPLETE_RESPONSE", object{"choices": data.Choices})
		return nil, nil
	}
	return nil, g.openModal(i, b.Data)
}

func (g *Guild) openModal(i *interaction, raw json.RawMessage) error {
	var modal object
	if err := apierror.Decode(raw, &modal); err != nil {
		return apierror.InData(err)
	}
	if err := components.CheckModal(modal); err != nil {
		return err
	}
	i.modal = modal
	g.tellPerson(i, "INTERACTION_MODAL_CREATE", object{
		"application": object{"id": i.app.ID}, "channel_id": i.channel.ID,
		"custom_id": modal["custom_id"], "title": modal["title"], "components": modal["components"],
	})
	return nil
}

// answerWith writes a message as an answer.
func (g *Guild) answerWith(i *interaction, body *messageBody, loading bool) (*Message, error) {
	p := post{author: i.app.User, channel: i.channel, body: body, webhook: i.app.ID, app: i.app.ID, caused: i}
	switch {
	case i.kind == InteractCommand && i.data["type"] == commandChat:
		p.kind = kindChatInput
	case i.kind == InteractCommand:
		p.kind = kindContextMenu
	case i.message != nil && i.message.seenBy == 0:
		body.Reference = &Reference{MessageID: i.message.ID, Fail: new(bool)}
	}
	if body.flags()&FlagEphemeral != 0 {
		p.flags |= FlagEphemeral
		p.seenBy = i.person.ID
	}
	if loading {
		p.flags |= FlagLoading
	}
	m, err := g.put(p)
	if err == nil {
		i.written = append(i.written, m.ID)
	}
	return m, err
}

// follow finds the interaction of a follow-up's token, while that is valid.
func (g *Guild) follow(app ID, token string) (*interaction, error) {
	i := g.interactionByToken(token)
	switch {
	case i == nil || i.app.ID != app:
		return nil, apierror.NotFound(10015, "Webhook")
	case g.Now().Sub(i.made) > g.Scale(tokenLives):
		return nil, apierror.Refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
	case !i.acked:
		return nil, apierror.NotFound(10015, "Webhook")
	}
	return i, nil
}

// FollowUp writes another answer; the first one after a deferral fills the waiting message.
func (g *Guild) FollowUp(app ID, token string, b *messageBody) (*Message, error) {
	i, err := g.follow(app, token)
	if err != nil {
		return nil, err
	}
	if m := i.channel.Message(i.original); i.answer == answerDefer && m != nil && m.Flags&FlagLoading != 0 {
		if b.empty() {
			return nil, apierror.BadRequest(50006, "Cannot send an empty message")
		}
		return m, g.FillAnswer(i.channel, m, b)
	}
	return g.answerWith(i, b, false)
}

// FillAnswer edits an answer; a deferred one is then complete, and counts as new rather than edited.
func (g *Guild) FillAnswer(c *Channel, m *Message, b *messageBody) error {
	waited := m.Flags&FlagLoading != 0
	m.Flags &^= FlagLoading
	if err := g.Edit(nil, c, m, b); err != nil {
		if waited {
			m.Flags |= FlagLoading
		}
		return err
	}
	return nil
}

// Answer returns a message that an application wrote as an answer, by its id (0: the first one), with its channel.
func (g *Guild) Answer(app ID, token string, id ID) (*Channel, *Message, error) {
	i, err := g.follow(app, token)
	if err != nil {
		return nil, nil, err
	}
	if id == 0 {
		id = i.original
	}
	m := i.channel.Message(id)
	if m == nil || id != i.original && !slices.Contains(i.written, id) {
		return nil, nil, apierror.NotFound(10008, "Message")
	}
	return i.channel, m, nil
}
