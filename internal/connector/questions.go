package connector

import (
	"context"
	"slices"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/platform"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// formFields are the fields of a question as a form shows them; none: they do not fit, and the
// answer is written as words.
func (b *Bot) formFields(fields []chat.Field) (out []platform.FormField) {
	if len(fields) > platform.MaxFields || slices.ContainsFunc(fields, func(f chat.Field) bool { return f.Name == "" || split.Length(f.Name) > platform.MaxFieldName }) {
		return nil
	}
	for _, f := range fields {
		field := platform.FormField{Name: f.Name, Label: b.Backend.Redact(f.Label), Hint: b.Backend.Redact(approval.Hint(f)), Several: f.Several, Optional: f.Optional, Values: f.Values}
		choices := f.Choices
		if len(choices) > platform.MaxFormChoices || slices.ContainsFunc(choices, func(c chat.Choice) bool { return c.Value == "" || split.Length(c.Value) > platform.MaxChoice }) {
			choices, field.Several = nil, false // what fits is said below the question
			field.Values = nil
			if len(f.Values) > 0 {
				field.Values = []string{strings.Join(f.Values, ", ")}
			}
		}
		for _, c := range choices {
			field.Choices = append(field.Choices, platform.Choice{Label: b.Backend.Redact(c.Label), Value: c.Value})
		}
		out = append(out, field)
	}
	return out
}

// questionForm is the form that asks for the answer to a question, with the fields that its card was given.
func (b *Bot) questionForm(ctx context.Context, p platform.Press, approval string, f platform.Form) platform.Form {
	row, err := b.Backend.Outgoing(ctx, b.Lane(p.In.ID), render.CardKey(approval))
	var post platform.Post
	if err == nil {
		post, err = platform.ReadPost(row.Body)
	}
	if err != nil {
		b.Log.Warn("the fields of a question are not known; words are asked for", "event", "form_failed", "approval", approval, "error", err)
	}
	f.Fields = post.Fields
	return f
}
