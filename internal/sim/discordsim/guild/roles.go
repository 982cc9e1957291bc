package guild

import (
	"cmp"
	"slices"

	"chorus/internal/sim/discordsim/apierror"
)

func (r *Role) change(p apierror.Patch) error {
	return cmp.Or(apierror.Take(p, "name", &r.Name), apierror.Take(p, "color", &r.Color), apierror.Take(p, "hoist", &r.Hoist),
		apierror.Take(p, "permissions", &r.Permissions), apierror.Take(p, "mentionable", &r.Mentionable))
}

// NewRole creates a role at the bottom.
func (g *Guild) NewRole(by *Account, p apierror.Patch) (*Role, error) {
	if !g.Rights(by, nil).Has(PermManageRoles) {
		return nil, apierror.NoPermission()
	}
	if len(g.Roles) >= 250 {
		return nil, apierror.BadRequest(30005, "Maximum number of guild roles reached (250)")
	}
	r := &Role{ID: g.NewID(), Name: "new role", Position: 1, Permissions: g.Roles[0].Permissions}
	if err := r.change(p); err != nil {
		return nil, err
	}
	for _, other := range g.Roles[1:] {
		other.Position++
	}
	g.Roles = append(g.Roles, r)
	g.tellRole("GUILD_ROLE_CREATE", r)
	return r, nil
}

// ChangeRole applies a patch to a role.
func (g *Guild) ChangeRole(r *Role, p apierror.Patch) error {
	next := *r
	if err := next.change(p); err != nil {
		return err
	}
	*r = next
	g.tellRole("GUILD_ROLE_UPDATE", r)
	return nil
}

// DropRole deletes a role, also from its members.
func (g *Guild) DropRole(r *Role) {
	g.Roles = slices.DeleteFunc(g.Roles, func(have *Role) bool { return have == r })
	for _, a := range g.Accounts {
		if a.Member == nil {
			continue
		}
		a.Member.Roles = slices.DeleteFunc(a.Member.Roles, func(id ID) bool { return id == r.ID })
	}
	g.emit(Event{Name: "GUILD_ROLE_DELETE", intent: IntentGuilds, data: object{"guild_id": g.ID, "role_id": r.ID}})
}

func (g *Guild) tellRole(name string, r *Role) {
	g.emit(Event{Name: name, intent: IntentGuilds, data: object{"guild_id": g.ID, "role": ViewRole(r)}})
}
