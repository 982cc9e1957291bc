package discordsim

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
)

// account is somebody who can ask: a bot or a person.
type account struct {
	User
	token  string
	member *Member
	// privileged are the intents that a bot's owner switched on.
	privileged int
	commands   []*Command
	installed  []ID // people who have the application themselves
	emojis     []*AppEmoji
	// invited is what it will be in the guild once somebody has invited it; nil: it is there, or was never to be.
	invited *Member
}

// world is the guild and everything in it. It knows nothing of sockets and takes no
// lock: Sim holds one around every use. What happens in it goes to emit, in order.
type world struct {
	now   func() time.Time
	scale func(time.Duration) time.Duration // how long something takes in this guild's time
	after func(time.Duration, func())       // rings with the lock held
	emit  func(event)
	url   string // where attachments are read from
	mint  mint
	count uint64 // of changes to messages

	guild        ID
	name         string
	system       string // the name of the channel for newcomers
	owner        ID
	made         time.Time
	roles        []*Role
	accounts     []*account
	channels     []*Channel // in the order of their making
	byID         map[ID]*Channel
	webhooks     []*Webhook
	interactions []*interaction
	files        map[ID][]byte
	uploads      map[ID]Attachment // given with commands
	nonces       map[string]nonceUse
}

// nonceUse is a message that was sent with a nonce that is to count once.
type nonceUse struct {
	message, channel ID
	at               time.Time
}

// event is something that happened, on its way to those who may see it.
type event struct {
	name     string
	intent   int      // which intent brings it; 0: everybody gets it
	dmIntent int      // the same where it happened in a direct message
	channel  *Channel // who does not see this channel does not hear of it; nil: everybody does
	only     ID       // nobody but this account
	message  *Message // data is this message, as each one sees it
	data     any
}

func (w *world) id() ID { return w.mint.next(w.now()) }

