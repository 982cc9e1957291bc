package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/settings"
	"chorus/internal/transcript"
	"chorus/internal/usage"
)

// configured returns the configuration of an agent ("" means everybody) without opening the home.
func configured(env func(string) string, homeDir, agent string) (*config.Bot, error) {
	o, err := settings.ConfigOptions(env, homeDir, "")
	if err != nil {
		return nil, err
	}
	files, problems := config.ReadFiles(o)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	ask, err := settings.ConfigAsk(env, homeDir, agent, "")
	if err != nil {
		return nil, err
	}
	bot, problems := files.Bot(ask)
	return bot, problems.Err()
}

// PermitRules returns the profile of this name for an agent: one from the configuration, a
// preset or a file. Without a name it returns the agent's profile.
func PermitRules(env func(string) string, homeDir, agent, name string) (*permit.Profile, error) {
	bot, err := configured(env, homeDir, agent)
	switch {
	case err == nil:
		return settings.Profile(bot, cmp.Or(name, bot.Permissions))
	case name == "":
		return nil, err
	default: // rules can be tried even if the configuration is broken
		return permit.Load(name)
	}
}

// RightsAsk says whose rights `permit rights` explains, and where.
type RightsAsk struct {
	As      string // a principal's key such as "discord:123"; "" is whoever sits here
	Roles   []string
	Agent   string
	Channel string // place or transport:place
	Me      chat.Principal
}

// SenderPart is the Part of a Right that comes from who somebody is. Who then holds their key.
const SenderPart = "sender"

// Right is one profile that limits what may be done.
type Right struct {
	Part    string `json:"part"` // agent, channel or sender
	Who     string `json:"who"`
	Profile string `json:"profile"`
	From    string `json:"from"` // where it is set
}

// Rights is what somebody may have an agent do in a channel.
type Rights struct {
	Limits   []Right  `json:"limits"`
	Together []string `json:"together"` // profiles that must all allow; if empty, nothing is allowed
	Nothing  string   `json:"nothing,omitempty"`
	Gives    []string `json:"gives"` // profiles they may give to an agent
}

// RightsOf returns the rights of somebody and where each part is configured.
func RightsOf(env func(string) string, homeDir string, ask RightsAsk) (Rights, error) {
	bot, err := configured(env, homeDir, ask.Agent)
	if err != nil {
		return Rights{}, err
	}
	who := ask.Me
	if ask.As != "" {
		kind, id, ok := strings.Cut(ask.As, ":")
		if !ok || kind == "" || id == "" {
			return Rights{}, usage.Wrap(fmt.Errorf("%q is nobody; write discord:123, token:NAME or local:NAME", ask.As))
		}
		who = chat.Principal{Kind: chat.PrincipalKind(kind), ID: id}
	}
	who.Roles = append(slices.Clone(who.Roles), ask.Roles...)
	l := LimitsOf(bot, journal.Thread{}, func(name string) (*permit.Profile, error) { return settings.Profile(bot, name) })
	names := channelNamed(ask.Channel)
	for _, c := range bot.Channels {
		if c.Means(names...) {
			l.Channels = append(l.Channels, c)
		}
	}
	out := Rights{Limits: []Right{{"agent", cmp.Or(ask.Agent, "any"), bot.Permissions, cmp.Or(bot.Origin("permissions").String(), "built in")}}, Gives: []string{}, Together: []string{}}
	for _, c := range l.Channels {
		out.Limits = append(out.Limits, Right{"channel", ask.Channel, c.Permissions, "channels: " + c.Name})
	}
	if g, ok := l.Grants.Grant(who); ok {
		from := "access: " + g.To
		if !slices.Contains(bot.Access, config.Grant{To: g.To, Profile: g.Profile}) {
			from = "built in"
		}
		out.Limits = append(out.Limits, Right{SenderPart, who.String(), g.Profile, from})
	}
	checks, err := l.Checks([]transcript.Sender{{Principal: who}})
	if err != nil {
		out.Nothing = err.Error()
	}
	for _, c := range checks {
		if !slices.Contains(out.Together, c.Profile.Name()) {
			out.Together = append(out.Together, c.Profile.Name())
		}
	}
	for _, name := range append(permit.Presets(), OwnProfiles(bot.Profiles)...) {
		if may, _ := l.Grants.MayGive(name, who); may {
			out.Gives = append(out.Gives, name)
		}
	}
	return out, nil
}

// OwnProfiles returns the sorted names of the profiles that the configuration adds to the built-in ones.
func OwnProfiles(profiles map[string]config.Profile) []string {
	var out []string
	for name := range profiles {
		if !permit.IsPreset(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
