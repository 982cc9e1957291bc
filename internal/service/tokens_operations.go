package service

import (
	"context"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// ListTokens carries out the operation of that name.
func (o *Handler) ListTokens(ctx context.Context, _ operation.Caller, _ operation.None) (operation.List[operations.Token], error) {
	list, err := o.app.Tokens().ListTokens(ctx)
	return list, o.ToError(err)
}

// CreateToken carries out the operation of that name.
func (o *Handler) CreateToken(ctx context.Context, by operation.Caller, in operations.NewToken) (operations.Token, error) {
	token, err := o.app.Tokens().CreateToken(ctx, by, in)
	return token, o.ToError(err)
}

// RevokeToken carries out the operation of that name.
func (o *Handler) RevokeToken(ctx context.Context, by operation.Caller, in operations.TokenRef) (operation.None, error) {
	return operation.None{}, o.ToError(o.app.Tokens().RevokeToken(ctx, by, in.ID))
}