// newWorld builds the guild that the options describe.
func newWorld(o Options) (*world, error) {
	w := &world{
		now: o.Clock.Now, name: o.Guild, system: o.System, files: map[ID][]byte{}, uploads: map[ID]Attachment{}, byID: map[ID]*Channel{}, nonces: map[string]nonceUse{},
		scale: func(d time.Duration) time.Duration { return time.Duration(float64(d) / o.TimeScale) },
		emit:  func(event) {},
	}
	w.made = w.now()
	w.guild = w.id()
	w.roles = []*Role{{ID: w.guild, Name: "@everyone", Permissions: permPeople}}
	for _, spec := range o.Roles {
		if err := w.buildRole(spec); err != nil {
			return nil, err
		}
	}
	for _, spec := range o.People {
		if err := w.buildPerson(spec); err != nil {
			return nil, err
		}
	}
	for _, spec := range o.Bots {
		if err := w.buildBot(spec); err != nil {
			return nil, err
		}
	}
	for i, spec := range o.Channels {
		if err := w.buildChannel(i, spec); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) buildRole(spec RoleSpec) error {
	perms, err := permissions(spec.Permissions)
	if err != nil {
		return fmt.Errorf("role %q: %w", spec.Name, err)
	}
	if spec.Name == "@everyone" {
		w.roles[0].Permissions = perms
		return nil
	}
	if spec.Name == "" || w.roleNamed(spec.Name) != nil {
		return fmt.Errorf("role %q: a role needs a name of its own", spec.Name)
	}
	w.roles = append(w.roles, &Role{
		ID: w.id(), Name: spec.Name, Color: spec.Color, Permissions: perms, Mentionable: spec.Mentionable, Position: len(w.roles),
	})
	return nil
}

// hereFor is how long those have been in a guild who are there from its start.
const hereFor = 30 * 24 * time.Hour

// join adds an account. Its token is made from its id, as Discord's are: clients read the id back from it.
func (w *world) join(name string, bot bool, roles []string) (*account, error) {
	if name == "" || strings.ContainsAny(name, " \t\n/") || w.accountNamed(name) != nil {
		return nil, fmt.Errorf("%q: everybody needs a name of their own, without spaces", name)
	}
	a := &account{User: User{ID: w.id(), Username: name, Discriminator: "0", Bot: bot}}
	kind := "person"
	if bot {
		kind = "bot"
	} else {
		a.GlobalName = &name
	}
	a.token = base64.RawURLEncoding.EncodeToString([]byte(a.ID.String())) + ".sim-" + kind + "." + name
	a.member = &Member{Roles: []ID{}, JoinedAt: w.now().Add(-hereFor)}
	for _, want := range roles {
		r := w.roleNamed(want)
		if r == nil {
			return nil, fmt.Errorf("%s: there is no role %q", name, want)
		}
		a.member.Roles = append(a.member.Roles, r.ID)
	}
	w.accounts = append(w.accounts, a)
	return a, nil
}

func (w *world) buildPerson(spec PersonSpec) error {
	a, err := w.join(spec.Name, false, spec.Roles)
	if err != nil {
		return err
	}
	if spec.Nick != "" {
		a.member.Nick = &spec.Nick
	}
	if spec.Owner || w.owner == 0 {
		w.owner = a.ID
	}
	return nil
}

func (w *world) buildBot(spec BotSpec) error {
	a, err := w.join(spec.Name, true, spec.Roles)
	if err != nil {
		return err
	}
	a.privileged = intentsPrivileged
	if spec.Intents != nil {
		a.privileged = 0
		for _, name := range *spec.Intents {
			bit, ok := map[string]int{"members": intentMembers, "presences": intentPresences, "content": intentContent}[name]
			if !ok {
				return fmt.Errorf("bot %s: there is no privileged intent %q; there are members, presences and content", spec.Name, name)
			}
			a.privileged |= bit
		}
	}
	perms := permBots
	if spec.Permissions != nil {
		if perms, err = permissions(*spec.Permissions); err != nil {
			return fmt.Errorf("bot %s: %w", spec.Name, err)
		}
	}
	role := &Role{
		ID: w.id(), Name: spec.Name, Permissions: perms, Managed: true, Position: len(w.roles),
		Tags: object{"bot_id": a.ID},
	}
	w.roles = append(w.roles, role)
	a.member.Roles = append(a.member.Roles, role.ID)
	if spec.Away {
		a.member, a.invited = nil, a.member
	}
	return nil
}

var channelTypes = map[string]int{
	"": TypeText, "text": TypeText, "forum": TypeForum, "announcement": TypeAnnouncement, "category": TypeCategory, "voice": TypeVoice,
}

func (w *world) buildChannel(position int, spec ChannelSpec) error {
	kind, ok := channelTypes[spec.Type]
	if !ok || spec.Name == "" {
		return fmt.Errorf("channel %q: there is no type %q; there are text, forum, announcement, category and voice", spec.Name, spec.Type)
	}
	c := &Channel{ID: w.id(), Type: kind, GuildID: w.guild, Name: spec.Name, Position: position, RateLimitPerUser: spec.SlowMode}
	if spec.Topic != "" {
		c.Topic = &spec.Topic
	}
	if spec.Parent != "" {
		parent := w.channelNamed(spec.Parent)
		if parent == nil {
			return fmt.Errorf("channel %q: its parent %q must stand before it", spec.Name, spec.Parent)
		}
		c.ParentID = &parent.ID
		c.Overwrites = slices.Clone(parent.Overwrites)
	}
	for _, tag := range spec.Tags {
		c.AvailableTags = append(c.AvailableTags, Tag{ID: w.id(), Name: tag})
	}
	for who, names := range spec.Allow {
		if err := w.overwrite(c, who, names, true); err != nil {
			return err
		}
	}
	for who, names := range spec.Deny {
		if err := w.overwrite(c, who, names, false); err != nil {
			return err
		}
	}
	w.addChannel(c)
	return nil
}

// overwrite lets or forbids a role or an account something in one channel.
func (w *world) overwrite(c *Channel, who string, names []string, allow bool) error {
	perms, err := permissions(names)
	if err != nil {
		return fmt.Errorf("channel %q: %w", c.Name, err)
	}
	o := Overwrite{}
	if a := w.accountNamed(who); a != nil {
		o.ID, o.Type = a.ID, 1
	} else if r := w.roleNamed(who); r != nil {
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

func (w *world) role(id ID) *Role { return find(w.roles, func(r *Role) bool { return r.ID == id }) }
func (w *world) roleNamed(name string) *Role {
	return find(w.roles, func(r *Role) bool { return r.Name == name })
}
func (w *world) account(id ID) *account {
	return find(w.accounts, func(a *account) bool { return a.ID == id })
}
func (w *world) accountNamed(name string) *account {
	return find(w.accounts, func(a *account) bool { return a.Username == name })
}
func (w *world) channel(id ID) *Channel { return w.byID[id] }
func (w *world) addChannel(c *Channel) {
	w.channels = append(w.channels, c)
	w.byID[c.ID] = c
}
func (w *world) channelNamed(name string) *Channel {
	return find(w.channels, func(c *Channel) bool { return c.Name == name })
}

// memberOf is an account as a member, with or without the user inside.
func (w *world) memberOf(a *account, withUser bool) *Member {
	if a == nil || a.member == nil {
		return nil
	}
	m := *a.member
	if withUser {
		m.User = &a.User
	}
	return &m
}
