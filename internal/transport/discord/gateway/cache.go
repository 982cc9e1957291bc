package gateway

import (
	"slices"
	"sync"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// Cache is what the gateway has reported about guilds: names, and which channel belongs where. It
// may be out of date; missing entries are fetched.
type Cache struct {
	mu       sync.Mutex
	roles    map[string]map[string]string // names by guild and id
	channels map[string]room.Channel
	bots     map[string]string // the role that a guild created for a bot, by guild/user
	owners   map[string]string // users, by guild
	admins   map[string]bool   // roles with the administrator permission, by id
	forums   map[string]discord.GuildForumChannel
	// sorted are the names of a guild in order; nil: they must be sorted again.
	sorted map[string]*mention.Directory
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{roles: map[string]map[string]string{}, channels: map[string]room.Channel{}, bots: map[string]string{},
		owners: map[string]string{}, admins: map[string]bool{}, forums: map[string]discord.GuildForumChannel{}, sorted: map[string]*mention.Directory{}}
}

// SetRole sets the name of a role; "" removes it.
func (w *Cache) SetRole(guild, id, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roles[guild] == nil {
		w.roles[guild] = map[string]string{}
	}
	delete(w.sorted, guild)
	if name == "" {
		delete(w.roles[guild], id)
		delete(w.admins, id)
		return
	}
	w.roles[guild][id] = name
}

// LearnRole stores a role, whether it is an administrator's, and whose it is if it was created for a bot.
func (w *Cache) LearnRole(guild string, r discord.Role) {
	w.SetRole(guild, r.ID.String(), r.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Permissions.Has(discord.PermissionAdministrator) {
		w.admins[r.ID.String()] = true
	} else {
		delete(w.admins, r.ID.String())
	}
	if r.Tags != nil && r.Tags.BotID != nil {
		w.bots[guild+"/"+r.Tags.BotID.String()] = r.ID.String()
	}
}

// SetOwner sets the owner of a guild.
func (w *Cache) SetOwner(guild, user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[guild] = user
}

// Administers reports whether somebody owns a guild or has a role with the administrator permission.
func (w *Cache) Administers(guild, user string, m *discord.Member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.owners[guild] == user {
		return user != ""
	}
	return m != nil && slices.ContainsFunc(m.RoleIDs, func(id snowflake.ID) bool { return w.admins[id.String()] })
}

// BotRole is the role that a guild created for a bot; people mention it by mistake.
func (w *Cache) BotRole(guild, user string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bots[guild+"/"+user]
}

// HasRoles reports whether a guild has reported its roles: it has at least one, everyone's.
func (w *Cache) HasRoles(guild string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.roles[guild]) > 0
}

// RoleNames are the names of a member's roles, which access rules use.
func (w *Cache) RoleNames(guild string, m *discord.Member) []string {
	if m == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, id := range m.RoleIDs {
		if name := w.roles[guild][id.String()]; name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Learn stores a channel.
func (w *Cache) Learn(c discord.Channel) room.Channel {
	out := room.Channel{ID: c.ID().String(), Name: c.Name(), Guild: room.Direct}
	if g, ok := c.(discord.GuildChannel); ok {
		out.Guild = g.GuildID().String()
		if _, ok := c.(discord.GuildThread); ok && g.ParentID() != nil {
			out.Parent = g.ParentID().String() // the parent of other channels is a category
			out.Private = c.Type() == discord.ChannelTypeGuildPrivateThread
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if forum, ok := c.(discord.GuildForumChannel); ok {
		out.Board = true
		w.forums[out.ID] = forum
	}
	old, known := w.channels[out.ID]
	w.channels[out.ID] = out
	w.named(out, old, known)
	return out
}

// Forget removes a deleted channel.
func (w *Cache) Forget(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.channels, channel)
	delete(w.forums, channel)
	clear(w.sorted)
}

// Forum returns a known forum; false: the channel is not one.
func (w *Cache) Forum(channel string) (discord.GuildForumChannel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.forums[channel]
	return f, ok
}

// Known returns a known channel. HomeName is empty for a thread whose parent is unknown.
func (w *Cache) Known(channel string) (room.Channel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.channels[channel]
	c.HomeName = c.Name
	if c.Parent != "" {
		c.HomeName = w.channels[c.Parent].Name
	}
	return c, ok
}

// Directory returns the roles and channels that can be named in a guild. They are shared and must not be
// changed.
func (w *Cache) Directory(guild string) mention.Directory {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.sorted[guild]
	if d == nil {
		d = w.sort(guild)
		w.sorted[guild] = d
	}
	return mention.Directory{Roles: d.Roles, Channels: d.Channels}
}

// sort sorts a guild's names, the oldest first. A large guild has thousands, so
// it does this after a change and not for each message.
func (w *Cache) sort(guild string) *mention.Directory {
	d := &mention.Directory{}
	for id, name := range w.roles[guild] {
		d.Roles = append(d.Roles, mention.Named{ID: id, Name: name})
	}
	for _, c := range w.channels {
		if c.Guild == guild {
			d.Channels = append(d.Channels, mention.Named{ID: c.ID, Name: c.Name})
		}
	}
	slices.SortFunc(d.Roles, byAge)
	slices.SortFunc(d.Channels, byAge)
	return d
}

func byAge(a, b mention.Named) int {
	if room.Older(a.ID, b.ID) {
		return -1
	}
	return 1
}

// named keeps the order when a channel is added. A new channel is usually the newest and is appended
// after all others, where concurrent readers of the list do not see it.
func (w *Cache) named(c room.Channel, old room.Channel, known bool) {
	d := w.sorted[c.Guild]
	switch n := 0; {
	case d == nil || known && old.Name == c.Name && old.Guild == c.Guild:
	case !known:
		if n = len(d.Channels); n == 0 || room.Older(d.Channels[n-1].ID, c.ID) {
			w.sorted[c.Guild] = &mention.Directory{Roles: d.Roles, Channels: append(d.Channels, mention.Named{ID: c.ID, Name: c.Name})}
			return
		}
		fallthrough
	default:
		clear(w.sorted)
	}
}

// Guilds are the known channels, by guild.
func (w *Cache) Guilds() map[string][]room.Channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string][]room.Channel{}
	for _, c := range w.channels {
		if c.Guild != "" && c.Guild != room.Direct {
			out[c.Guild] = append(out[c.Guild], c)
		}
	}
	return out
}
