package service

import (
	"context"

	"chorus/internal/command"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// ListTokens implements command.Keys.
func (o *Handler) ListTokens(ctx context.Context, by operation.Caller) (operation.List[operations.Token], error) {
	if err := need(by, operation.Admin); err != nil {
		return operation.List[operations.Token]{}, err
	}
	list, err := o.app.Tokens().ListTokens(ctx, by)
	return list, o.ToError(err)
}

// CreateToken implements command.Keys.
func (o *Handler) CreateToken(ctx context.Context, by operation.Caller, in command.NewToken) (operations.Token, error) {
	if err := need(by, operation.Admin); err != nil {
		return operations.Token{}, err
	}
	token, err := o.app.Tokens().CreateToken(ctx, by, in)
	return token, o.ToError(err)
}

// RevokeToken implements command.Keys.
func (o *Handler) RevokeToken(ctx context.Context, by operation.Caller, id string) error {
	if err := need(by, operation.Admin); err != nil {
		return err
	}
	return o.ToError(o.app.Tokens().RevokeToken(ctx, by, id))
}
