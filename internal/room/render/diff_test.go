package render

import (
	"reflect"
	"slices"
)

// Act is what to do to a message.
type Act string

// The acts.
const (
	Create  Act = "create"
	Edit    Act = "edit"
	Delete  Act = "delete"
	React   Act = "react"
	Unreact Act = "unreact"
)

// Action is one thing to do on the platform.
type Action struct {
	Act      Act
	Message  Message  // of create, edit and delete; of delete the one that stands there
	Reaction Reaction // of react and unreact
}

// Shown is what stands on the platform, as far as whoever sends knows. The zero value is
// an empty channel.
type Shown struct {
	Messages  map[string]Message
	Reactions []Reaction
}

// Done notes that an action was carried out.
func (s *Shown) Done(a Action) {
	switch a.Act {
	case Create, Edit:
		if s.Messages == nil {
			s.Messages = map[string]Message{}
		}
		s.Messages[a.Message.Key] = a.Message
	case Delete:
		delete(s.Messages, a.Message.Key)
	case React:
		s.Reactions = append(s.Reactions, a.Reaction)
	case Unreact:
		s.Reactions = slices.DeleteFunc(s.Reactions, func(r Reaction) bool { return r == a.Reaction })
	}
}

// Diff is how to come from what is shown to what is wanted: messages in their order,
// then signs, a new one before the old one goes, so that a message is never without.
// What is shown and not spoken of in what is wanted is left alone. A final message
// that stands is not edited again.
func Diff(have Shown, want Wanted) []Action {
	var out []Action
	for _, m := range want.Messages {
		old, stands := have.Messages[m.Key]
		switch {
		case m.Absent() && stands:
			out = append(out, Action{Act: Delete, Message: old})
		case m.Absent():
		case !stands:
			out = append(out, Action{Act: Create, Message: m})
		case !same(old, m):
			out = append(out, Action{Act: Edit, Message: m})
		}
	}
	spoken := map[string]bool{}
	for _, r := range want.Reactions {
		spoken[r.On+"/"+r.Key] = true
		if !slices.Contains(have.Reactions, r) {
			out = append(out, Action{Act: React, Reaction: r})
		}
	}
	for _, r := range have.Reactions {
		if spoken[r.On+"/"+r.Key] && !slices.Contains(want.Reactions, r) {
			out = append(out, Action{Act: Unreact, Reaction: r})
		}
	}
	return out
}

// same reports two messages that look the same. Whom it answers cannot be edited.
func same(a, b Message) bool {
	return a.Text == b.Text && a.Stop == b.Stop && a.Final == b.Final && reflect.DeepEqual(a.File, b.File) && reflect.DeepEqual(a.Card, b.Card)
}
