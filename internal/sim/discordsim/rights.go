package discordsim

// rights is what an account may do in a channel; in the guild where c is nil. It is Discord's
// rule: everyone's role, the other roles, then the channel's exceptions for everyone, roles and
// the member, in this order. A thread has its parent's.
func (w *world) rights(a *account, c *Channel) Perm {
	if c != nil && c.Type == TypeDM {
		return permAll
	}
	if a == nil || a.member == nil {
		return 0
	}
	if a.ID == w.owner {
		return permAll
	}
	var base Perm
	if everyone := w.role(w.guild); everyone != nil {
		base = everyone.Permissions
	}
	for _, id := range a.member.Roles {
		if r := w.role(id); r != nil {
			base |= r.Permissions
		}
	}
	if base.Has(PermAdministrator) {
		return permAll
	}
	if c == nil {
		return base
	}
	if c.thread() && c.ParentID != nil {
		parent := w.channel(*c.ParentID)
		if parent == nil {
			return 0
		}
		return w.rights(a, parent)
	}
	var allow, deny Perm
	for _, o := range c.Overwrites {
		switch {
		case o.ID == w.guild:
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
		return 0 // who does not see a channel can do nothing in it
	}
	return base
}

func (a *account) hasRole(id ID) bool {
	for _, have := range a.member.Roles {
		if have == id {
			return true
		}
	}
	return false
}

// sees is whether an account hears of what happens in a channel.
func (w *world) sees(a *account, c *Channel) bool {
	if c.Type == TypeDM {
		for _, u := range c.Recipients {
			if u.ID == a.ID {
				return true
			}
		}
		return false
	}
	all := w.rights(a, c)
	if !all.Has(PermView) {
		return false
	}
	if c.Type == TypePrivateThread && !all.Has(PermManageThreads) {
		_, in := c.joined[a.ID]
		return in
	}
	return true
}

// place is the channel that an account names in a request, where it may do what it wants.
func (w *world) place(a *account, id ID, need Perm) (*Channel, error) {
	c := w.channel(id)
	if c == nil {
		return nil, notFound(10003, "Channel")
	}
	if !w.sees(a, c) {
		return nil, noAccess()
	}
	if !w.rights(a, c).Has(need) {
		return nil, noPermission()
	}
	return c, nil
}

// highest is the position of an account's highest role, which limits the roles it may touch.
func (w *world) highest(a *account) int {
	if a.ID == w.owner {
		return 1 << 30
	}
	top := 0
	if a.member == nil {
		return top
	}
	for _, id := range a.member.Roles {
		if r := w.role(id); r != nil {
			top = max(top, r.Position)
		}
	}
	return top
}

// The gateway's intents, by their bits.
const (
	intentGuilds      = 1 << 0
	intentMembers     = 1 << 1
	intentWebhooks    = 1 << 5
	intentPresences   = 1 << 8
	intentMessages    = 1 << 9
	intentReactions   = 1 << 10
	intentTyping      = 1 << 11
	intentDMs         = 1 << 12
	intentDMReactions = 1 << 13
	intentDMTyping    = 1 << 14
	intentContent     = 1 << 15
	intentsPrivileged = intentMembers | intentPresences | intentContent
	intentsKnown      = 1<<27 - 1
	intentsAll        = intentsKnown
)
