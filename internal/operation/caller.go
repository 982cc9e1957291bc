package operation

import (
	"context"
	"slices"

	"chorus/internal/chat"
)

// Caller is on whose authority an operation runs, and what their token allows.
type Caller struct {
	Principal chat.Principal
	Scopes    []Scope
	// Through is who acts in the caller's name: a hook or a schedule for them, or they themselves by way of an agent.
	// nil: the caller asks directly.
	Through *chat.Principal
	// Here is the place in which the caller speaks, as transport and place of its threads ("discord:12/34"): whoever is
	// there may know what happens there. "": nowhere in particular.
	Here string
	// Manages reports that the caller may take away what others say there.
	Manages bool
	// Session is the conversation in which it is asked for; "": in none.
	Session chat.ThreadID
}

// IsHere reports whether a thread is held where the caller speaks.
func (c Caller) IsHere(thread chat.ThreadID) bool {
	transport, place, _, _ := thread.Parts()
	return c.Here != "" && c.Here == transport+":"+place
}

// Sees reports whether a session is the caller's, held where they speak, or everybody's business.
func (c Caller) Sees(thread chat.ThreadID, owner chat.Principal) bool {
	return c.May(Admin) || c.IsHere(thread) || c.Principal.ID != "" && owner.String() == c.Principal.String()
}

// Keeps reports whether the caller decides about a session: what it is called, where lists show it, who else reads it, whether it
// stays. Whoever only speaks where it is held does not.
func (c Caller) Keeps(thread chat.ThreadID, owner chat.Principal) bool {
	return c.May(Admin) || c.Manages && c.IsHere(thread) || c.Principal.ID != "" && owner.String() == c.Principal.String()
}

// OwnPrefix is how the ids of the caller's threads begin; "": it may see all.
func (c Caller) OwnPrefix() string {
	if c.May(Admin) {
		return ""
	}
	return "web:" + c.Principal.OwnPlace() + ":"
}

// Acting is on whose authority words of the caller are said: with everybody in whose name it acts.
func (c Caller) Acting() chat.Principal {
	if c.Through != nil {
		return *c.Through
	}
	return c.Principal
}

// Scope is a part of Chorus that a token opens.
type Scope string

// The scopes, the weakest first. Admin includes the others.
const (
	Read    Scope = "read"
	Chat    Scope = "chat"
	Approve Scope = "approve"
	Admin   Scope = "admin"
)

// Scopes are all there are.
func Scopes() []Scope { return []Scope{Read, Chat, Approve, Admin} }

// May reports whether the caller's token opens a scope. Whoever may chat or approve
// may also read.
func (c Caller) May(s Scope) bool {
	return slices.ContainsFunc(c.Scopes, func(has Scope) bool { return has == s || has == Admin || s == Read })
}

type callerKey struct{}

// WithCaller attaches the caller of a request. Whoever checks tokens does it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is the caller of a request; false: nobody was recognised.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
