package service

import (
	"cmp"
	"context"
	"io"
	"iter"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Export carries out the operation of that name. The file is written while it is read.
func (o *Handler) Export(ctx context.Context, by operation.Caller, in operations.ExportRequest) (operation.File, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operation.File{}, err
	}
	as := cmp.Or(in.Format, operations.Markdown)
	media, suffix := as.MediaType()
	return operation.File{Name: in.ID + suffix, MediaType: media + "; charset=utf-8", ReadCloser: operation.Generated(func(to io.Writer) error {
		return o.ToError(o.app.Export(ctx, to, row, as))
	})}, nil
}

// Replay carries out the operation of that name.
func (o *Handler) Replay(ctx context.Context, by operation.Caller, in operations.SessionRef) iter.Seq2[operations.ReplayLine, error] {
	return operations.ReplayLines(func(yield func(operations.Replayed, error) bool) {
		row, err := o.Find(ctx, by, in.ID)
		if err != nil {
			yield(operations.Replayed{}, err)
			return
		}
		for one, err := range o.app.Replay(ctx, row.ID) {
			if !yield(one, o.ToError(err)) {
				return
			}
		}
	})
}
