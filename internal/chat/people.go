package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ParticipantKind says what kind of speaker a participant is.
type ParticipantKind string

// The kinds of speakers.
const (
	Person ParticipantKind = "person"
	Agent  ParticipantKind = "agent"
	Bot    ParticipantKind = "bot" // somebody else's program
	System ParticipantKind = "system"
)

// Participant is anybody who speaks in a thread. The model sees the name.
type Participant struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Kind ParticipantKind `json:"kind,omitempty"`
}

// PrincipalKind says where an authority comes from.
type PrincipalKind string

// The kinds of authorities.
const (
	LocalUser    PrincipalKind = "local" // the person at this machine's terminal
	TokenHolder  PrincipalKind = "token"
	ScheduleRule PrincipalKind = "schedule"
	ProcessHook  PrincipalKind = "process" // a background process
	HookRule     PrincipalKind = "hook"
	TaskWorker   PrincipalKind = "task"
	OtherAgent   PrincipalKind = "agent"
	TheSystem    PrincipalKind = "system"
)

// OnPlatform reports whether the kind is the name of a chat platform, that
// is, whether the principal is one of its people.
func (k PrincipalKind) OnPlatform() bool {
	switch k {
	case "", LocalUser, TokenHolder, ScheduleRule, ProcessHook, HookRule, TaskWorker, OtherAgent, TheSystem:
		return false
	default:
		return true
	}
}

// Principal is the authority on which something happens. Every inbound, run, tool call
// and bill carries one. The zero value has no rights and no budget.
type Principal struct {
	Kind  PrincipalKind `json:"kind"`
	ID    string        `json:"id"`
	Name  string        `json:"name,omitempty"`
	Roles []string      `json:"roles,omitempty"`
	// For is the principal on whose behalf this one acts: the one behind a
	// sub-agent, a hook, a schedule, a task or another agent's message. Acting for
	// somebody never gives more rights than they have.
	For *Principal `json:"for,omitempty"`
	// And lists further principals on whose words it acts. All of them must be allowed to do what it does.
	And []Principal `json:"and,omitempty"`
}

// Same reports whether two principals have the same authority: the same identity
// and roles, acting for the same others. Names do not matter.
func (p Principal) Same(q Principal) bool {
	if p.Kind != q.Kind || p.ID != q.ID || !slices.Equal(p.Roles, q.Roles) || (p.For == nil) != (q.For == nil) ||
		!slices.EqualFunc(p.And, q.And, Principal.Same) {
		return false
	}
	return p.For == nil || p.For.Same(*q.For)
}

// String returns the principal's key in tables and logs, for example "local:ada".
func (p Principal) String() string {
	if p.Kind == "" && p.ID == "" {
		return ""
	}
	return string(p.Kind) + ":" + p.ID
}

// PrincipalOf parses a key made by String. The result has no name and no roles.
func PrincipalOf(key string) Principal {
	kind, id, ok := strings.Cut(key, ":")
	if !ok {
		return Principal{ID: key}
	}
	return Principal{Kind: PrincipalKind(kind), ID: id}
}

// Label is what people call a principal: its name and, unless that is this machine, where it is known by it.
func (p Principal) Label() string {
	name := cmp.Or(p.Name, p.ID)
	if p.Kind == LocalUser || p.Kind == "" || name == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, p.Kind)
}

// OwnPlace returns the place of threads that a principal starts over HTTP.
func (p Principal) OwnPlace() string { return string(p.Kind) + "/" + EncodeSegment(p.ID) }

// Person returns the first person in the chain of those for whom a
// principal acts, or the principal itself if there is none.
func (p Principal) Person() Principal {
	for at := &p; at != nil; at = at.For {
		if at.Kind == LocalUser || at.Kind == TokenHolder || at.Kind.OnPlatform() {
			return *at
		}
	}
	return p
}

// Acting returns an authority that acts on the words of all the given principals. It acts for
// the first, who pays, and has only the rights that all of them have.
func Acting(kind PrincipalKind, id string, words []Principal) Principal {
	p := Principal{Kind: kind, ID: id}
	if len(words) > 0 {
		first := words[0]
		p.For, p.And = &first, slices.Clone(words[1:])
	}
	return p
}

// Everybody returns the principal and all those for whom, or on whose words, it acts.
func (p Principal) Everybody() []Principal {
	var out []Principal
	for at := &p; at != nil; at = at.For {
		out = append(out, *at)
		for _, other := range at.And {
			out = append(out, other.Everybody()...)
		}
	}
	return out
}

// Depth counts the principals that are not people between this one and the person behind it, including itself.
func (p Principal) Depth() (n int) {
	for at := &p; at != nil; at = at.For {
		if at.Kind != LocalUser && at.Kind != TokenHolder && !at.Kind.OnPlatform() {
			n++
		}
	}
	return n
}

// OwnerRole is the role of the owner of the home: the person at its terminal,
// and the token stored there in a file only they can read.
const OwnerRole = "owner"

// Owns reports whether a principal is the person at the terminal, either directly or by their token.
func (p Principal) Owns() bool {
	return p.Kind == LocalUser || p.Kind == TokenHolder && slices.Contains(p.Roles, OwnerRole)
}
