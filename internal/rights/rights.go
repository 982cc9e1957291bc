// Package rights determines who has which permission profile, and who may give one to others. It
// promises that nobody gives more than they, and everybody they act for, have.
//
// It knows profiles by name only; the gate evaluates them.
package rights

import (
	"slices"
	"strings"

	"chorus/internal/chat"
)

// Grant gives a profile to whoever To names: a principal by its key ("local:ada", "discord:123"),
// everybody of a kind ("local", "discord", "token"), a role ("role:admin", or "discord/role:admin" for
// one platform only), everybody on any chat platform ("platform"), or "anyone".
type Grant struct {
	To      string
	Profile string
}

// OnPlatform in a Grant names everybody on any chat platform.
const OnPlatform = "platform"

// Policy says who has which rights.
type Policy struct {
	Grants  []Grant  // the first grant that matches somebody applies
	Editors []string // who may change permissions, written like Grant.To
	// Order contains chains of profiles, each allowing no more than those before it.
	// A profile in no chain is comparable only with itself.
	Order [][]string
	// Widest is a profile that allows everything, so every other one is narrower; "" if there is none.
	Widest string
}

// Presets returns the chains of the built-in profiles. Standard and
// guarded each allow something that the other does not.
func Presets() [][]string { return [][]string{{"open", "standard", "locked"}, {"open", "guarded"}} }

// Grant returns the grant that applies to a principal itself, whoever it acts for.
func (b Policy) Grant(p chat.Principal) (Grant, bool) {
	if p.Kind == "" || p.ID == "" {
		return Grant{}, false
	}
	for _, g := range b.Grants {
		if names(g.To, p) {
			if g.To == OnPlatform {
				g.To = string(p.Kind) // say which platform
			}
			return g, true
		}
	}
	return Grant{}, false
}

// longest limits how many principals may act for each other in a row.
const longest = 16

// Behind returns everybody whose rights all count when a principal does something: the principal, whoever it
// acts for, and the others on whose words it acts. A principal that runs by itself without its own grant (an
// agent, a task, a schedule, a hook) does not count separately. There is always at least one.
func (b Policy) Behind(p chat.Principal) []chat.Principal {
	out, ok := b.behind(nil, p, 0)
	if !ok {
		return []chat.Principal{{}} // the chain is too long to tell
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

// MayGive reports whether all givers may give a profile to an agent or a channel, and if not, why. Nobody
// gives more than they have, and only people whom Editors names may give profiles at all.
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

// MayChange reports whether all givers may replace one profile by another, and if not, why. Taking rights
// away only requires having some. Giving rights requires what [Policy.MayGive] does.
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
