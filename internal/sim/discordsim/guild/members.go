package guild

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/apierror"
)

// GiveRole adds or removes a role of a member.
func (g *Guild) GiveRole(a *Account, r *Role, on bool) {
	a.Member.Roles = slices.DeleteFunc(a.Member.Roles, func(id ID) bool { return id == r.ID })
	if on {
		a.Member.Roles = append(a.Member.Roles, r.ID)
	}
	g.tellMember(a)
}

func (g *Guild) tellMember(a *Account) {
	data := object{"guild_id": g.ID, "user": a.User, "nick": a.Member.Nick, "roles": a.Member.Roles, "joined_at": a.Member.JoinedAt,
		"avatar": nil, "premium_since": nil, "deaf": false, "mute": false, "pending": false, "flags": 0,
		"communication_disabled_until": a.Member.Until}
	g.emit(Event{Name: "GUILD_MEMBER_UPDATE", intent: IntentMembers, data: data})
	g.emit(Event{Name: "GUILD_MEMBER_UPDATE", only: a.ID, data: data})
}

// ChangeMember applies a patch to a member. by is the caller.
func (g *Guild) ChangeMember(by, a *Account, p apierror.Patch) error {
	have := g.Rights(by, nil)
	next := *a.Member
	var until *time.Time
	if err := cmp.Or(apierror.Take(p, "nick", &next.Nick), apierror.Take(p, "roles", &next.Roles), apierror.Take(p, "communication_disabled_until", &until)); err != nil {
		return err
	}
	need := map[string]Perm{"nick": PermManageNicknames, "roles": PermManageRoles, "communication_disabled_until": PermModerateMembers}
	if a == by {
		need["nick"] = PermChangeNickname
	}
	for key, perm := range need {
		if _, ok := p[key]; ok && !have.Has(perm) {
			return apierror.NoPermission()
		}
	}
	if a != by && g.Highest(a) >= g.Highest(by) {
		return apierror.NoPermission()
	}
	if next.Nick != nil && len([]rune(*next.Nick)) > 32 {
		return apierror.Wrong("nick", "BASE_TYPE_BAD_LENGTH", "Must be 32 or fewer in length.")
	}
	if next.Nick != nil && *next.Nick == "" {
		next.Nick = nil
	}
	if _, ok := p["communication_disabled_until"]; ok {
		next.Until = until
	}
	*a.Member = next
	g.tellMember(a)
	return nil
}

// Invite adds an account to the guild that was away.
func (g *Guild) Invite(a *Account) error {
	if a.invited == nil {
		return fmt.Errorf("%s is in the guild already", a.Username)
	}
	a.Member, a.invited = a.invited, nil
	a.Member.JoinedAt = g.Now()
	return nil
}

// Install is a person installing an application for themselves.
func (a *Account) Install(person ID) { a.installed = append(a.installed, person) }

// Named reports whether one of a member's names starts with a text.
func (a *Account) Named(begin string) bool {
	starts := func(name string) bool { return strings.HasPrefix(strings.ToLower(name), strings.ToLower(begin)) }
	return starts(a.Username) || a.Member != nil && a.Member.Nick != nil && starts(*a.Member.Nick)
}
