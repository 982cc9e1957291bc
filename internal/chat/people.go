package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ParticipantKind says what sort of speaker a participant is.
type ParticipantKind string

// The kinds of speakers.
const (
	Person ParticipantKind = "person"
	Agent  ParticipantKind = "agent"
	Bot    ParticipantKind = "bot" // somebody else's program
	System ParticipantKind = "system"
)

// Participant is anybody who speaks in a thread. The name is kept up to the model.
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
	ProcessHook  PrincipalKind = "process" // a process that was left running
	HookRule     PrincipalKind = "hook"
	TaskWorker   PrincipalKind = "task"
	OtherAgent   PrincipalKind = "agent"
	TheSystem    PrincipalKind = "system"
)

// OnPlatform reports whether the kind is a chat platform's name: its people.
func (k PrincipalKind) OnPlatform() bool {
	switch k {
	case "", LocalUser, TokenHolder, ScheduleRule, ProcessHook, HookRule, TaskWorker, OtherAgent, TheSystem:
		return false
	default:
		return true
	}
}

// Principal is on whose authority something happens. It travels with every
// inbound, run, tool call and bill; the zero value has no rights and no purse.
type Principal struct {
	Kind  PrincipalKind `json:"kind"`
	ID    string        `json:"id"`
	Name  string        `json:"name,omitempty"`
	Roles []string      `json:"roles,omitempty"`
	// For is on whose behalf it acts: whoever is behind a sub-agent, a hook, a schedule,
	// a task or a message of another agent. Who acts for somebody never may more than they.
	For *Principal `json:"for,omitempty"`
	// And are the others on whose words it acts too: what it does, all of them must be allowed to.
	And []Principal `json:"and,omitempty"`
}

// Same reports whether two principals have the same authority: who they are, with the
// same roles, for the same others. What they are called does not matter.
func (p Principal) Same(q Principal) bool {
	if p.Kind != q.Kind || p.ID != q.ID || !slices.Equal(p.Roles, q.Roles) || (p.For == nil) != (q.For == nil) ||
		!slices.EqualFunc(p.And, q.And, Principal.Same) {
		return false
	}
	return p.For == nil || p.For.Same(*q.For)
}

// String is the principal's key in tables and logs, for example "local:ada".
func (p Principal) String() string {
	if p.Kind == "" && p.ID == "" {
		return ""
	}
	return string(p.Kind) + ":" + p.ID
}

// PrincipalOf is the principal of a key that String has made: who it is, without name and roles.
func PrincipalOf(key string) Principal {
	kind, id, ok := strings.Cut(key, ":")
	if !ok {
		return Principal{ID: key}
	}
	return Principal{Kind: PrincipalKind(kind), ID: id}
}

// Label is what people call a principal: its name, with where it is known by that unless it is this machine.
func (p Principal) Label() string {
	name := cmp.Or(p.Name, p.ID)
	if p.Kind == LocalUser || p.Kind == "" || name == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, p.Kind)
}

// OwnPlace is where the threads are that a principal begins over HTTP.
func (p Principal) OwnPlace() string { return string(p.Kind) + "/" + EncodeSegment(p.ID) }

// Person is the first person down the line of those for whom a principal acts; itself where there is none.
func (p Principal) Person() Principal {
	for at := &p; at != nil; at = at.For {
		if at.Kind == LocalUser || at.Kind == TokenHolder || at.Kind.OnPlatform() {
			return *at
		}
	}
	return p
}

// Acting is an authority that acts on the words of all of these: for the first, who pays, and with no more rights than
// every one of them has.
func Acting(kind PrincipalKind, id string, words []Principal) Principal {
	p := Principal{Kind: kind, ID: id}
	if len(words) > 0 {
		first := words[0]
		p.For, p.And = &first, slices.Clone(words[1:])
	}
	return p
}

// Everybody is the principal itself and all for whom, and on whose words, it acts.
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

// Depth is how many who are no person stand between the authority and the person behind it, itself included.
func (p Principal) Depth() (n int) {
	for at := &p; at != nil; at = at.For {
		if at.Kind != LocalUser && at.Kind != TokenHolder && !at.Kind.OnPlatform() {
			n++
		}
	}
	return n
}

// OwnerRole is the role of whoever owns the home: the person at its terminal, and the
// token that lies there in a file only they can read.
const OwnerRole = "owner"

// Owns reports whether a principal is the person at the terminal, there or by their token.
func (p Principal) Owns() bool {
	return p.Kind == LocalUser || p.Kind == TokenHolder && slices.Contains(p.Roles, OwnerRole)
}
