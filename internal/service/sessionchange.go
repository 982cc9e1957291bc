package service

import (
	"cmp"
	"context"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/store"
)

// ChangeSession implements the operation of that name. A caller may choose what they could start a session with.
func (o *Handler) ChangeSession(ctx context.Context, by operation.Caller, in operations.SessionChange) (operations.Session, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Session{}, err
	}
	if err := o.MayKeep(by, row); err != nil {
		return operations.Session{}, err
	}
	if err := o.MayWork(by, row); err != nil {
		return operations.Session{}, err
	}
	if err := o.relist(ctx, row, in); err != nil {
		return operations.Session{}, err
	}
	if in.Model == "" && in.Mode == "" && in.Permissions == "" {
		return o.GetSession(ctx, by, operations.SessionRef{ID: string(row.ID)})
	}
	made, err := o.Standing(ctx, row.ID)
	if err != nil {
		return operations.Session{}, err
	}
	wish := operations.NewSession{Agent: row.Agent, Model: in.Model, Mode: in.Mode, Permissions: in.Permissions}
	if wish.Mode == chat.NoMode {
		wish.Mode = ""
	}
	terms, _, err := o.plan(by, wish, row.ID)
	if err != nil {
		return operations.Session{}, err
	}
	if in.Model != "" {
		made.Terms.Model = terms.Model
	}
	if in.Mode != "" {
		made.Terms.Mode = wish.Mode
	}
	made.Terms.Profile = cmp.Or(in.Permissions, made.Terms.Profile)
	made.Terms.By = cmp.Or(made.Terms.By, terms.By)
	if err := o.putStanding(ctx, row.ID, made); err != nil {
		return operations.Session{}, err
	}
	return o.GetSession(ctx, by, operations.SessionRef{ID: string(row.ID)})
}

// The listing of a normal session, and of an archived one.
const (
	normalListing = "normal"
	archived      = "archived"
)

// relist changes a session's title and its place in lists.
func (o *Handler) relist(ctx context.Context, row journal.Thread, in operations.SessionChange) error {
	var change store.ThreadChange
	if title := strings.Join(strings.Fields(in.Title), " "); title != "" {
		change.Title = &title
	}
	if in.Listing != "" {
		listing := in.Listing
		if listing == normalListing {
			listing = ""
		}
		change.Listing = &listing
	}
	if change.Title == nil && change.Listing == nil {
		return nil
	}
	return o.setThread(ctx, row.ID, change)
}

// Unarchive brings a session of a platform back into lists, because it got a message there.
func (o *Handler) Unarchive(ctx context.Context, thread chat.ThreadID) error {
	row, err := o.app.DB.Thread(ctx, thread)
	if err != nil {
		return err
	}
	return o.unarchive(ctx, row)
}

// unarchive brings a session back into lists, because it got a message.
func (o *Handler) unarchive(ctx context.Context, row journal.Thread) error {
	if row.Listing != archived {
		return nil
	}
	return o.relist(ctx, row, operations.SessionChange{Listing: normalListing})
}
