package command

import "context"

type callerKey struct{}

// WithCaller notes who gives the orders of a request. Whoever checks tokens does it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is who gives the orders; false: nobody was recognised.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
