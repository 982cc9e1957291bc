package guild

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Account is a bot or a person.
type Account struct {
	User
	Token      string
	Member     *Member // nil: not in the guild
	Privileged int     // the intents that a bot's owner enabled
	Commands   []*Command
	Emojis     []*AppEmoji

	installed []ID // people who installed the application
	// invited is its membership once somebody invites it; nil: it is a member, or never will be.
	invited *Member
}

// Guild is the guild with its contents. Its events go to emit, in order. Its lists may be read, but only its methods may change them.
type Guild struct {
	ID       ID
	Name     string
	Owner    ID
	Roles    []*Role
	Accounts []*Account
	Channels []*Channel // in the order of their making
	Webhooks []*Webhook
	Now      func() time.Time
	Scale    func(time.Duration) time.Duration // a duration in this guild's time

	after        func(time.Duration, func()) // calls with the lock held
	emit         func(Event)
	url          string // where attachments are read from
	mint         mint
	count        uint64 // of changes to messages
	system       string // the name of the channel for new members
	byID         map[ID]*Channel
	interactions []*interaction
	files        map[ID][]byte
	uploads      map[ID]Attachment // given with commands
	nonces       map[string]nonceUse
}

// nonceUse is a message that was sent with an enforced nonce.
type nonceUse struct {
	message, channel ID
	at               time.Time
}

// NewID is a new snowflake.
func (g *Guild) NewID() ID { return g.mint.next(g.Now()) }

