package connector

import (
	"context"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// questioned has one question that is open, and keeps how it was answered.
type questioned struct {
	Approver
	ok   bool
	note string
}

func (a *questioned) Approval(context.Context, string) (approval.Approval, error) {
	return approval.Approval{ID: "q", Actions: []string{"question:shop"}, State: approval.Open}, nil
}

func (a *questioned) Answer(_ context.Context, _ string, _ chat.Principal, ok bool, note string) error {
	a.ok, a.note = ok, note
	return nil
}

// A question could be answered by a reply only: its buttons had no room for words.
func TestQuestionsAreAnsweredInAForm(t *testing.T) {
	t.Parallel()
	buttons := platform.Post{Card: "q", Words: true}.Buttons()
	if len(buttons) != 3 || buttons[0].Label != "Answer…" {
		t.Fatalf("%+v", buttons)
	}
	form, ok := platform.FormOf(buttons[0].Value)
	if !ok || form.Title == "" {
		t.Fatalf("%+v", form)
	}
	for words, press := range map[string]string{"size 42": buttons[0].Value, "": buttons[1].Value} {
		a := &questioned{}
		b := fakeBot(t, Backend{Approver: a})
		said := b.pressed(t.Context(), platform.Press{Value: press, Text: words, By: room.Author{ID: "7"}})
		if said.Text != "" || !a.ok || a.note != words {
			t.Errorf("%q is answered with %v, %q and told %q", words, a.ok, a.note, said.Text)
		}
	}
}
