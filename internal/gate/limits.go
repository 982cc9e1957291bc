package gate

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/rights"
	"chorus/internal/settings"
	"chorus/internal/transcript"
)

// Limits are the rights that apply in one thread: those of the senders, of the
// channel and of the agent. All of them must allow an action.
type Limits struct {
	Bot      *config.Bot
	Grants   rights.Policy
	Channels []config.Channel // the configured channels that match this thread
	Find     func(name string) (*permit.Profile, error)
	Loaded   map[string]*permit.Profile
	broken   error // why nothing is allowed; nil if the other fields decide
}

// LimitsOf returns the limits of a thread.
func LimitsOf(bot *config.Bot, row journal.Thread, find func(name string) (*permit.Profile, error)) *Limits {
	l := &Limits{Bot: bot, Grants: Grants(bot), Find: find, Loaded: map[string]*permit.Profile{}}
	names := channelNames(row)
	for _, c := range bot.Channels {
		if c.Means(names...) {
			l.Channels = append(l.Channels, c)
		}
	}
	return l
}

// channelNames lists the names that match a thread's channel: its place, the place with its
// transport, the channel without its guild, and for a terminal session its directory.
func channelNames(row journal.Thread) []string {
	if row.Place == "" {
		return nil
	}
	out := channelNamed(row.ID.Transport() + ":" + row.Place)
	if row.ID.Transport() == "cli" && row.Dir != "" {
		out = append(out, row.Dir)
	}
	return out
}

// channelNamed lists the names that match a channel given with or without its transport.
func channelNamed(name string) []string {
	if name == "" {
		return nil
	}
	transport, place, ok := strings.Cut(name, ":")
	if !ok {
		place = name
	}
	out := []string{name, place, path.Base(place)}
	if home := settings.HomePlace(transport, place); home != place {
		out = append(out, channelNamed(transport+":"+home)...)
	}
	return out
}

// ownerToken matches the token that the first start of the server creates. It is stored in a file
// that only the person at the terminal can read, so it has that person's rights.
const ownerToken = string(chat.TokenHolder) + "/role:" + chat.OwnerRole

// Grants returns who has which rights: the configured grants, most specific first, then the defaults. By
// default whoever sits at the terminal is not limited, and others get accessDefault, which is standard.
func Grants(bot *config.Bot) rights.Policy {
	b := rights.Policy{Editors: []string{string(chat.LocalUser), ownerToken}}
	for _, g := range bot.Access {
		b.Grants = append(b.Grants, rights.Grant{To: g.To, Profile: g.Profile})
	}
	slices.SortStableFunc(b.Grants, func(x, y rights.Grant) int { return cmp.Compare(distance(x.To), distance(y.To)) })
	others := cmp.Or(bot.AccessDefault, "standard")
	b.Grants = append(b.Grants, rights.Grant{To: string(chat.LocalUser), Profile: Everything}, rights.Grant{To: ownerToken, Profile: Everything},
		rights.Grant{To: rights.OnPlatform, Profile: others}, rights.Grant{To: string(chat.TokenHolder), Profile: others})
	if bot.IsSet("editors") {
		b.Editors = bot.Editors
	}
	// A configured profile may use a preset's name; it then has no place in the order.
	for _, chain := range rights.Presets() {
		b.Order = append(b.Order, slices.DeleteFunc(chain, func(name string) bool { return redefined(bot, name) }))
	}
	if !redefined(bot, Everything) {
		b.Widest = Everything
	}
	return b
}

// Everything is the preset that allows all but catastrophes, which every profile denies.
const Everything = "open"

func redefined(bot *config.Bot, name string) bool {
	_, own := bot.Profiles[name]
	return own
}

// distance ranks grants from most to least specific: one principal, a
// role on one platform, a role, a kind, anyone.
func distance(to string) int {
	switch {
	case to == "anyone":
		return 4
	case strings.HasPrefix(to, "role:"):
		return 2
	case strings.Contains(to, "/role:"):
		return 1
	case strings.Contains(to, ":"):
		return 0
	default:
		return 3
	}
}

