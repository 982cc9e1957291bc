package discordsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/jsonobject"
)

// as does something as a person or a bot, with the lock held.
func (s *Sim) as(name string, do func(*guild.Account) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.guild.AccountNamed(name)
	if a == nil {
		return fmt.Errorf("there is nobody called %q", name)
	}
	return do(a)
}

// Say sends a message as a person into a channel, given by name or id.
func (s *Sim) Say(person, channel, text string) (guild.ID, error) {
	return s.Post(person, channel, guild.Said{Text: text})
}

// Reply answers a message as a person, in its channel.
func (s *Sim) Reply(person string, to guild.ID, text string) (guild.ID, error) {
	s.mu.Lock()
	c, _, err := s.guild.FindMessage(to)
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return s.Post(person, c.ID.String(), guild.Said{Text: text, Reply: to})
}

// Post is Say with a reply or with files.
func (s *Sim) Post(person, channel string, what guild.Said) (id guild.ID, err error) {
	err = s.as(person, func(a *guild.Account) error {
		c, err := s.guild.FindChannel(channel)
		if err != nil {
			return err
		}
		if _, err := s.guild.Place(a, c.ID, 0); err != nil {
			return err
		}
		m, err := s.guild.Say(a, c, what)
		if err == nil {
			id = m.ID
		}
		return err
	})
	return id, err
}

// Edit changes the text of somebody's own message.
func (s *Sim) Edit(person string, message guild.ID, text string) error {
	return s.as(person, func(a *guild.Account) error {
		c, m, err := s.guild.FindMessage(message)
		if err != nil {
			return err
		}
		return s.guild.Edit(a, c, m, guild.TextBody(text))
	})
}

// Delete deletes a message as somebody who may delete it.
func (s *Sim) Delete(person string, message guild.ID) error {
	return s.as(person, func(a *guild.Account) error {
		c, m, err := s.guild.FindMessage(message)
		if err != nil {
			return err
		}
		if m.Author.ID != a.ID && !s.guild.Rights(a, c).Has(guild.PermManageMessages) {
			return apierror.NoPermission()
		}
		s.guild.Remove(c, message)
		return nil
	})
}

// React adds an emoji to a message as a person; Unreact removes it.
func (s *Sim) React(person string, message guild.ID, emoji string) error {
	return s.reaction(person, message, emoji, s.guild.React)
}

// Unreact removes a person's emoji.
func (s *Sim) Unreact(person string, message guild.ID, emoji string) error {
	return s.reaction(person, message, emoji, func(a *guild.Account, c *guild.Channel, m *guild.Message, e guild.Emoji) error {
		return s.guild.Unreact(a.ID, c, m, e)
	})
}

func (s *Sim) reaction(person string, message guild.ID, emoji string, do func(*guild.Account, *guild.Channel, *guild.Message, guild.Emoji) error) error {
	return s.as(person, func(a *guild.Account) error {
		c, m, err := s.guild.FindMessage(message)
		if err != nil {
			return err
		}
		e, err := guild.ParseEmoji(emoji)
		if err != nil {
			return err
		}
		return do(a, c, m, e)
	})
}

// Unfurl adds an embed to a message, as Discord does for a link: an update that is no edit.
func (s *Sim) Unfurl(message guild.ID, title string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := s.guild.FindMessage(message)
	if err != nil {
		return err
	}
	s.guild.Unfurl(c, m, title)
	return nil
}

// Pin pins a message, or unpins it.
func (s *Sim) Pin(person string, message guild.ID, on bool) error {
	return s.as(person, func(a *guild.Account) error {
		c, m, err := s.guild.FindMessage(message)
		if err != nil {
			return err
		}
		return s.guild.Pin(a, c, m, on)
	})
}

// OpenThread opens a thread on a message and returns its id.
func (s *Sim) OpenThread(person string, message guild.ID, name string) (id guild.ID, err error) {
	err = s.as(person, func(a *guild.Account) error {
		c, m, err := s.guild.FindMessage(message)
		if err != nil {
			return err
		}
		t, err := s.guild.ThreadOn(a, c, m, &guild.ThreadBody{Name: name})
		if err == nil {
			id = t.ID
		}
		return err
	})
	return id, err
}

// Archive archives a thread, locked or not.
func (s *Sim) Archive(thread guild.ID, locked bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.guild.Channel(thread)
	if t == nil || !t.IsThread() {
		return fmt.Errorf("there is no thread %s", thread)
	}
	s.guild.Archive(t, locked)
	return nil
}

// DeleteChannel deletes a channel, by its name or id, with its contents.
func (s *Sim) DeleteChannel(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.guild.FindChannel(name)
	if err == nil {
		s.guild.DropChannel(c)
	}
	return err
}

// Click presses a button, or chooses values of a select menu, as a person.
func (s *Sim) Click(person string, message guild.ID, customID string, values ...string) (guild.Interaction, error) {
	data := object{"custom_id": customID}
	if len(values) > 0 {
		list := []any{}
		for _, v := range values {
			list = append(list, v)
		}
		data["values"] = list
	}
	return s.interact(person, func() (*guild.InteractionBody, error) {
		c, _, err := s.guild.FindMessage(message)
		if err != nil {
			return nil, err
		}
		return &guild.InteractionBody{Type: guild.InteractComponent, ChannelID: c.ID, MessageID: message, Data: data}, nil
	})
}

// Slash uses a bot's command as a person: "agent init" is the command agent with its subcommand init. Options are given by name.
func (s *Sim) Slash(person, channel, bot, command string, options map[string]any) (guild.Interaction, error) {
	return s.command(guild.InteractCommand, person, channel, bot, command, options, "")
}

