package service

import (
	"context"

	"chorus/internal/command"
)

// ListTokens implements command.Keys.
func (o *Handler) ListTokens(ctx context.Context, by command.Caller) (command.List[command.Token], error) {
	if err := need(by, command.Admin); err != nil {
		return command.List[command.Token]{}, err
	}
	list, err := o.app.Tokens().ListTokens(ctx, by)
	return list, o.ToError(err)
}

// CreateToken implements command.Keys.
func (o *Handler) CreateToken(ctx context.Context, by command.Caller, in command.NewToken) (command.Token, error) {
	if err := need(by, command.Admin); err != nil {
		return command.Token{}, err
	}
	token, err := o.app.Tokens().CreateToken(ctx, by, in)
	return token, o.ToError(err)
}

// RevokeToken implements command.Keys.
func (o *Handler) RevokeToken(ctx context.Context, by command.Caller, id string) error {
	if err := need(by, command.Admin); err != nil {
		return err
	}
	return o.ToError(o.app.Tokens().RevokeToken(ctx, by, id))
}