// check is one profile that must allow an action, as it applies to one person.
type check struct {
	Profile *permit.Profile
	of      string // who the profile belongs to, unless it is the run's own: "role:guest", "channel ops"
	roles   []string
}

// label names the profile for people.
func (c check) label() string {
	if c.of == "" {
		return c.Profile.Name()
	}
	return c.Profile.Name() + " of " + c.of
}

// Checks returns all checks that apply to the words of these senders. The
// error names a sender who has no rights at all.
func (l *Limits) Checks(senders []transcript.Sender) ([]check, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	if len(senders) == 0 {
		return nil, errors.New("nobody asked for this")
	}
	var out []check
	for _, s := range senders {
		own, err := l.own(s)
		if err != nil {
			return nil, err
		}
		for _, who := range l.Grants.Behind(s.Principal) {
			theirs, err := l.Granted(who)
			if err != nil {
				return nil, err
			}
			for _, c := range append(slices.Clip(own), theirs) {
				c.roles = who.Roles
				out = add(out, c)
			}
		}
	}
	return l.restricting(out), nil
}

// Granted returns the check for what somebody may do themselves.
func (l *Limits) Granted(who chat.Principal) (check, error) {
	g, ok := l.Grants.Grant(who)
	if !ok {
		return check{}, fmt.Errorf("%s has no rights here: `access` gives them none", orNobody(who))
	}
	p, err := l.Load(g.Profile)
	return check{Profile: p, of: g.To}, err
}

func orNobody(p chat.Principal) string {
	if p.Kind == "" || p.ID == "" {
		return "nobody in particular"
	}
	return p.String()
}

// own returns the checks that apply to a sender's words whoever the sender is: the agent's
// profile or the one asked for, and the channel's. A requested profile replaces the agent's
// only if the sender may give it to the agent; otherwise both apply.
func (l *Limits) own(s transcript.Sender) ([]check, error) {
	names := []string{l.Bot.Permissions}
	if asked := s.Terms.Profile; asked != "" {
		switch may, _ := l.Grants.MayGive(asked, s.Principal); {
		case may:
			names = []string{asked}
		case permit.IsPreset(asked) || redefined(l.Bot, asked):
			names = append(names, asked)
		default: // a file: only editors may have us read one
			return nil, fmt.Errorf("%s may not ask for profile %q", orNobody(s.Principal), asked)
		}
	}
	var out []check
	for _, name := range names {
		p, err := l.Load(name)
		if err != nil {
			return nil, err
		}
		out = append(out, check{Profile: p})
	}
	for _, room := range l.Channels {
		p, err := l.Load(room.Permissions)
		if err != nil {
			return nil, err
		}
		out = append(out, check{Profile: p, of: room.Label()})
	}
	return out, nil
}

// Load finds a profile by name and caches it.
func (l *Limits) Load(name string) (*permit.Profile, error) {
	if p := l.Loaded[name]; p != nil {
		return p, nil
	}
	p, err := l.Find(name)
	if err != nil {
		return nil, err
	}
	l.Loaded[name] = p
	return p, nil
}

// add appends a check unless the list already has an equal one.
func add(to []check, c check) []check {
	same := func(d check) bool { return d.Profile == c.Profile && slices.Equal(d.roles, c.roles) }
	if slices.ContainsFunc(to, same) {
		return to
	}
	return append(to, c)
}

// restricting removes the checks that allow everything, but always leaves one check.
func (l *Limits) restricting(all []check) []check {
	some := slices.DeleteFunc(slices.Clone(all), l.Allows)
	if len(some) == 0 {
		return all[:1]
	}
	return some
}

// Allows reports whether a check belongs to the profile that allows everything.
func (l *Limits) Allows(c check) bool {
	return l.Grants.Widest != "" && c.Profile.Name() == l.Grants.Widest
}
