// Package rights says on whose rights something is done. Effective rights are those of
// the sender, of the channel and of the agent together: whatever is done, each of them
// must allow it. It promises that another person, another message or another rule
// added to the sum never widens it.
//
// It knows permission profiles by name only: the gate asks each of them.
package rights

import (
	"slices"
	"strings"

	"chorus/internal/chat"
)

// Rights are the profiles that must all allow what is done. The zero value restricts
// nothing: it is where a sum begins, never what somebody has.
type Rights struct {
	profiles []string // sorted, each once
	none     bool
}

// Of are the rights that all these profiles allow.
func Of(profiles ...string) Rights { return Rights{}.with(profiles) }

// None allow nothing.
func None() Rights { return Rights{none: true} }

func (r Rights) with(profiles []string) Rights {
	if r.none {
		return r
	}
	all := append(slices.Clone(r.profiles), profiles...)
	slices.Sort(all)
	return Rights{profiles: slices.Compact(all)}
}

// And are the rights that both allow.
func (r Rights) And(other Rights) Rights {
	if r.none || other.none {
		return None()
	}
	return r.with(other.profiles)
}

// Profiles are the names of those that must all allow; nobody is allowed anything
// where Nothing is true.
func (r Rights) Profiles() []string { return slices.Clone(r.profiles) }

// Nothing reports that nothing at all is allowed.
func (r Rights) Nothing() bool { return r.none }

// Within reports whether these rights are certainly no wider than other ones: every
// profile that holds for those holds here too.
func (r Rights) Within(other Rights) bool {
	if r.none || other.none {
		return r.none
	}
	for _, p := range other.profiles {
		if !slices.Contains(r.profiles, p) {
			return false
		}
	}
	return true
}

// String is for people: "guarded and standard", "nothing".
func (r Rights) String() string {
	switch {
	case r.none:
		return "nothing"
	case len(r.profiles) == 0:
		return "everything"
	default:
		return strings.Join(r.profiles, " and ")
	}
}

// Effective are the rights of a sender in a channel with an agent, each given by the
// profiles that hold for it. A sender or an agent for whom no profile holds has no
// rights; a channel without one restricts nothing.
func Effective(sender, channel, agent []string) Rights {
	if len(sender) == 0 || len(agent) == 0 {
		return None()
	}
	return Of(sender...).with(channel).with(agent)
}

// Grant gives a profile to whoever To names: a principal by its key ("local:ada",
// "discord:123"), everybody of a kind ("local", "discord", "token"), a role
// ("role:admin", or "discord/role:admin" for one platform's alone), everybody on any chat
// platform ("platform"), or "anyone".
type Grant struct {
	To      string
	Profile string
}

// OnPlatform names everybody on any chat platform in a Grant.
const OnPlatform = "platform"

// Policy is who has which rights.
type Policy struct {
	Grants  []Grant  // the first one that names somebody counts
	Editors []string // who may change permissions, written as To of a grant
	// Order are chains of profiles of which each allows no more than those before it.
	// One that stands in none is comparable with itself alone.
	Order [][]string
	// Widest is a profile that allows everything; every other one is narrower. "": none is.
	Widest string
}

// Presets are the chains of the built-in profiles. Standard and guarded each allow
// something that the other does not.
func Presets() [][]string { return [][]string{{"open", "standard", "locked"}, {"open", "guarded"}} }

// Of are the rights of one principal, never more than those of whoever it acts for;
// nobody in particular has none.
func (b Policy) Of(p chat.Principal) Rights {
	var r Rights
	for _, q := range b.Behind(p) {
		g, ok := b.Grant(q)
		if !ok {
			return None()
		}
		r = r.with([]string{g.Profile})
	}
	return r
}

// Grant is the one that holds for a principal by itself, whoever it acts for.
func (b Policy) Grant(p chat.Principal) (Grant, bool) {
	if p.Kind == "" || p.ID == "" {
		return Grant{}, false
	}
	for _, g := range b.Grants {
		if names(g.To, p) {
			if g.To == OnPlatform {
				g.To = string(p.Kind) // say which
			}
			return g, true
		}
	}
	return Grant{}, false
}

// longest is how many may act for each other in a row.
const longest = 16

// Behind are those whose rights all count when a principal does something: itself, and
// whoever it acts for. What runs by itself and has no grant of its own (an agent, a
// task, a schedule) counts as nobody but them. There is always at least one.
func (b Policy) Behind(p chat.Principal) []chat.Principal {
	var out []chat.Principal
	for at, n := &p, 0; at != nil; at, n = at.For, n+1 {
		if n == longest {
			return []chat.Principal{{}} // nobody can tell for whom any more
		}
		if _, granted := b.Grant(*at); at.For != nil && !granted && byItself(at.Kind) {
			continue
		}
		out = append(out, *at)
	}
	return out
}

func byItself(k chat.PrincipalKind) bool {
	switch k {
	case chat.OtherAgent, chat.TaskWorker, chat.ScheduleRule, chat.TheSystem:
		return true
	default:
		return false
	}
}

func names(to string, p chat.Principal) bool {
	if to == "anyone" || to == string(p.Kind) || to == p.String() || to == OnPlatform && p.Kind.OnPlatform() {
		return true
	}
	if platform, role, ok := strings.Cut(to, "/"); ok && platform == string(p.Kind) {
		to = role
	}
	role, ok := strings.CutPrefix(to, "role:")
	return ok && slices.Contains(p.Roles, role)
}

// OfRun are the rights of a run that works on the words of these principals: what all
// of them may. Merged messages, and a steer by somebody who may less, lower them from
// there on. Without anybody there are none.
func (b Policy) OfRun(principals ...chat.Principal) Rights {
	if len(principals) == 0 {
		return None()
	}
	var r Rights
	for _, p := range principals {
		r = r.And(b.Of(p))
	}
	return r
}

// MayGive reports whether everybody on whose word it is done may give a profile to an
// agent or a channel, and if not, why. Nobody gives more than they have, and only
// people whom Editors names give at all.
func (b Policy) MayGive(profile string, givers ...chat.Principal) (bool, string) {
	if len(givers) == 0 {
		return false, "nobody in particular may change permissions"
	}
	var all []chat.Principal
	for _, p := range givers {
		all = append(all, b.Behind(p)...)
	}
	for _, p := range all {
		if !slices.ContainsFunc(b.Editors, func(to string) bool { return names(to, p) && p.ID != "" && p.Kind != "" }) {
			return false, p.String() + " may not change permissions"
		}
		own := b.Of(p)
		if own.none {
			return false, p.String() + " has no rights to give"
		}
		for _, has := range own.profiles {
			if !b.Narrower(profile, has) {
				return false, p.String() + " has the rights of " + own.String() + " and cannot give " + profile
			}
		}
	}
	return true, ""
}

// Narrower reports whether a profile certainly allows no more than another.
func (b Policy) Narrower(profile, than string) bool {
	if profile == than || than == b.Widest {
		return profile != ""
	}
	return slices.ContainsFunc(b.Order, func(chain []string) bool {
		at := slices.Index(chain, than)
		return at >= 0 && slices.Contains(chain[at:], profile)
	})
}
