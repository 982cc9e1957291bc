package connector

import (
	"context"

	"chorus/internal/platform"
	"chorus/internal/room/render"
)

// questionForm is the form for the answer to a question, with the fields that its card was given.
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
