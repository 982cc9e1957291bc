package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// HeldIn implements connector.Conversations.
func (h *Backend) HeldIn(ctx context.Context, channel string) ([]chat.ThreadID, error) {
	return h.DB.HeldIn(ctx, h.Platform.Name, channel)
}

// AnswersIn implements connector.Conversations.
func (h *Backend) AnswersIn(ctx context.Context, thread chat.ThreadID, channel string) ([]string, error) {
	return h.DB.ShownIn(ctx, h.Platform.Name, channel, thread)
}

// DeletedOnPlatform implements connector.Conversations.
func (h *Backend) DeletedOnPlatform(ctx context.Context, thread chat.ThreadID, published int64) (bool, error) {
	return h.handler.DeletedOnPlatform(ctx, thread, published)
}

// MessagesIn implements connector.Conversations. A conversation whose place is the channel has everything from there, or from a
// thread below it. Another conversation may have begun in the parent channel, whose messages were not deleted.
func (h *Backend) MessagesIn(ctx context.Context, thread chat.ThreadID, channel string) ([]string, error) {
	_, home, in := room.PlaceParts(thread.Place())
	below := home == channel || in == channel
	var received, read []string
	only := true // everything received is in the channel
	for after := int64(0); ; {
		list, err := h.DB.Events(ctx, thread, after, 0)
		if err != nil {
			return nil, err
		}
		for _, ev := range list {
			after = ev.Seq
			switch e := ev.Body.(type) {
			case chat.Received:
				inside := below || e.Channel == channel
				if only = only && inside; inside && ev.Platform == h.Platform.Name && ev.PlatformID != "" && !e.Forgotten {
					received = append(received, ev.PlatformID)
				}
			case chat.Imported:
				ids, err := h.importedFrom(ctx, e)
				if err != nil {
					return nil, err
				}
				read = append(read, ids...)
			}
		}
		if len(list) == 0 {
			break
		}
	}
	if only {
		received = append(received, read...)
	}
	return received, nil
}

// importedFrom returns the ids of imported messages.
func (h *Backend) importedFrom(ctx context.Context, e chat.Imported) (ids []string, err error) {
	data, err := h.DB.Blob(ctx, e.Blob)
	if errors.Is(err, chat.ErrLost) || e.Blob == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var lines []chat.Line
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf("read an import: %w", err)
	}
	for _, l := range lines {
		ids = append(ids, strings.Fields(l.ID)...)
	}
	return ids, nil
}
