// Package rights says who has which permission profile, and who may give one to others.
// It promises that nobody gives more than they and everybody they act for have.
//
// It knows profiles by name only: the gate asks each of them.
package rights

import (
	"slices"
	"strings"

	"chorus/internal/chat"
)

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

// Behind are those whose rights all count when a principal does something: itself, whoever it
// acts for, and the others on whose words it acts. What runs by itself and has no grant of its own
// (an agent, a task, a schedule, a hook) counts as nobody but them. There is always at least one.
func (b Policy) Behind(p chat.Principal) []chat.Principal {
	out, ok := b.behind(nil, p, 0)
	if !ok {
		return []chat.Principal{{}} // nobody can tell for whom any more
	}
	return out
}

func (b Policy) behind(out []chat.Principal, p chat.Principal, before int) ([]chat.Principal, bool) {
	for at, n := &p, before; at != nil; at, n = at.For, n+1 {
		if n == longest {
			return nil, false
		}
		for _, other := range at.And {
			var ok bool
			if out, ok = b.behind(out, other, n+1); !ok {
				return nil, false
			}
		}
		if _, granted := b.Grant(*at); at.For != nil && !granted && byItself(at.Kind) {
			continue
		}
		out = append(out, *at)
	}
	return out, true
}

func byItself(k chat.PrincipalKind) bool {
	switch k {
	case chat.OtherAgent, chat.TaskWorker, chat.ScheduleRule, chat.ProcessHook, chat.HookRule, chat.TheSystem:
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
		own, ok := b.Grant(p)
		if !ok {
			return false, p.String() + " has no rights to give"
		}
		if !b.Narrower(profile, own.Profile) {
			return false, p.String() + " has the rights of " + own.Profile + " and cannot give " + profile
		}
	}
	return true, ""
}

// MayChange reports whether everybody on whose word it is done may give a profile in place of
// another, and if not, why: to take rights away it is enough to have some, to give them takes
// what [Policy.MayGive] asks.
func (b Policy) MayChange(from, to string, givers ...chat.Principal) (bool, string) {
	if len(givers) == 0 || from == to || !b.Narrower(to, from) {
		return b.MayGive(to, givers...)
	}
	for _, p := range givers {
		for _, who := range b.Behind(p) {
			if _, ok := b.Grant(who); !ok {
				return b.MayGive(to, givers...)
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
