package service

import (
	"cmp"
	"context"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// noMode is the mode of a change that ends one.
const noMode = "off"

// ChangeSession carries out the operation of that name. What a caller may choose is what they could begin a session with.
func (o *Handler) ChangeSession(ctx context.Context, by operation.Caller, in operations.SessionChange) (operations.Session, error) {
	row, err := o.find(ctx, by, in.ID)
	if err != nil {
		return operations.Session{}, err
	}
	if err := o.mayWork(by, row); err != nil {
		return operations.Session{}, err
	}
	made, err := o.Standing(ctx, row.ID)
	if err != nil {
		return operations.Session{}, err
	}
	wish := operations.NewSession{Agent: row.Agent, Model: in.Model, Mode: in.Mode, Permissions: in.Permissions}
	if wish.Mode == noMode {
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
