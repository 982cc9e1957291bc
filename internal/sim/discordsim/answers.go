package discordsim

import (
	"encoding/json"
	"net/http"
	"slices"
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

// callbackBody is an application's first answer.
type callbackBody struct {
	Type int             `json:"type"`
	Data json.RawMessage `json:"data"`
}

// callback takes the first answer to an interaction, in its three seconds and once.
func (w *world) callback(id ID, token string, b *callbackBody, files []upload) (*interaction, *Message, error) {
	i := find(w.interactions, func(i *interaction) bool { return i.id == id && i.token == token })
	switch {
	case i == nil, i.failed:
		return nil, nil, notFound(10062, "interaction")
	case i.acked:
		return nil, nil, badRequest(40060, "Interaction has already been acknowledged.")
	case w.now().Sub(i.made) > w.scale(answerWithin):
		return nil, nil, notFound(10062, "interaction")
	}
	fits := map[int]bool{
		answerMessage: i.kind != interactAutocomplete, answerDefer: i.kind != interactAutocomplete,
		answerDeferUpdate: i.message != nil, answerUpdate: i.message != nil,
		answerChoices: i.kind == interactAutocomplete, answerModal: i.kind == interactCommand || i.kind == interactComponent,
	}
	if !fits[b.Type] {
		return nil, nil, wrong("type", "INTERACTION_RESPONSE_TYPE_INVALID", "Interaction response type %d is not valid here", b.Type)
	}
	m, err := w.firstAnswer(i, b, files)
	if err != nil {
		return nil, nil, err
	}
	i.acked, i.answer = true, b.Type
	w.tellPerson(i, "INTERACTION_SUCCESS", nil)
	return i, m, nil
}

func (w *world) firstAnswer(i *interaction, b *callbackBody, files []upload) (*Message, error) {
	switch b.Type {
	case answerMessage, answerDefer:
		body, err := decodeMessage(b.Data, files)
		if err != nil {
			return nil, nested(err)
		}
		m, err := w.answerWith(i, body, b.Type == answerDefer)
		if err == nil {
			i.original = m.ID
		}
		return m, err
	case answerDeferUpdate:
		i.original = i.message.ID
		return i.message, nil
	case answerUpdate:
		body, err := decodeEdit(b.Data, files)
		if err != nil {
			return nil, nested(err)
		}
		i.original = i.message.ID
		return i.message, w.edit(nil, i.channel, i.message, body)
	case answerChoices:
		var data struct {
			Choices []object `json:"choices"`
		}
		if err := decode(b.Data, &data); err != nil {
			return nil, nested(err)
		}
		if len(data.Choices) > 25 {
			return nil, wrong("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		i.choices = data.Choices
		w.tellPerson(i, "APPLICATION_COMMAND_AUTOCOMPLETE_RESPONSE", object{"choices": data.Choices})
		return nil, nil
	}
	return nil, w.openModal(i, b.Data)
}

// nested moves what is wrong with a message under the "data" that it came in.
func nested(err error) error {
	if e, ok := err.(*apiError); ok && e.Errors != nil {
		return &apiError{status: e.status, Code: e.Code, Message: e.Message, Errors: map[string]any{"data": e.Errors}}
	}
	return err
}

func (w *world) openModal(i *interaction, raw json.RawMessage) error {
	var modal object
	if err := decode(raw, &modal); err != nil {
		return nested(err)
	}
	f := &form{}
	f.between("data.title", len([]rune(textOf(modal, "title"))), 1, 45)
	f.between("data.custom_id", len([]rune(textOf(modal, "custom_id"))), 1, 100)
	parts := listOf(modal, "components")
	f.between("data.components", len(parts), 1, 5)
	check := &componentCheck{f: f, ids: map[string]bool{}}
	for n, part := range parts {
		kind := kindOf(part)
		if kind != componentRow && kind != componentLabel && kind != componentText {
			f.add(index("data.components", n)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1, 10, 18).")
			continue
		}
		check.one(index("data.components", n), part)
	}
	if err := f.err(); err != nil {
		return err
	}
	i.modal = modal
	w.tellPerson(i, "INTERACTION_MODAL_CREATE", object{
		"application": object{"id": i.app.ID}, "channel_id": i.channel.ID,
		"custom_id": modal["custom_id"], "title": modal["title"], "components": modal["components"],
	})
	return nil
}

// answerWith writes a message as an answer.
func (w *world) answerWith(i *interaction, body *messageBody, loading bool) (*Message, error) {
	p := post{author: i.app.User, channel: i.channel, body: body, webhook: i.app.ID, app: i.app.ID, caused: i}
	switch {
	case i.kind == interactCommand && i.data["type"] == commandChat:
		p.kind = kindChatInput
	case i.kind == interactCommand:
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
	m, err := w.put(p)
	if err == nil {
		i.written = append(i.written, m.ID)
	}
	return m, err
}

// follow finds the interaction of a follow-up's token, while that lives.
func (w *world) follow(app ID, token string) (*interaction, error) {
	i := find(w.interactions, func(i *interaction) bool { return i.token == token })
	switch {
	case i == nil || i.app.ID != app:
		return nil, notFound(10015, "Webhook")
	case w.now().Sub(i.made) > w.scale(tokenLives):
		return nil, refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
	case !i.acked:
		return nil, notFound(10015, "Webhook")
	}
	return i, nil
}

// followUp writes another answer; the first one after a deferral fills the message that waits.
func (w *world) followUp(i *interaction, b *messageBody) (*Message, error) {
	if m := i.channel.message(i.original); i.answer == answerDefer && m != nil && m.Flags&FlagLoading != 0 {
		if b.empty() {
			return nil, badRequest(50006, "Cannot send an empty message")
		}
		return m, w.fill(i, m, b)
	}
	return w.answerWith(i, b, false)
}

// fill edits an answer; one that waited is then there, and counts as new rather than edited.
func (w *world) fill(i *interaction, m *Message, b *messageBody) error {
	waited := m.Flags&FlagLoading != 0
	m.Flags &^= FlagLoading
	if err := w.edit(nil, i.channel, m, b); err != nil {
		if waited {
			m.Flags |= FlagLoading
		}
		return err
	}
	return nil
}

// answered is a message of an interaction by its id; 0: the first answer.
func (w *world) answered(i *interaction, id ID) (*Message, error) {
	if id == 0 {
		id = i.original
	}
	m := i.channel.message(id)
	if m == nil || id != i.original && !slices.Contains(i.written, id) {
		return nil, notFound(10008, "Message")
	}
	return m, nil
}
