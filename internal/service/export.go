package service

import (
	"context"
	"io"
	"iter"

	"chorus/internal/command"
)

// Export implements command.Sessions.
func (o *Handler) Export(ctx context.Context, by command.Caller, id string, as command.Format, to io.Writer) error {
	row, err := o.find(ctx, by, id, command.Read)
	if err != nil {
		return err
	}
	return o.ToError(o.app.Export(ctx, to, row, as))
}

// Replay implements command.Sessions.
func (o *Handler) Replay(ctx context.Context, by command.Caller, id string) iter.Seq2[command.Replayed, error] {
	return func(yield func(command.Replayed, error) bool) {
		row, err := o.find(ctx, by, id, command.Read)
		if err != nil {
			yield(command.Replayed{}, err)
			return
		}
		for one, err := range o.app.Replay(ctx, row.ID) {
			if !yield(one, o.ToError(err)) {
				return
			}
		}
	}
}
