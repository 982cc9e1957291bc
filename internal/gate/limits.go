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

// Limits are the rights that count in one thread: those of whoever speaks, of the
// channel and of the agent. What is done, all of them must allow.
type Limits struct {
	Bot      *config.Bot
	Grants   rights.Policy
	Channels []config.Channel // those that mean this channel
	Find     func(name string) (*permit.Profile, error)
	Loaded   map[string]*permit.Profile
	broken   error // why nothing is allowed; nil: what the rest says
}

// LimitsOf are those of a thread.
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

// channelNames are the names under which a thread's channel can be meant: its place,
// the same with its transport, the channel without its guild, and for a session at the
// terminal its directory.
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

// channelNamed are the names of a channel, given with or without its transport.
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

// ownerToken names the token that the first start of the server made: it lies in a file
// that only the person at the terminal can read, so it is as good as they are.
const ownerToken = string(chat.TokenHolder) + "/role:" + chat.OwnerRole

// Grants is who has which rights: what is configured, the closest name first, and for
// whom nothing is: whoever sits at the terminal is not limited, others have accessDefault, which is standard.
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
	// A profile of the configuration may have a preset's name; it stands in no order then.
	for _, chain := range rights.Presets() {
		b.Order = append(b.Order, slices.DeleteFunc(chain, func(name string) bool { return redefined(bot, name) }))
	}
	if !redefined(bot, Everything) {
		b.Widest = Everything
	}
	return b
}

// Everything is the preset that allows all but catastrophes, as every profile does.
const Everything = "open"

func redefined(bot *config.Bot, name string) bool {
	_, own := bot.Profiles[name]
	return own
}

// distance orders names: one principal, a role on one platform, a role, a kind, anyone.
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

// check is one profile that must allow what is done, as it applies to somebody.
type check struct {
	Profile *permit.Profile
	of      string // whose it is besides the run's own: "role:guest", "channel ops"
	roles   []string
}

// label names the profile for people.
func (c check) label() string {
	if c.of == "" {
		return c.Profile.Name()
	}
	return c.Profile.Name() + " of " + c.of
}

// Checks are all that hold for what is done on the words of these people. The error
// says who has no rights at all.
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

// Granted is what somebody may by themselves.
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

// own are the profiles that a sender's words run under whoever they are: the agent's,
// or the one they asked for, and the channel's. One that is asked for takes the place
// of the agent's only by somebody who may give it to the agent; else both hold.
func (l *Limits) own(s transcript.Sender) ([]check, error) {
	names := []string{l.Bot.Permissions}
	if asked := s.Terms.Profile; asked != "" {
		switch may, _ := l.Grants.MayGive(asked, s.Principal); {
		case may:
			names = []string{asked}
		case permit.IsPreset(asked) || redefined(l.Bot, asked):
			names = append(names, asked)
		default: // a file: nobody but an editor has us read one
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

// Load finds a profile by its name, once.
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

// add leaves out what would only be judged twice.
func add(to []check, c check) []check {
	same := func(d check) bool { return d.Profile == c.Profile && slices.Equal(d.roles, c.roles) }
	if slices.ContainsFunc(to, same) {
		return to
	}
	return append(to, c)
}

// restricting leaves out the checks that allow everything, where others remain.
func (l *Limits) restricting(all []check) []check {
	some := slices.DeleteFunc(slices.Clone(all), l.Allows)
	if len(some) == 0 {
		return all[:1]
	}
	return some
}

// Allows reports whether a check is of the profile that allows everything.
func (l *Limits) Allows(c check) bool {
	return l.Grants.Widest != "" && c.Profile.Name() == l.Grants.Widest
}
