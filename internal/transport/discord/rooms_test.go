package discord

import (
	"fmt"
	"slices"
	"testing"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"
	"pgregory.net/rapid"

	"chorus/internal/room"
)

func TestPermissionsAsDiscordSeesThem(t *testing.T) {
	t.Parallel()
	const everyone, keeper, muted, user, owner = 1, 2, 3, 10, 11
	view, read := discord.PermissionViewChannel, discord.PermissionReadMessageHistory
	roles := []discord.Role{{ID: everyone, Name: "@everyone", Permissions: view | read}, {ID: keeper, Name: "keeper"}, {ID: muted, Name: "muted"},
		{ID: 4, Name: "admin", Permissions: discord.PermissionAdministrator}}
	role := func(id snowflake.ID, allow, deny discord.Permissions) discord.PermissionOverwrite {
		return discord.RolePermissionOverwrite{RoleID: id, Allow: allow, Deny: deny}
	}
	for name, c := range map[string]struct {
		id    snowflake.ID
		roles []snowflake.ID
		over  discord.PermissionOverwrites
		want  bool
	}{
		"everybody":                        {user, nil, nil, true},
		"closed to all":                    {user, nil, discord.PermissionOverwrites{role(everyone, 0, view)}, false},
		"closed, but open to a role":       {user, []snowflake.ID{keeper}, discord.PermissionOverwrites{role(keeper, view, 0), role(everyone, 0, view)}, true},
		"one role opens what another does": {user, []snowflake.ID{keeper, muted}, discord.PermissionOverwrites{role(muted, 0, read), role(keeper, read, 0)}, true},
		"closed to a role":                 {user, []snowflake.ID{muted}, discord.PermissionOverwrites{role(muted, 0, read)}, false},
		"closed to a member": {user, []snowflake.ID{keeper}, discord.PermissionOverwrites{role(keeper, view, 0),
			discord.MemberPermissionOverwrite{UserID: user, Deny: read}}, false},
		"the owner":        {owner, nil, discord.PermissionOverwrites{role(everyone, 0, view)}, true},
		"an administrator": {user, []snowflake.ID{4}, discord.PermissionOverwrites{role(everyone, 0, view)}, true},
	} {
		m := discord.Member{User: discord.User{ID: c.id}, RoleIDs: c.roles}
		if got := permissions(m, owner, roles, c.over).Has(toRead); got != c.want {
			t.Errorf("%s: may read %v", name, got)
		}
	}
}

// TestTailsKeepOrder: whatever order messages come in, and however often, the newest stand
// there once and in order.
func TestTailsKeepOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var most []int
		for id := range rapid.IntRange(1, 60).Draw(t, "how many") {
			most = append(most, id+1)
		}
		all := append(rapid.Permutation(most).Draw(t, "ids"), rapid.SliceOf(rapid.SampledFrom(most)).Draw(t, "again")...)
		tails := newTails()
		for _, id := range all {
			tails.add("c", remark{id: fmt.Sprint(id)})
		}
		list, _ := tails.before("c", "61")
		different := map[int]bool{}
		for _, id := range all {
			different[id] = true
		}
		if want := min(len(different), tailLength); len(list) != want {
			t.Fatalf("%d are kept, not %d", len(list), want)
		}
		for i := 1; i < len(list); i++ {
			if !room.Older(list[i].id, list[i-1].id) {
				t.Fatalf("%v stands before %v", list[i-1].id, list[i].id)
			}
		}
		if newest := fmt.Sprint(slices.Max(all)); tails.newest("c") != newest {
			t.Fatalf("the newest is %s, not %s", tails.newest("c"), newest)
		}
	})
}

func TestEventsOfChannels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data any
		kind room.Kind
	}{
		{gateway.EventMessageCreate{}, room.Said}, {gateway.EventMessageUpdate{}, room.Edited}, {gateway.EventMessageDelete{}, room.Deleted},
		{gateway.EventMessageDeleteBulk{}, room.Deleted}, {gateway.EventMessageReactionAdd{}, room.Reacted}, {gateway.EventMessageReactionRemove{}, room.Reacted},
		{gateway.EventMessageReactionRemoveAll{}, room.Reacted}, {Happening{Kind: room.Timer}, room.Timer}, {gateway.EventReady{}, ""}, {gateway.EventGuildCreate{}, ""},
		{gateway.EventChannelPinsUpdate{}, ""},
	} {
		if e, is := eventOf(c.data); is != (c.kind != "") || e.Kind != c.kind {
			t.Errorf("%T is %q, %v", c.data, e.Kind, is)
		}
	}
}
