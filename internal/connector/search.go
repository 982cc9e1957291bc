package connector

import (
	"context"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room/mention"
)

// A search reads back a thousand messages.
const (
	olderPages = 10
	olderPage  = 100
)

// Found is a message in a channel's history.
type Found struct {
	ID     string
	Author string
	From   chat.Participant
	Ours   bool // this bot posted it
	At     time.Time
	Text   string
}

// Older reads a channel's history back from a message ("": from now) and returns those that
// match, newest first: at most limit of them, and reading at most a thousand messages.
func (b *Bot) Older(ctx context.Context, channel, before string, limit int, match func(Found) bool) ([]Found, error) {
	if b.can.history == nil {
		return nil, Refusal(b.caps.Label + " has no readable history")
	}
	var out []Found
	for range olderPages {
		got, err := Again(ctx, b, "history", func(ctx context.Context) (page, error) {
			list, more, err := b.can.history.ReadBefore(ctx, channel, before, olderPage)
			return page{list, more}, err
		})
		if err != nil {
			return out, err
		}
		for _, m := range got.list { // newest first
			f := Found{ID: m.ID, Author: m.Author.Name, From: m.Author.Participant(), Ours: m.Own && !m.Aside, At: m.At,
				Text: mention.Read(m.Text, b.directory(m.In.Guild))}
			for _, a := range m.Files {
				f.Text = strings.TrimSpace(f.Text + "\n[file " + a.Name + "]")
			}
			if m.System || !match(f) {
				continue
			}
			if out = append(out, f); len(out) == limit {
				return out, nil
			}
		}
		if !got.more || len(got.list) == 0 {
			return out, nil
		}
		before = got.list[len(got.list)-1].ID
	}
	return out, nil
}