// Complete asks a bot for completions of the option called focus.
func (s *Sim) Complete(person, channel, bot, command string, options map[string]any, focus string) (guild.Interaction, error) {
	return s.command(guild.InteractAutocomplete, person, channel, bot, command, options, focus)
}

// Menu uses a bot's command in the menu of a message as a person.
func (s *Sim) Menu(person, bot, command string, message guild.ID) (guild.Interaction, error) {
	return s.interact(person, func() (*guild.InteractionBody, error) {
		c, _, err := s.guild.FindMessage(message)
		if err != nil {
			return nil, err
		}
		app := s.guild.AccountNamed(bot)
		if app == nil {
			return nil, fmt.Errorf("there is no bot %q", bot)
		}
		return &guild.InteractionBody{Type: guild.InteractCommand, ApplicationID: app.ID, ChannelID: c.ID,
			Data: object{"name": command, "target_id": message.String()}}, nil
	})
}

// Upload stores a file where people's clients put files for a command, and returns the value of the option.
func (s *Sim) Upload(channel, name string, data []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.guild.FindChannel(channel)
	if err != nil {
		return "", err
	}
	id, err := s.guild.Upload(c, name, data)
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

func (s *Sim) command(kind int, person, channel, bot, command string, options map[string]any, focus string) (guild.Interaction, error) {
	return s.interact(person, func() (*guild.InteractionBody, error) {
		c, err := s.guild.FindChannel(channel)
		if err != nil {
			return nil, err
		}
		app := s.guild.AccountNamed(bot)
		if app == nil {
			return nil, fmt.Errorf("there is no bot %q", bot)
		}
		return &guild.InteractionBody{Type: kind, ApplicationID: app.ID, ChannelID: c.ID, Data: commandData(command, options, focus)}, nil
	})
}

// commandData nests options under the subcommands of a command.
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
		return bytes.Compare([]byte(jsonobject.Text(a.(object), "name")), []byte(jsonobject.Text(b.(object), "name")))
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

// Submit sends the open modal as a person, with values by custom id.
func (s *Sim) Submit(person, customID string, values map[string]string) (guild.Interaction, error) {
	return s.interact(person, func() (*guild.InteractionBody, error) {
		return s.guild.Submission(person, customID, values)
	})
}

func (s *Sim) interact(person string, body func() (*guild.InteractionBody, error)) (out guild.Interaction, err error) {
	err = s.as(person, func(a *guild.Account) error {
		b, err := body()
		if err != nil {
			return err
		}
		i, err := s.guild.Interact(a, b)
		if err == nil {
			out, _ = s.guild.Outcome(i)
		}
		return err
	})
	return out, err
}

// WaitInteraction waits until an interaction is answered or has failed.
func (s *Sim) WaitInteraction(ctx context.Context, id guild.ID) (out guild.Interaction, err error) {
	err = s.wait(ctx, "an answer to the interaction", func() (there bool) {
		out, there = s.guild.Outcome(id)
		return there && (out.Answered || out.Failed)
	})
	return out, err
}

// wait waits until something is there, looking whenever something happened. The lock is held around there.
func (s *Sim) wait(ctx context.Context, what string, there func() bool) error {
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
			return fmt.Errorf("waited for %s: %w", what, ctx.Err())
		case <-s.quit:
			return errors.New("the simulator ended")
		}
	}
}

// Messages returns a channel's messages, oldest first, including ephemeral ones.
func (s *Sim) Messages(channel string) ([]guild.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.guild.FindChannel(channel)
	if err != nil {
		return nil, err
	}
	return s.guild.AllMessages(c), nil
}

// WaitMessage waits for a message in any channel that matches in its current form, including existing messages and those
// that match after an edit.
func (s *Sim) WaitMessage(ctx context.Context, fits func(guild.Message) bool) (found guild.Message, err error) {
	var seen uint64
	err = s.wait(ctx, "a message", func() (there bool) {
		found, there, seen = s.guild.FirstMessage(seen, fits)
		return there
	})
	return found, err
}

// WaitConnected waits until a bot has an open session, resumed or new.
func (s *Sim) WaitConnected(ctx context.Context, bot string) error {
	return s.wait(ctx, bot+" to connect", func() bool {
		return slices.ContainsFunc(s.sessions, func(n *session) bool { return n.who.Username == bot && n.socket != nil })
	})
}

// WaitGone waits until a bot has no open session: it disconnected, or was disconnected.
func (s *Sim) WaitGone(ctx context.Context, bot string) error {
	return s.wait(ctx, bot+" to go", func() bool {
		return !slices.ContainsFunc(s.sessions, func(n *session) bool { return n.who.Username == bot && n.socket != nil })
	})
}

// WaitCommand waits until a bot has registered a command or a menu entry with this name.
func (s *Sim) WaitCommand(ctx context.Context, bot, name string) error {
	return s.wait(ctx, "the command "+name, func() bool {
		app := s.guild.AccountNamed(bot)
		return app != nil && slices.ContainsFunc(app.Commands, func(c *guild.Command) bool { return c.Name == name })
	})
}

// WaitEvent waits for an event since Start, by its name.
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

// Vote chooses an answer of a poll as a person, by its number from 1 on.
func (s *Sim) Vote(person string, message guild.ID, answer int) error {
	return s.as(person, func(a *guild.Account) error {
		c, m, err := s.guild.FindMessage(message)
		if err != nil {
			return err
		}
		return s.guild.Vote(a, c, m, answer)
	})
}
