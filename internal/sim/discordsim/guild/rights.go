package guild

import (
	"chorus/internal/sim/discordsim/apierror"
)

// Rights returns the permissions of an account in a channel, or in the guild if c is nil, by Discord's rule: everyone's
// role, the other roles, then the channel's overwrites for everyone, roles and the member, in this order. A thread uses
// its parent's.
func (g *Guild) Rights(a *Account, c *Channel) Perm {
	if c != nil && c.Type == TypeDM {
		return permAll
	}
	if a == nil || a.Member == nil {
		return 0
	}
	if a.ID == g.Owner {
		return permAll
	}
	var base Perm
	if everyone := g.Role(g.ID); everyone != nil {
		base = everyone.Permissions
	}
	for _, id := range a.Member.Roles {
		if r := g.Role(id); r != nil {
			base |= r.Permissions
		}
	}
	if base.Has(PermAdministrator) {
		return permAll
	}
	if c == nil {
		return base
	}
	if c.IsThread() && c.ParentID != nil {
		parent := g.Channel(*c.ParentID)
		if parent == nil {
			return 0
		}
		return g.Rights(a, parent)
	}
	var allow, deny Perm
	for _, o := range c.Overwrites {
		switch {
		case o.ID == g.ID:
			base = base&^o.Deny | o.Allow
		case o.Type == 0 && a.hasRole(o.ID):
			allow, deny = allow|o.Allow, deny|o.Deny
		}
	}
	base = base&^deny | allow
	for _, o := range c.Overwrites {
		if o.Type == 1 && o.ID == a.ID {
			base = base&^o.Deny | o.Allow
		}
	}
	if !base.Has(PermView) {
		return 0 // without seeing a channel, nothing is allowed
	}
	return base
}

func (a *Account) hasRole(id ID) bool {
	for _, have := range a.Member.Roles {
		if have == id {
			return true
		}
	}
	return false
}

// Sees reports whether an account gets a channel's events.
func (g *Guild) Sees(a *Account, c *Channel) bool {
	if c.Type == TypeDM {
		for _, u := range c.Recipients {
			if u.ID == a.ID {
				return true
			}
		}
		return false
	}
	all := g.Rights(a, c)
	if !all.Has(PermView) {
		return false
	}
	if c.Type == TypePrivateThread && !all.Has(PermManageThreads) {
		return c.JoinedBy(a.ID)
	}
	return true
}

// Place returns the channel that an account names in a request, if it has the permission there.
func (g *Guild) Place(a *Account, id ID, need Perm) (*Channel, error) {
	c := g.Channel(id)
	if c == nil {
		return nil, apierror.NotFound(10003, "Channel")
	}
	if !g.Sees(a, c) {
		return nil, apierror.NoAccess()
	}
	if !g.Rights(a, c).Has(need) {
		return nil, apierror.NoPermission()
	}
	return c, nil
}

// Highest is the position of an account's highest role, which limits the roles it may change.
func (g *Guild) Highest(a *Account) int {
	if a.ID == g.Owner {
		return 1 << 30
	}
	top := 0
	if a.Member == nil {
		return top
	}
	for _, id := range a.Member.Roles {
		if r := g.Role(id); r != nil {
			top = max(top, r.Position)
		}
	}
	return top
}

// The gateway's intents, by their bits.
const (
	IntentGuilds      = 1 << 0
	IntentMembers     = 1 << 1
	IntentWebhooks    = 1 << 5
	IntentPresences   = 1 << 8
	IntentMessages    = 1 << 9
	IntentReactions   = 1 << 10
	IntentTyping      = 1 << 11
	IntentDMs         = 1 << 12
	IntentDMReactions = 1 << 13
	IntentDMTyping    = 1 << 14
	IntentContent     = 1 << 15
	IntentsPrivileged = IntentMembers | IntentPresences | IntentContent
	IntentsKnown      = 1<<27 - 1
	IntentsAll        = IntentsKnown
)