// New creates the guild that the settings describe.
func New(o Settings) (*Guild, error) {
	g := &Guild{
		Now: o.Now, after: o.After, emit: o.Emit, url: o.URL, Name: o.Name, system: o.System,
		files: map[ID][]byte{}, uploads: map[ID]Attachment{}, byID: map[ID]*Channel{}, nonces: map[string]nonceUse{},
		Scale: func(d time.Duration) time.Duration { return time.Duration(float64(d) / o.TimeScale) },
	}
	g.ID = g.NewID()
	g.Roles = []*Role{{ID: g.ID, Name: "@everyone", Permissions: permPeople}}
	for _, spec := range o.Roles {
		if err := g.buildRole(spec); err != nil {
			return nil, err
		}
	}
	for _, spec := range o.People {
		if err := g.buildPerson(spec); err != nil {
			return nil, err
		}
	}
	for _, spec := range o.Bots {
		if err := g.buildBot(spec); err != nil {
			return nil, err
		}
	}
	for i, spec := range o.Channels {
		if err := g.buildChannel(i, spec); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Guild) buildRole(spec RoleSpec) error {
	perms, err := permissions(spec.Permissions)
	if err != nil {
		return fmt.Errorf("role %q: %w", spec.Name, err)
	}
	if spec.Name == "@everyone" {
		g.Roles[0].Permissions = perms
		return nil
	}
	if spec.Name == "" || g.RoleNamed(spec.Name) != nil {
		return fmt.Errorf("role %q: a role needs a name of its own", spec.Name)
	}
	g.Roles = append(g.Roles, &Role{
		ID: g.NewID(), Name: spec.Name, Color: spec.Color, Permissions: perms, Mentionable: spec.Mentionable, Position: len(g.Roles),
	})
	return nil
}

// hereFor is how long the initial members have been in a guild.
const hereFor = 30 * 24 * time.Hour

// join adds an account. Its token is made from its id, as on Discord, because clients read the id from it.
func (g *Guild) join(name string, bot bool, roles []string) (*Account, error) {
	if name == "" || strings.ContainsAny(name, " \t\n/") || g.AccountNamed(name) != nil {
		return nil, fmt.Errorf("%q: everybody needs a name of their own, without spaces", name)
	}
	a := &Account{User: User{ID: g.NewID(), Username: name, Discriminator: "0", Bot: bot}}
	kind := "person"
	if bot {
		kind = "bot"
	} else {
		a.GlobalName = &name
	}
	a.Token = base64.RawURLEncoding.EncodeToString([]byte(a.ID.String())) + ".sim-" + kind + "." + name
	a.Member = &Member{Roles: []ID{}, JoinedAt: g.Now().Add(-hereFor)}
	for _, want := range roles {
		r := g.RoleNamed(want)
		if r == nil {
			return nil, fmt.Errorf("%s: there is no role %q", name, want)
		}
		a.Member.Roles = append(a.Member.Roles, r.ID)
	}
	g.Accounts = append(g.Accounts, a)
	return a, nil
}

func (g *Guild) buildPerson(spec PersonSpec) error {
	a, err := g.join(spec.Name, false, spec.Roles)
	if err != nil {
		return err
	}
	if spec.Nick != "" {
		a.Member.Nick = &spec.Nick
	}
	if spec.Owner || g.Owner == 0 {
		g.Owner = a.ID
	}
	return nil
}

func (g *Guild) buildBot(spec BotSpec) error {
	a, err := g.join(spec.Name, true, spec.Roles)
	if err != nil {
		return err
	}
	a.Privileged = IntentsPrivileged
	if spec.Intents != nil {
		a.Privileged = 0
		for _, name := range *spec.Intents {
			bit, ok := map[string]int{"members": IntentMembers, "presences": IntentPresences, "content": IntentContent}[name]
			if !ok {
				return fmt.Errorf("bot %s: there is no privileged intent %q; there are members, presences and content", spec.Name, name)
			}
			a.Privileged |= bit
		}
	}
	perms := permBots
	if spec.Permissions != nil {
		if perms, err = permissions(*spec.Permissions); err != nil {
			return fmt.Errorf("bot %s: %w", spec.Name, err)
		}
	}
	role := &Role{
		ID: g.NewID(), Name: spec.Name, Permissions: perms, Managed: true, Position: len(g.Roles),
		Tags: object{"bot_id": a.ID},
	}
	g.Roles = append(g.Roles, role)
	a.Member.Roles = append(a.Member.Roles, role.ID)
	if spec.Away {
		a.Member, a.invited = nil, a.Member
	}
	return nil
}

var channelTypes = map[string]int{
	"": TypeText, "text": TypeText, "forum": TypeForum, "announcement": TypeAnnouncement, "category": TypeCategory, "voice": TypeVoice,
}

func (g *Guild) buildChannel(position int, spec ChannelSpec) error {
	kind, ok := channelTypes[spec.Type]
	if !ok || spec.Name == "" {
		return fmt.Errorf("channel %q: there is no type %q; there are text, forum, announcement, category and voice", spec.Name, spec.Type)
	}
	c := &Channel{ID: g.NewID(), Type: kind, GuildID: g.ID, Name: spec.Name, Position: position, RateLimitPerUser: spec.SlowMode}
	if spec.Topic != "" {
		c.Topic = &spec.Topic
	}
	if spec.Parent != "" {
		parent := g.ChannelNamed(spec.Parent)
		if parent == nil {
			return fmt.Errorf("channel %q: its parent %q must stand before it", spec.Name, spec.Parent)
		}
		c.ParentID = &parent.ID
		c.Overwrites = slices.Clone(parent.Overwrites)
	}
	for _, tag := range spec.Tags {
		c.AvailableTags = append(c.AvailableTags, Tag{ID: g.NewID(), Name: tag})
	}
	for who, names := range spec.Allow {
		if err := g.overwrite(c, who, names, true); err != nil {
			return err
		}
	}
	for who, names := range spec.Deny {
		if err := g.overwrite(c, who, names, false); err != nil {
			return err
		}
	}
	g.addChannel(c)
	return nil
}

// overwrite allows or denies a role or an account something in one channel.
func (g *Guild) overwrite(c *Channel, who string, names []string, allow bool) error {
	perms, err := permissions(names)
	if err != nil {
		return fmt.Errorf("channel %q: %w", c.Name, err)
	}
	o := Overwrite{}
	if a := g.AccountNamed(who); a != nil {
		o.ID, o.Type = a.ID, 1
	} else if r := g.RoleNamed(who); r != nil {
		o.ID = r.ID
	} else {
		return fmt.Errorf("channel %q: there is nobody and no role called %q", c.Name, who)
	}
	i := slices.IndexFunc(c.Overwrites, func(have Overwrite) bool { return have.ID == o.ID })
	if i < 0 {
		c.Overwrites = append(c.Overwrites, o)
		i = len(c.Overwrites) - 1
	}
	if allow {
		c.Overwrites[i].Allow |= perms
	} else {
		c.Overwrites[i].Deny |= perms
	}
	return nil
}

func find[T any](list []*T, fits func(*T) bool) *T {
	if i := slices.IndexFunc(list, fits); i >= 0 {
		return list[i]
	}
	return nil
}

// Role returns the role with an id; nil: there is none.
func (g *Guild) Role(id ID) *Role { return find(g.Roles, func(r *Role) bool { return r.ID == id }) }

// RoleNamed returns the role with a name; nil: there is none.
func (g *Guild) RoleNamed(name string) *Role {
	return find(g.Roles, func(r *Role) bool { return r.Name == name })
}

// Account returns the account with an id; nil: nobody.
func (g *Guild) Account(id ID) *Account {
	return find(g.Accounts, func(a *Account) bool { return a.ID == id })
}

// AccountNamed returns the account with a name; nil: nobody.
func (g *Guild) AccountNamed(name string) *Account {
	return find(g.Accounts, func(a *Account) bool { return a.Username == name })
}

// AccountByToken returns the account with a token; nil: nobody.
func (g *Guild) AccountByToken(token string) *Account {
	return find(g.Accounts, func(a *Account) bool { return a.Token == token })
}

// Channel returns the channel with an id; nil: there is none.
func (g *Guild) Channel(id ID) *Channel { return g.byID[id] }

func (g *Guild) addChannel(c *Channel) {
	g.Channels = append(g.Channels, c)
	g.byID[c.ID] = c
}

// ChannelNamed returns the first channel or thread with a name; nil: there is none.
func (g *Guild) ChannelNamed(name string) *Channel {
	return find(g.Channels, func(c *Channel) bool { return c.Name == name })
}

// MemberOf returns an account as a member, with or without the user inside.
func (g *Guild) MemberOf(a *Account, withUser bool) *Member {
	if a == nil || a.Member == nil {
		return nil
	}
	m := *a.Member
	if withUser {
		m.User = &a.User
	}
	return &m
}

// FindChannel finds a channel by its name or id.
func (g *Guild) FindChannel(name string) (*Channel, error) {
	if c := g.ChannelNamed(name); c != nil {
		return c, nil
	}
	if id, err := ParseID(name); err == nil {
		if c := g.Channel(id); c != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no channel %q", name)
}

// FindMessage finds a message in any channel.
func (g *Guild) FindMessage(id ID) (*Channel, *Message, error) {
	for _, c := range g.Channels {
		if m := c.Message(id); m != nil {
			return c, m, nil
		}
	}
	return nil, nil, fmt.Errorf("there is no message %s", id)
}
