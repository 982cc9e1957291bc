package discordsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Said is what a person says beyond text.
type Said struct {
	Text string
	// Reply is the message it answers; 0: none.
	Reply ID
	Files map[string][]byte
	// Lie changes what the message says of each file; nil: the truth.
	Lie func(*Attachment)
}

// as does something as a person or a bot, with the lock held.
func (s *Sim) as(name string, do func(*account) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.w.accountNamed(name)
	if a == nil {
		return fmt.Errorf("there is nobody called %q", name)
	}
	return do(a)
}

// in finds a channel by its name or id.
func (w *world) in(name string) (*Channel, error) {
	if c := w.channelNamed(name); c != nil {
		return c, nil
	}
	if id, err := ParseID(name); err == nil {
		if c := w.channel(id); c != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no channel %q", name)
}

// holds finds a message anywhere.
func (w *world) holds(id ID) (*Channel, *Message, error) {
	for _, c := range w.channels {
		if m := c.message(id); m != nil {
			return c, m, nil
		}
	}
	return nil, nil, fmt.Errorf("there is no message %s", id)
}

// Say is a person writing into a channel, named by its name or its id.
func (s *Sim) Say(person, channel, text string) (ID, error) {
	return s.Post(person, channel, Said{Text: text})
}

// Reply is a person answering a message, where that is.
func (s *Sim) Reply(person string, to ID, text string) (ID, error) {
	s.mu.Lock()
	c, _, err := s.w.holds(to)
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return s.Post(person, c.ID.String(), Said{Text: text, Reply: to})
}

// Post is Say with a reply or with files.
func (s *Sim) Post(person, channel string, what Said) (id ID, err error) {
	err = s.as(person, func(a *account) error {
		c, err := s.w.in(channel)
		if err != nil {
			return err
		}
		if _, err := s.w.place(a, c.ID, 0); err != nil {
			return err
		}
		b := &messageBody{Content: &what.Text, keys: map[string]bool{"content": true}}
		if what.Reply != 0 {
			b.Reference = &Reference{MessageID: what.Reply}
		}
		for _, name := range slices.Sorted(maps.Keys(what.Files)) {
			b.files = append(b.files, upload{name: name, data: what.Files[name]})
		}
		b.lie = what.Lie
		f := &form{}
		b.check(f)
		if err := f.err(); err != nil {
			return err
		}
		m, err := s.w.send(a, c, b)
		if err == nil {
			id = m.ID
		}
		return err
	})
	return id, err
}

// Edit is somebody changing the text of their message.
func (s *Sim) Edit(person string, message ID, text string) error {
	return s.as(person, func(a *account) error {
		c, m, err := s.w.holds(message)
		if err != nil {
			return err
		}
		return s.w.edit(a, c, m, &messageBody{Content: &text, keys: map[string]bool{"content": true}})
	})
}

// Delete is somebody deleting a message of theirs, or one that they may delete.
func (s *Sim) Delete(person string, message ID) error {
	return s.as(person, func(a *account) error {
		c, m, err := s.w.holds(message)
		if err != nil {
			return err
		}
		if m.Author.ID != a.ID && !s.w.rights(a, c).Has(PermManageMessages) {
			return noPermission()
		}
		s.w.remove(c, message)
		return nil
	})
}

// React puts an emoji under a message; Unreact takes it away.
func (s *Sim) React(person string, message ID, emoji string) error {
	return s.reaction(person, message, emoji, s.w.react)
}

// Unreact takes a person's emoji away.
func (s *Sim) Unreact(person string, message ID, emoji string) error {
	return s.reaction(person, message, emoji, func(a *account, c *Channel, m *Message, e Emoji) error {
		return s.w.unreact(a.ID, c, m, e)
	})
}

func (s *Sim) reaction(person string, message ID, emoji string, do func(*account, *Channel, *Message, Emoji) error) error {
	return s.as(person, func(a *account) error {
		c, m, err := s.w.holds(message)
		if err != nil {
			return err
		}
		e, err := parseEmoji(emoji)
		if err != nil {
			return err
		}
		return do(a, c, m, e)
	})
}

// Unfurl adds an embed to a message, as Discord does for a link: an update that is no edit.
func (s *Sim) Unfurl(message ID, title string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := s.w.holds(message)
	if err != nil {
		return err
	}
	m.Embeds = append(m.Embeds, object{"type": "link", "title": title})
	s.w.tellMessage("MESSAGE_UPDATE", c, m, nil)
	return nil
}

// Pin pins a message, or unpins it.
func (s *Sim) Pin(person string, message ID, on bool) error {
	return s.as(person, func(a *account) error {
		c, m, err := s.w.holds(message)
		if err != nil {
			return err
		}
		return s.w.pin(a, c, m, on)
	})
}

// OpenThread opens a thread on a message and returns its id.
func (s *Sim) OpenThread(person string, message ID, name string) (id ID, err error) {
	err = s.as(person, func(a *account) error {
		c, m, err := s.w.holds(message)
		if err != nil {
			return err
		}
		t, err := s.w.threadOn(a, c, m, &threadBody{Name: name})
		if err == nil {
			id = t.ID
		}
		return err
	})
	return id, err
}

// Archive archives a thread, locked or not.
func (s *Sim) Archive(thread ID, locked bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.w.channel(thread)
	if t == nil || !t.thread() {
		return fmt.Errorf("there is no thread %s", thread)
	}
	t.Metadata.Archived, t.Metadata.Locked, t.Metadata.ArchivedAt = true, locked, s.w.now()
	s.w.tellChannel("THREAD_UPDATE", t)
	return nil
}

// DeleteChannel deletes a channel, by its name or id, with everything in it.
func (s *Sim) DeleteChannel(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.w.in(name)
	if err == nil {
		s.w.dropChannel(c)
	}
	return err
}

// Click is a person pressing a button, or choosing values of a select menu.
func (s *Sim) Click(person string, message ID, customID string, values ...string) (Interaction, error) {
	data := object{"custom_id": customID}
	if len(values) > 0 {
		list := []any{}
		for _, v := range values {
			list = append(list, v)
		}
		data["values"] = list
	}
	return s.interact(person, func() (*interactionBody, error) {
		c, _, err := s.w.holds(message)
		if err != nil {
			return nil, err
		}
		return &interactionBody{Type: interactComponent, ChannelID: c.ID, MessageID: message, Data: data}, nil
	})
}

// Slash is a person using a bot's command: "agent init" is the command agent with its
// subcommand init. Options are by their names.
func (s *Sim) Slash(person, channel, bot, command string, options map[string]any) (Interaction, error) {
	return s.command(interactCommand, person, channel, bot, command, options, "")
}

// Complete asks a bot for what could stand in the option called focus.
func (s *Sim) Complete(person, channel, bot, command string, options map[string]any, focus string) (Interaction, error) {
	return s.command(interactAutocomplete, person, channel, bot, command, options, focus)
}

// Menu is a person using a bot's command in the menu of a message.
func (s *Sim) Menu(person, bot, command string, message ID) (Interaction, error) {
	return s.interact(person, func() (*interactionBody, error) {
		c, _, err := s.w.holds(message)
		if err != nil {
			return nil, err
		}
		app := s.w.accountNamed(bot)
		if app == nil {
			return nil, fmt.Errorf("there is no bot %q", bot)
		}
		return &interactionBody{Type: interactCommand, ApplicationID: app.ID, ChannelID: c.ID,
			Data: object{"name": command, "target_id": message.String()}}, nil
	})
}

// Upload puts a file where the clients of people put those that go along with a command, and
// gives the value of the option that names it.
func (s *Sim) Upload(channel, name string, data []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.w.in(channel)
	if err != nil {
		return "", err
	}
	list, err := s.w.keep(c, &messageBody{files: []upload{{name: name, data: data}}}, nil)
	if err != nil {
		return "", err
	}
	s.w.uploads[list[0].ID] = list[0]
	return list[0].ID.String(), nil
}

func (s *Sim) command(kind int, person, channel, bot, command string, options map[string]any, focus string) (Interaction, error) {
	return s.interact(person, func() (*interactionBody, error) {
		c, err := s.w.in(channel)
		if err != nil {
			return nil, err
		}
		app := s.w.accountNamed(bot)
		if app == nil {
			return nil, fmt.Errorf("there is no bot %q", bot)
		}
		return &interactionBody{Type: kind, ApplicationID: app.ID, ChannelID: c.ID, Data: commandData(command, options, focus)}, nil
	})
}

// commandData puts options under the subcommands of a command.
func commandData(command string, options map[string]any, focus string) object {
	var list []any
	for name, value := range options {
		one := object{"name": name, "value": value}
		if name == focus {
			one["focused"] = true
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b any) int {
		return bytes.Compare([]byte(textOf(a.(object), "name")), []byte(textOf(b.(object), "name")))
	})
	words := bytes.Fields([]byte(command))
	for i := len(words) - 1; i > 0; i-- {
		list = []any{object{"name": string(words[i]), "options": list}}
	}
	data := object{"name": ""}
	if len(words) > 0 {
		data["name"] = string(words[0])
	}
	if list != nil {
		data["options"] = list
	}
	return data
}

// Submit is a person sending a modal that is open before them, with values by custom id.
func (s *Sim) Submit(person, customID string, values map[string]string) (Interaction, error) {
	return s.interact(person, func() (*interactionBody, error) {
		for n := len(s.w.interactions) - 1; n >= 0; n-- {
			i := s.w.interactions[n]
			if i.person.Username == person && textOf(i.modal, "custom_id") == customID {
				filled := fillModal(listOf(i.modal, "components"), values)
				return &interactionBody{Type: interactModal, ApplicationID: i.app.ID, ChannelID: i.channel.ID,
					Data: object{"custom_id": customID, "components": filled}}, nil
			}
		}
		return nil, fmt.Errorf("%s has no modal %q open", person, customID)
	})
}

// fillModal is what a client sends back of a modal: the inputs with their values.
func fillModal(list []object, values map[string]string) []any {
	out := []any{}
	for _, o := range list {
		one := object{"type": kindOf(o)}
		if id, ok := o["id"]; ok {
			one["id"] = id
		}
		if custom := textOf(o, "custom_id"); custom != "" {
			value, ok := values[custom]
			if !ok {
				value = textOf(o, "value")
			}
			one["custom_id"] = custom
			if isSelect(kindOf(o)) {
				one["values"] = []any{value}
			} else {
				one["value"] = value
			}
		}
		if children := listOf(o, "components"); len(children) > 0 {
			one["components"] = fillModal(children, values)
		}
		if child, ok := o["component"].(map[string]any); ok {
			one["component"] = fillModal([]object{child}, values)[0]
		}
		out = append(out, one)
	}
	return out
}

// Interaction is what became of a click or a command so far.
type Interaction struct {
	ID ID
	// Answered is true from the first answer on, also a deferral; Failed: there was none in time.
	Answered, Failed bool
	// Message is the answer, where it is one; 0: there is none yet.
	Message ID
	Modal   json.RawMessage
	Choices json.RawMessage
}

func (s *Sim) interact(person string, body func() (*interactionBody, error)) (out Interaction, err error) {
	err = s.as(person, func(a *account) error {
		b, err := body()
		if err != nil {
			return err
		}
		i, err := s.w.interact(a, b)
		if err == nil {
			out = i.state()
		}
		return err
	})
	return out, err
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

// WaitInteraction waits until an interaction is answered or has failed.
func (s *Sim) WaitInteraction(ctx context.Context, id ID) (out Interaction, err error) {
	err = s.wait(ctx, "an answer to the interaction", func() bool {
		i := find(s.w.interactions, func(i *interaction) bool { return i.id == id })
		if i == nil {
			return false
		}
		out = i.state()
		return i.acked || i.failed
	})
	return out, err
}

// wait waits until something is there, looking whenever something happened. The lock is held around there.
func (s *Sim) wait(ctx context.Context, hope string, there func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := there(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", hope, ctx.Err())
		case <-s.quit:
			return errors.New("the simulator ended")
		}
	}
}

// Messages is what stands in a channel, oldest first, ephemeral messages included.
func (s *Sim) Messages(channel string) ([]Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.w.in(channel)
	if err != nil {
		return nil, err
	}
	return s.w.all(c), nil
}

func (w *world) all(c *Channel) []Message {
	out := make([]Message, 0, len(c.messages))
	for _, m := range c.messages {
		out = append(out, w.view(m, 0, true))
	}
	return out
}

// WaitMessage waits for a message, in any channel, that fits as it stands now: also one that
// was there before, also one that an edit made fit.
func (s *Sim) WaitMessage(ctx context.Context, fits func(Message) bool) (found Message, err error) {
	var seen uint64
	err = s.wait(ctx, "a message", func() bool {
		before := seen
		seen = s.w.count
		for _, c := range s.w.channels {
			for _, m := range c.messages {
				if m.changed <= before && before > 0 {
					continue // it did not fit, and is what it was
				}
				if found = s.w.view(m, 0, true); fits(found) {
					return true
				}
			}
		}
		return false
	})
	return found, err
}

// WaitConnected waits until a bot has an open session, resumed or new.
func (s *Sim) WaitConnected(ctx context.Context, bot string) error {
	return s.wait(ctx, bot+" to connect", func() bool {
		return slices.ContainsFunc(s.sessions, func(n *session) bool { return n.who.Username == bot && n.socket != nil })
	})
}

// WaitGone waits until a bot has no open session: it went, or was thrown out.
func (s *Sim) WaitGone(ctx context.Context, bot string) error {
	return s.wait(ctx, bot+" to go", func() bool {
		return !slices.ContainsFunc(s.sessions, func(n *session) bool { return n.who.Username == bot && n.socket != nil })
	})
}

// WaitCommand waits until a bot has told of a command, or of an entry in a menu, with this name.
func (s *Sim) WaitCommand(ctx context.Context, bot, name string) error {
	return s.wait(ctx, "the command "+name, func() bool {
		app := s.w.accountNamed(bot)
		return app != nil && slices.ContainsFunc(app.commands, func(c *Command) bool { return c.Name == name })
	})
}

// WaitEvent waits for an event that happened after Start, by its name.
func (s *Sim) WaitEvent(ctx context.Context, fits func(Happening) bool) (found Happening, err error) {
	seen := 0
	err = s.wait(ctx, "an event", func() bool {
		if seen > len(s.log) {
			seen = 0 // the oldest were dropped
		}
		for ; seen < len(s.log); seen++ {
			if fits(s.log[seen]) {
				found = s.log[seen]
				return true
			}
		}
		return false
	})
	return found, err
}
