package service

import (
	"context"
	"errors"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/tool"
	"chorus/internal/tool/git"
)

var _ operations.SessionWork = (*Handler)(nil)

// SessionDiff implements the operation of that name. Git runs outside any sandbox, and starts nothing that commands left in the repository.
func (o *Handler) SessionDiff(ctx context.Context, by operation.Caller, in operations.SessionRef) (out operations.SessionChanges, err error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	if err := o.MayWork(by, row); err != nil {
		return out, err
	}
	out.Text, err = git.Summary(ctx, o.app.Setup.Executor, row.Dir)
	switch {
	case err != nil && !runsetup.InGit(row.Dir):
		return out, operation.Errorf(operation.Conflict, "%s is not in a git repository", row.Dir)
	case err != nil:
		line, _, _ := strings.Cut(err.Error(), "\n") // git's own message is long
		return out, operation.Errorf(operation.Conflict, "show what has changed: %s", line)
	}
	return out, nil
}

// SessionNotes implements the operation of that name.
func (o *Handler) SessionNotes(ctx context.Context, by operation.Caller, in operations.SessionRef) (out operation.List[operations.SessionNote], err error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	list, err := o.app.Setup.NotesOf(row.ID).List(ctx)
	for _, n := range list {
		out.Items = append(out.Items, operations.SessionNote(n))
	}
	return out, noteError(err)
}

// SetSessionNote implements the operation of that name.
func (o *Handler) SetSessionNote(ctx context.Context, by operation.Caller, in operations.SessionNoteText) (operations.SessionNote, error) {
	out := operations.SessionNote{Key: in.Key, Value: in.Value}
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	return out, noteError(o.app.Setup.NotesOf(row.ID).Set(ctx, in.Key, in.Value))
}

// ClearSessionNotes implements the operation of that name.
func (o *Handler) ClearSessionNotes(ctx context.Context, by operation.Caller, in operations.SessionNoteRef) (out operations.ClearedNotes, err error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	out.Cleared, err = o.app.Setup.NotesOf(row.ID).Clear(ctx, in.Key)
	return out, noteError(err)
}

// noteError reports that a notebook is full.
func noteError(err error) error {
	if mistake, ok := errors.AsType[tool.Mistake](err); ok {
		return operation.Errorf(operation.Conflict, "%s", mistake.Error())
	}
	return err
}

// SessionPrompts implements the operation of that name.
func (o *Handler) SessionPrompts(ctx context.Context, by operation.Caller, in operations.SessionRef) (out operation.List[operations.SessionPrompt], err error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	b := o.app.Setup.OpenToolbox(row.ID)
	if b == nil {
		return out, nil
	}
	for _, p := range b.Prompts(ctx) {
		out.Items = append(out.Items, operations.SessionPrompt{Name: "/" + p.Server + ":" + p.Name, Usage: p.String(), About: p.About})
	}
	return out, nil
}
