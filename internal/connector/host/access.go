package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/room"
	"chorus/internal/runsetup"
	"chorus/internal/transcript"
)

// Access implements connector.Admin: the limits of sender, channel and agent, and where each is set.
func (h *Backend) Access(ctx context.Context, of connector.Caller, agent string, in room.Channel) (connector.Access, error) {
	thread := chat.ThreadID(h.Platform.Name + ":" + in.Place() + ":" + in.ID + "@" + agent)
	row := journal.Thread{ID: thread, Place: thread.Place(), Agent: agent}
	bot, err := h.App.Settings.BotFor(row)
	if err != nil {
		return connector.Access{}, h.handler.ToError(err)
	}
	l := gate.LimitsOf(bot, row, func(name string) (*permit.Profile, error) { return h.App.Gate.Rules(bot, name) })
	at := h.setting(bot, "permissions")
	out := connector.Access{Project: h.ofProject(ctx, in), Task: h.taskAgent(ctx, in) != "", Limits: []connector.Limit{{Who: "the agent " + agent, Profile: bot.Permissions, From: at.From}}}
	for _, c := range l.Channels {
		from := "`channels` of the configuration: " + c.Name
		if c.Pinned {
			from = c.Name
		}
		out.Limits = append(out.Limits, connector.Limit{Who: "this channel", Profile: c.Permissions, From: from})
	}
	if len(l.Channels) == 0 {
		out.Limits = append(out.Limits, connector.Limit{Who: "this channel", Profile: "no limit", From: "not named in `channels` of the configuration"})
	}
	if g, ok := l.Grants.Grant(of.By); ok {
		from := "`access` of the configuration: " + g.To
		if !slices.Contains(bot.Access, config.Grant{To: g.To, Profile: g.Profile}) {
			from = "built in for everybody on " + h.Platform.Label + "; change it with `access` in the configuration"
		}
		out.Limits = append(out.Limits, connector.Limit{Who: "the person who asks", Profile: g.Profile, From: from})
	}
	checks, err := l.Checks([]transcript.Sender{{Principal: of.By}})
	if err != nil {
		out.Nothing = err.Error()
	}
	for _, c := range checks {
		name := c.Profile.Name()
		if slices.ContainsFunc(out.Profiles, func(e connector.ProfileSummary) bool { return e.Name == name }) {
			continue
		}
		out.Profiles = append(out.Profiles, connector.ProfileSummary{Name: name, Means: profileMeans(bot, name)})
	}
	out.Open = len(checks) == 1 && l.Allows(checks[0])
	by, _ := bot.Asked(bot.Permissions, "by")
	out.Answers = strings.NewReplacer("asker", "the person who asked", "local", "the person at the terminal").Replace(by)
	for _, name := range runsetup.ProfileNames(bot) {
		if may, _ := l.Grants.MayGive(name, of.By); may {
			out.Gives = append(out.Gives, name)
		}
	}
	return out, nil
}

// profileMeans describes a profile in a sentence.
func profileMeans(bot *config.Bot, name string) string {
	if own, ok := bot.Profiles[name]; ok && (own.Allow != nil || own.Ask != nil || own.Deny != nil) {
		return fmt.Sprintf("a profile of the configuration: %d rules allow, %d ask, %d deny; anything else is refused", len(own.Allow), len(own.Ask), len(own.Deny))
	}
	switch name {
	case gate.Everything:
		return "everything except what is refused to everybody"
	case "standard":
		return "reads and writes its workspace, uses local git; asks before commands, pushes, network access, other services, and changes to itself"
	case "guarded":
		return "everything local; refuses changes elsewhere: pushes, pull requests, releases"
	case "locked":
		return "reads its workspace and changes nothing"
	default:
		return "rules from a file"
	}
}

// maxProposals is as many as platforms show.
const maxProposals = 25

// ProposeAgents implements connector.Admin.
func (h *Backend) ProposeAgents(ctx context.Context, by connector.Caller, part string) []string {
	list, err := h.GuildAgents(ctx, by)
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range list {
		names = append(names, a.Name)
	}
	return matching(names, part)
}

// ProposeKeys implements connector.Admin. The most frequently changed keys come first.
func (h *Backend) ProposeKeys(part string) []string {
	names := []string{"model", "permissions", "systemPrompt", "routing", "intake", "temperature", "innerName"}
	names = append(names, ownKeys...)
	for _, k := range config.AgentFile.Keys() {
		if k.Path != "continuationModel" && !slices.Contains(names, k.Path) {
			names = append(names, k.Path)
		}
	}
	return matching(names, part)
}

// ProposeValues implements connector.Admin.
func (h *Backend) ProposeValues(_ context.Context, by connector.Caller, key, part string) []string {
	if slices.Contains(ownKeys, key) {
		return matching([]string{"true", "false"}, part)
	}
	k, err := config.AgentFile.Key(key)
	if err != nil {
		return nil
	}
	switch {
	case k.Path == "continuationModel":
		return append(h.App.Setup.ModelNames(part), matching([]string{connector.Unset}, part)...)
	case k.Path == "permissions":
		return matching(h.givable(by), part)
	case k.Kind == config.Bool:
		return matching([]string{"true", "false", connector.Unset}, part)
	default:
		return matching(append(slices.Clone(k.Choices), connector.Unset), part)
	}
}

// givable returns the profiles that somebody may give. If they may give none it returns all, so
// that they learn why.
func (h *Backend) givable(by connector.Caller) []string {
	bot, err := h.App.Settings.BotIn("", by.Guild)
	if err != nil {
		return nil
	}
	all := runsetup.ProfileNames(bot)
	grants := gate.Grants(bot)
	some := slices.DeleteFunc(slices.Clone(all), func(name string) bool { may, _ := grants.MayChange(bot.Permissions, name, by.By); return !may })
	if len(some) == 0 {
		return all
	}
	return some
}

// matching returns the words that contain part, those that start with it first.
func matching(words []string, part string) []string {
	part = strings.ToLower(strings.TrimSpace(part))
	var begin, within []string
	for _, w := range words {
		switch at := strings.Index(strings.ToLower(w), part); {
		case at == 0:
			begin = append(begin, w)
		case at > 0:
			within = append(within, w)
		}
	}
	out := append(begin, within...)
	return out[:min(len(out), maxProposals)]
}
