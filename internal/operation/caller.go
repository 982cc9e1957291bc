package operation

import (
	"context"
	"slices"

	"chorus/internal/chat"
)

// Caller is the person on whose authority an operation runs, and what their token allows.
type Caller struct {
	Principal chat.Principal
	Scopes    []Scope
	// Through is who acts in the caller's name: a hook or a schedule, or the caller by way of an agent. nil: the caller asks directly.
	Through *chat.Principal
	// Here is the place where the caller speaks, as transport and place of its threads ("discord:12/34"). Everybody there
	// may know what happens there. "": nowhere in particular.
	Here string
	// Manages reports whether the caller may delete what others say there.
	Manages bool
	// Session is the conversation in which the caller asks; "": none.
	Session chat.ThreadID
}

// IsHere reports whether a thread is held where the caller speaks.
func (c Caller) IsHere(thread chat.ThreadID) bool {
	transport, place, _, _ := thread.Parts()
	return c.Here != "" && c.Here == transport+":"+place
}

// Sees reports whether a session is the caller's, is held where they speak, or is visible to everybody.
func (c Caller) Sees(thread chat.ThreadID, owner chat.Principal) bool {
	return c.May(Admin) || c.IsHere(thread) || c.Principal.ID != "" && owner.String() == c.Principal.String()
}

// Keeps reports whether the caller may manage a session: rename, list, share and delete it. Somebody who only speaks where it is held may not.
func (c Caller) Keeps(thread chat.ThreadID, owner chat.Principal) bool {
	return c.May(Admin) || c.Manages && c.IsHere(thread) || c.Principal.ID != "" && owner.String() == c.Principal.String()
}

// OwnPrefix is the prefix of the ids of the caller's threads; "": the caller may see all.
func (c Caller) OwnPrefix() string {
	if c.May(Admin) {
		return ""
	}
	return "web:" + c.Principal.OwnPlace() + ":"
}

// Acting returns on whose authority messages of the caller are sent: the caller and everybody they act for.
func (c Caller) Acting() chat.Principal {
	if c.Through != nil {
		return *c.Through
	}
	return c.Principal
}

// Scope is what a token may be used for.
type Scope string

// The scopes, weakest first. Admin includes the others.
const (
	Read    Scope = "read"
	Chat    Scope = "chat"
	Approve Scope = "approve"
	Admin   Scope = "admin"
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{Read, Chat, Approve, Admin} }

// May reports whether the caller's token includes a scope. A token that may chat or approve may also read.
func (c Caller) May(s Scope) bool {
	return slices.ContainsFunc(c.Scopes, func(has Scope) bool { return has == s || has == Admin || s == Read })
}

type callerKey struct{}

// WithCaller attaches the caller to a request, once their token has been checked.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a request; false: nobody was identified.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
