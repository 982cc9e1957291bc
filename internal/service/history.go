package service

import (
	"context"
	"encoding/json"

	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/images"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
)

// maxHistory is more messages than a model reads.
const maxHistory = 10_000

// history makes the first event of a session that began elsewhere; without history there is none.
func (o *Handler) history(ctx context.Context, by operation.Caller, thread chat.ThreadID, said []operations.Spoken) ([]chat.Event, error) {
	if len(said) == 0 {
		return nil, nil
	}
	if len(said) > maxHistory {
		return nil, operation.InvalidField("history", "there are more than %d messages before the prompt", maxHistory)
	}
	bot, err := o.app.Settings.Bot(thread.Agent())
	if err != nil {
		return nil, err
	}
	lines := make([]chat.Line, 0, len(said))
	for _, s := range said {
		line := chat.Line{Role: "user", From: from(by.Principal)}
		if s.Name != "" {
			line.From.Name = fileName(s.Name)
		}
		if s.Agent {
			line = chat.Line{Role: "assistant", From: chat.Participant{ID: thread.Agent(), Name: thread.Agent(), Kind: chat.Agent}}
		}
		if text := Clipped(s.Text, bot.MaxMessageChars); text != "" {
			line.Blocks = append(line.Blocks, chat.Text{Text: text})
		}
		if bot.IncludeImages && !s.Agent {
			if line.Blocks, err = o.illustrated(ctx, line.Blocks, s.Images); err != nil {
				return nil, err
			}
		}
		if len(line.Blocks) > 0 {
			lines = append(lines, line)
		}
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return nil, err
	}
	hash, err := o.app.DB.PutBlob(ctx, data)
	if err != nil {
		return nil, err
	}
	return []chat.Event{{Thread: thread, Who: by.Principal.String(), Platform: "local", PlatformID: id.New(),
		Body: chat.Imported{Source: "an earlier conversation", Blob: hash, Count: len(lines)}}}, nil
}

func (o *Handler) illustrated(ctx context.Context, blocks chat.Blocks, all [][]byte) (chat.Blocks, error) {
	for _, data := range all {
		fitted, media, _, _, err := images.Fit(data, images.Limits{}, runsetup.MaxPixels)
		if err != nil {
			return nil, operation.InvalidField("history", "a picture: %v", err)
		}
		hash, err := o.app.DB.PutBlob(ctx, fitted)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, chat.Image{Blob: hash, MediaType: media, Size: int64(len(fitted))})
	}
	return blocks, nil
}
