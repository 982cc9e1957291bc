package service

import (
	"context"
	"io"
	"iter"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Export implements command.Sessions.
func (o *Handler) Export(ctx context.Context, by operation.Caller, id string, as operations.Format, to io.Writer) error {
	row, err := o.find(ctx, by, id, operation.Read)
	if err != nil {
		return err
	}
	return o.ToError(o.app.Export(ctx, to, row, as))
}

// Replay implements command.Sessions.
func (o *Handler) Replay(ctx context.Context, by operation.Caller, id string) iter.Seq2[operations.Replayed, error] {
	return func(yield func(operations.Replayed, error) bool) {
		row, err := o.find(ctx, by, id, operation.Read)
		if err != nil {
			yield(operations.Replayed{}, err)
			return
		}
		for one, err := range o.app.Replay(ctx, row.ID) {
			if !yield(one, o.ToError(err)) {
				return
			}
		}
	}
}
