package savedcontext

import (
	"context"
	"errors"
	"strings"

	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/redact"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// Sessions is what the operations need of sessions.
type Sessions interface {
	// Find returns a session that the caller sees.
	Find(ctx context.Context, by operation.Caller, name string) (journal.Thread, error)
	// MayKeep says why somebody who sees a session may not manage it; MayWork, why they may not work in its folder.
	MayKeep(by operation.Caller, row journal.Thread) error
	MayWork(by operation.Caller, row journal.Thread) error
	// Record writes a line of the audit log.
	Record(ctx context.Context, by operation.Caller, agent, action, detail string) error
	// NameOf returns somebody's name, by their key.
	NameOf(ctx context.Context, key string) string
}

// Handler implements the operations on saved contexts.
type Handler struct {
	contexts *Contexts
	windows  *engine.Engine
	sessions Sessions
	redactor func() *redact.Redactor
}

// NewHandler returns a handler. The engine writes the windows.
func NewHandler(contexts *Contexts, windows *engine.Engine, sessions Sessions, redactor func() *redact.Redactor) *Handler {
	return &Handler{contexts, windows, sessions, redactor}
}

var _ operations.SavedContexts = (*Handler)(nil)

// SaveContext implements the operation of that name.
func (o *Handler) SaveContext(ctx context.Context, by operation.Caller, in operations.NewContext) (operations.SavedContext, error) {
	row, err := o.sessions.Find(ctx, by, in.ID)
	if err != nil {
		return operations.SavedContext{}, err
	}
	key := in.Key
	if key != "" {
		key = strings.Join([]string{by.Principal.String(), string(row.ID), in.Key}, "\n")
	}
	saved, err := o.contexts.Save(ctx, Saving{Rows: []journal.Thread{row}, By: by.Principal, Description: in.Description, Key: key})
	if err != nil {
		return operations.SavedContext{}, err
	}
	return o.shown(ctx, row, saved), nil
}

// shown is a saved context without secrets.
func (o *Handler) shown(ctx context.Context, row journal.Thread, c store.SavedContext) operations.SavedContext {
	hide := o.redactor()
	return operations.SavedContext{ID: c.ID, SessionID: row.ID.Thread(), Description: hide.Text(c.Description), Summary: hide.Text(c.Summary), Messages: c.Messages, SavedAt: c.At, By: c.By,
		ByName: o.sessions.NameOf(ctx, c.By), Automatic: !c.Quiet.IsZero()}
}

// saved returns the filter of what was saved where a session is held, by its agent. Who does not speak there themselves sees what they saved.
func saved(by operation.Caller, row journal.Thread) store.ContextFilter {
	f := store.ContextFilter{Agent: row.Agent, Transport: row.ID.Transport(), Place: row.Place}
	if row.ID.OnPlatform() && !by.May(operation.Admin) && !by.IsHere(row.ID) {
		f.By = by.Principal.String()
	}
	return f
}

// ListContexts implements the operation of that name.
func (o *Handler) ListContexts(ctx context.Context, by operation.Caller, in operations.SessionRef) (out operation.List[operations.SavedContext], err error) {
	row, err := o.sessions.Find(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	list, err := o.contexts.DB.SavedContexts(ctx, saved(by, row))
	for _, c := range list {
		out.Items = append(out.Items, o.shown(ctx, row, c))
	}
	return out, err
}

// named returns a session that the caller sees and a context that was saved where it is held.
func (o *Handler) named(ctx context.Context, by operation.Caller, in operations.ContextRef) (journal.Thread, store.SavedContext, error) {
	row, err := o.sessions.Find(ctx, by, in.ID)
	if err != nil {
		return row, store.SavedContext{}, err
	}
	found, err := o.contexts.Named(ctx, saved(by, row), in.Context)
	return row, found, err
}

// GetContext implements the operation of that name.
func (o *Handler) GetContext(ctx context.Context, by operation.Caller, in operations.ContextRef) (out operations.SavedContext, err error) {
	row, saved, err := o.named(ctx, by, in)
	if err == nil {
		out = o.shown(ctx, row, saved)
	}
	return out, err
}

// RestoreContext implements the operation of that name.
func (o *Handler) RestoreContext(ctx context.Context, by operation.Caller, in operations.ContextRef) (out operations.RestoredContext, err error) {
	row, saved, err := o.named(ctx, by, in)
	if err != nil {
		return out, err
	}
	if err := errors.Join(o.sessions.MayKeep(by, row), o.sessions.MayWork(by, row)); err != nil {
		return out, err
	}
	n, err := o.contexts.RestoreInto(ctx, o.windows, saved, row, by.Principal.String())
	if errors.Is(err, engine.ErrBusy) {
		return out, running(row)
	}
	return operations.RestoredContext{SavedContext: o.shown(ctx, row, saved), Restored: n}, err
}

// DeleteContext implements the operation of that name.
func (o *Handler) DeleteContext(ctx context.Context, by operation.Caller, in operations.ContextRef) (operations.SavedContext, error) {
	row, saved, err := o.named(ctx, by, in)
	if err != nil {
		return operations.SavedContext{}, err
	}
	if !by.May(operation.Admin) && saved.By != by.Principal.String() {
		return operations.SavedContext{}, operation.Errorf(operation.Forbidden, "only whoever saved it can delete it, and those who run this Chorus")
	}
	// First the audit line: what follows may be repeated.
	if err := o.sessions.Record(ctx, by, row.Agent, "context delete "+row.ID.Thread(), saved.ID); err != nil {
		return operations.SavedContext{}, err
	}
	list := []store.SavedContext{saved}
	if err := o.contexts.Settings.TellForgotten(ctx, id.New(), Forgotten(settings.Forgotten{}, list)); err != nil {
		return operations.SavedContext{}, err
	}
	return o.shown(ctx, row, saved), o.contexts.Remove(ctx, list)
}

// Nouns implements operation.Namer.
func (o *Handler) Nouns() map[string]operation.Noun {
	return map[string]operation.Noun{"context": {Suggest: o.names}}
}

// names suggests the contexts that were saved where the caller types; anywhere, to those who see everything.
func (o *Handler) names(ctx context.Context, by operation.Caller, prefix string) (names []string, err error) {
	f := store.ContextFilter{}
	switch {
	case by.Session != "":
		row, err := o.sessions.Find(ctx, by, string(by.Session))
		if err != nil {
			return nil, err
		}
		f = saved(by, row)
	case !by.May(operation.Admin):
		return nil, nil
	}
	f.Prefix = strings.ToLower(prefix)
	list, err := o.contexts.DB.SavedContexts(ctx, f)
	for _, c := range list {
		names = append(names, c.ID)
	}
	return names, err
}
