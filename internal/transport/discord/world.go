package discord

import (
	"context"
	"slices"
	"sync"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// world is what the gateway has told of guilds: names and which channel hangs where. It
// may always be behind; what is missing is asked for.
type world struct {
	mu       sync.Mutex
	roles    map[string]map[string]string // names by guild and id
	channels map[string]room.Channel
	people   map[string][]mention.Named // by guild, who spoke last first
	bots     map[string]string          // the role that a guild made for a bot, by guild/user
	// sorted are the names of a guild in order; nil: they must be sorted anew.
	sorted map[string]*mention.Directory
}

func newWorld() *world {
	return &world{roles: map[string]map[string]string{}, channels: map[string]room.Channel{}, people: map[string][]mention.Named{}, bots: map[string]string{},
		sorted: map[string]*mention.Directory{}}
}

// manyPeople is how many of a guild can be mentioned by name.
const manyPeople = 200

func (w *world) role(guild, id, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roles[guild] == nil {
		w.roles[guild] = map[string]string{}
	}
	delete(w.sorted, guild)
	if name == "" {
		delete(w.roles[guild], id)
		return
	}
	w.roles[guild][id] = name
}

// roleOf learns a role, and whose it is if it was made for a bot.
func (w *world) roleOf(guild string, r discord.Role) {
	w.role(guild, r.ID.String(), r.Name)
	if r.Tags != nil && r.Tags.BotID != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bots[guild+"/"+r.Tags.BotID.String()] = r.ID.String()
	}
}

// botRole is the role that a guild made for a bot; people mention it by mistake.
func (w *world) botRole(guild, user string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bots[guild+"/"+user]
}

// hasRoles reports whether a guild has told of its roles: it has one at least, everyone's.
func (w *world) hasRoles(guild string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.roles[guild]) > 0
}

// roleNames are what access rules know roles by.
func (w *world) roleNames(guild string, m *discord.Member) []string {
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

func (w *world) channel(c discord.Channel) room.Channel {
	out := room.Channel{ID: c.ID().String(), Name: c.Name(), Guild: room.Direct}
	if g, ok := c.(discord.GuildChannel); ok {
		out.Guild = g.GuildID().String()
		if _, ok := c.(discord.GuildThread); ok && g.ParentID() != nil {
			out.Parent = g.ParentID().String() // the parent of others is a category
			out.Private = c.Type() == discord.ChannelTypeGuildPrivateThread
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old, known := w.channels[out.ID]
	w.channels[out.ID] = out
	w.named(out, old, known)
	return out
}

func (w *world) forget(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.channels, channel)
	clear(w.sorted)
}

func (w *world) known(channel string) (room.Channel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.channels[channel]
	c.HomeName = c.Name
	if c.Parent != "" {
		c.HomeName = w.channels[c.Parent].Name
	}
	return c, ok
}

// met remembers who speaks, so that a model can mention them by name.
func (w *world) met(guild string, n mention.Named) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.DeleteFunc(w.people[guild], func(o mention.Named) bool { return o.ID == n.ID })
	list = append([]mention.Named{n}, list...)
	w.people[guild] = list[:min(len(list), manyPeople)]
}

// nameOf is what somebody who has spoken is called; "" if they have not.
func (w *world) nameOf(guild, user string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.people[guild] {
		if n.ID == user {
			return n.Name
		}
	}
	return ""
}

// directory is who and what can be named in a guild. Its roles and channels are shared:
// nobody may change them.
func (w *world) directory(guild string) mention.Directory {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.sorted[guild]
	if d == nil {
		d = w.sort(guild)
		w.sorted[guild] = d
	}
	return mention.Directory{People: slices.Clone(w.people[guild]), Roles: d.Roles, Channels: d.Channels}
}

// sort puts a guild's names in order, the oldest first. A large guild has thousands, so
// it is done when something has changed and not for each message.
func (w *world) sort(guild string) *mention.Directory {
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

// named keeps the order when a channel is learned. A new one is mostly the newest and goes
// behind all others, which those who read the list meanwhile do not see.
func (w *world) named(c room.Channel, old room.Channel, known bool) {
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

// channelOf finds a channel, asking for it, and for the one that it hangs under, where the
// gateway has not told.
func (b *Bot) channelOf(ctx context.Context, id string) (room.Channel, error) {
	c, ok := b.world.known(id)
	if !ok {
		if err := b.learn(ctx, id); err != nil {
			return room.Channel{}, err
		}
		c, _ = b.world.known(id)
	}
	if c.Parent != "" && c.HomeName == "" {
		if err := b.learn(ctx, c.Parent); err != nil {
			return room.Channel{}, err
		}
		c, _ = b.world.known(id)
	}
	return c, nil
}

// learn asks for a channel.
func (b *Bot) learn(ctx context.Context, id string) error {
	c, err := patiently(ctx, b, b.Patience, "channel", func(ctx context.Context) (discord.Channel, error) {
		return b.rest.GetChannel(number(id), rest.WithCtx(ctx))
	})
	if err == nil {
		b.world.channel(c)
	}
	return err
}
