package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/gate"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/room"
	"chorus/internal/runsetup"
)

var _ connector.Admin = (*Backend)(nil)

// The marks in agent.json of a guild's agent: its guild, its channel, and which
// channel was created for it.
const (
	GuildMark   = "guildId"
	channelMark = "channelId"
	madeMark    = "madeChannelId"
)

// living is where an agent has its channel; empty: nowhere in particular.
type living struct{ Guild, Channel, made string }

// in reports whether it lives in exactly that channel.
func (l living) in(guild, channel string) bool { return l.Guild == guild && l.Channel == channel }

// LivesIn reads it from the agent's file. An unreadable file means nowhere.
func (h *Host) LivesIn(name string) living {
	data, err := os.ReadFile(filepath.Join(h.Home.AgentDir(name), "agent.json"))
	if err != nil {
		return living{}
	}
	var marks struct {
		Guild   string `json:"guildId"`
		Channel string `json:"channelId"`
		Made    string `json:"madeChannelId"`
	}
	_ = json.Unmarshal(data, &marks)
	return living{marks.Guild, marks.Channel, marks.Made}
}

// mayChange checks a command that changes agents or settings against the caller's own rights:
// they may not do what their profile denies to an agent that works for them.
// What their profile asks about is allowed, because they would answer themselves.
func (h *Backend) mayChange(by connector.Caller, detail string) error {
	bot, err := h.App.Settings.BotIn("", by.Guild)
	if err != nil {
		return err
	}
	l := h.limitsIn(bot)
	for _, who := range l.Grants.Behind(by.By) {
		c, err := l.Granted(who)
		if err != nil {
			return operation.Errorf(operation.Forbidden, "%v", err)
		}
		j := c.Profile.Judge([]permit.Request{{Tool: "self_edit", Detail: detail}}, permit.JudgeOptions{Home: h.App.Home.Dir(), Who: permit.Who{Roles: who.Roles}})
		if j.Verdict == permit.Deny {
			return operation.Errorf(operation.Forbidden, "you have the rights of %s here, which do not allow this; see `/access`", c.Profile.Name())
		}
	}
	return nil
}

func (h *Backend) limitsIn(bot *config.Bot) *gate.Limits {
	return &gate.Limits{Bot: bot, Grants: gate.Grants(bot), Loaded: map[string]*permit.Profile{},
		Find: func(name string) (*permit.Profile, error) { return h.App.Gate.Rules(bot, name) }}
}

// mayGive checks that somebody may give a profile to agents of a guild: it must have a
// name, and allow no more than their own.
func (h *Backend) mayGive(by connector.Caller, profile string) error {
	return h.mayChangeProfile(by, "", profile)
}

// mayChangeProfile checks that somebody may replace a profile of a guild's agents:
// anybody who can use the command may reduce rights; other changes need the right to give the profile.
func (h *Backend) mayChangeProfile(by connector.Caller, from, profile string) error {
	bot, err := h.App.Settings.BotIn("", by.Guild)
	if err != nil {
		return err
	}
	if err := runsetup.NamedProfile(bot, profile); err != nil {
		return operation.InvalidField("permissions", "%v", err)
	}
	if may, why := gate.Grants(bot).MayChange(from, profile, by.By); !may {
		return operation.Errorf(operation.Forbidden, "%s; see `access` and `editors` in the configuration", toYou(why, by.By))
	}
	return nil
}

// toYou says "you" if a reason names the reader.
func toYou(why string, who chat.Principal) string {
	for old, now := range map[string]string{" may not": " may not", " has ": " have "} {
		if rest, ok := strings.CutPrefix(why, who.String()+old); ok {
			return "you" + now + rest
		}
	}
	return why
}

// own finds an agent that people of the guild may change: one of the guild or, for those
// who could give it its rights, one without a guild.
func (h *Backend) own(ctx context.Context, by connector.Caller, name string) (agents.Agent, error) {
	a, err := h.agents.FindAgent(ctx, name)
	if err != nil {
		return a, h.notThere(by, name, err)
	}
	at := h.App.LivesIn(name)
	if at.Guild == by.Guild {
		return a, nil
	}
	if at.Guild != "" {
		return a, h.notThere(by, name, operation.Errorf(operation.NotFound, "there is no agent %.80q", name))
	}
	return a, h.mayChangeGlobal(by, name, a.Permissions)
}

// mayChangeGlobal checks that somebody may change an agent that appears on every server.
func (h *Backend) mayChangeGlobal(by connector.Caller, name, permissions string) error {
	if err := h.mayGive(by, permissions); err != nil {
		return operation.Errorf(operation.Forbidden, "%s belongs to all servers, not to this one: %v", name, err)
	}
	return nil
}

func (h *Backend) notThere(by connector.Caller, name string, err error) error {
	if operation.KindOf(err) != operation.NotFound {
		return h.handler.ToError(err)
	}
	if h.isBot(name) || name == chat.DefaultAgent {
		return operation.Errorf(operation.NotFound, "%s has no file of its own yet and uses the global configuration; create the file with `/agent init name:%s`", name, name)
	}
	return operation.Errorf(operation.NotFound, "there is no agent %.80q on this server; see `/agent list`", name)
}

// CheckNewAgent implements connector.Admin.
func (h *Backend) CheckNewAgent(ctx context.Context, by connector.Caller, want connector.NewAgent) error {
	if !chat.ValidAgentName(want.Name) {
		return operation.InvalidField("name", "%.80q cannot be an agent's name: %v", want.Name, agents.ErrName)
	}
	if err := h.mayChange(by, "system_prompt"); err != nil {
		return err
	}
	if _, err := h.agents.FindAgent(ctx, want.Name); err == nil {
		if _, err := h.own(ctx, by, want.Name); err != nil {
			return operation.Errorf(operation.Conflict, "the name %s is taken; choose another", want.Name)
		}
	} else if h.isBot(want.Name) || want.Name == chat.DefaultAgent {
		bot, err := h.App.Settings.BotIn(want.Name, by.Guild)
		if err != nil {
			return h.handler.ToError(err)
		}
		if err := h.mayChangeGlobal(by, want.Name, bot.Permissions); err != nil {
			return err
		}
	}
	if want.Permissions != "" {
		bot, err := h.App.Settings.BotIn("", by.Guild)
		if err != nil {
			return h.handler.ToError(err)
		}
		if err := h.mayChangeProfile(by, bot.Permissions, want.Permissions); err != nil {
			return err
		}
	}
	if want.Model == "" {
		return nil
	}
	_, err := h.modelFor(by, want.Model)
	return err
}

// modelFor is the model that somebody in a guild means.
func (h *Backend) modelFor(by connector.Caller, wanted string) (string, error) {
	bot, err := h.App.Settings.BotIn("", by.Guild)
	if err != nil {
		return "", err
	}
	name, err := h.App.Setup.ModelMeant(bot, strings.TrimSpace(wanted))
	if err != nil {
		return "", operation.InvalidField("model", "%v", err)
	}
	return name, nil
}

// CreateAgent implements connector.Admin. It may be repeated: existing parts are used. Without a
// named profile the agent gets the one from the guild's settings, otherwise standard.
func (h *Backend) CreateAgent(ctx context.Context, by connector.Caller, want connector.NewAgent, in connector.AgentChannel) (connector.AgentView, error) {
	if err := h.CheckNewAgent(ctx, by, want); err != nil {
		return connector.AgentView{}, err
	}
	given := agents.Agent{Name: want.Name, Permissions: want.Permissions, SystemPrompt: want.Prompt, Extra: map[string]json.RawMessage{}}
	given.Extra[GuildMark], _ = json.Marshal(by.Guild) // strings
	given.Extra[channelMark], _ = json.Marshal(in.ID)
	if in.Made {
		given.Extra[madeMark] = given.Extra[channelMark]
	}
	if want.Model != "" {
		var err error
		if given.Model, err = h.modelFor(by, want.Model); err != nil {
			return connector.AgentView{}, err
		}
	}
	if given.Permissions == "" {
		if bot, err := h.App.Settings.BotIn("", by.Guild); err == nil && bot.Origin("permissions").Layer >= config.Guild {
			given.Permissions = bot.Permissions
		}
	}
	made, err := h.App.Settings.Agents().Create(ctx, given)
	isNew := err == nil
	switch {
	case isNew:
		detail := "model " + cmp.Or(made.Model, "(default)") + ", permissions " + made.Permissions + ", channel " + in.ID
		err = h.handler.Record(ctx, caller(by), made.Name, "agent create", detail)
	case errors.Is(err, agents.ErrExists):
		if made, err = h.own(ctx, by, want.Name); err == nil {
			err = h.settle(ctx, by, made.Name, in)
		}
	}
	if err != nil {
		return connector.AgentView{}, h.handler.ToError(err)
	}
	view := h.view(made, by.Guild)
	view.New = isNew
	return view, nil
}

// settle makes an existing agent live in a channel of the guild.
func (h *Backend) settle(ctx context.Context, by connector.Caller, name string, in connector.AgentChannel) error {
	at := h.App.LivesIn(name)
	if at.in(by.Guild, in.ID) {
		return nil
	}
	made := at.made
	if in.Made {
		made = in.ID
	}
	for _, mark := range [][2]string{{madeMark, made}, {GuildMark, by.Guild}, {channelMark, in.ID}} {
		if _, err := h.App.Settings.Agents().Mark(ctx, name, mark[0], mark[1]); err != nil {
			return err
		}
	}
	h.owners.forget()
	return h.handler.Record(ctx, caller(by), name, "agent channel", in.ID)
}

func caller(by connector.Caller) operation.Caller {
	return operation.Caller{Principal: by.By, Scopes: []operation.Scope{operation.Admin}}
}

// view is an agent as a guild sees it.
func (h *Backend) view(a agents.Agent, guild string) connector.AgentView {
	shown := h.agents.Agent(a)
	v := connector.AgentView{Name: a.Name, Model: shown.Model, Permissions: shown.Permissions, Description: shown.Description}
	if at := h.App.LivesIn(a.Name); at.Guild == guild {
		v.Channel, v.MadeChannel = at.Channel, at.Channel != "" && at.made == at.Channel
	}
	if bot, err := h.App.Settings.BotIn(a.Name, guild); err == nil {
		v.Permissions = bot.Permissions
		if name, err := h.App.Models.Name("", bot.ContinuationModel); err == nil {
			v.Model = name
		}
	}
	return v
}

// CheckDeleteAgent implements connector.Admin.
func (h *Backend) CheckDeleteAgent(ctx context.Context, by connector.Caller, name string) (connector.AgentView, error) {
	if err := h.mayChange(by, "system_prompt"); err != nil {
		return connector.AgentView{}, err
	}
	a, err := h.own(ctx, by, name)
	if err != nil {
		return connector.AgentView{}, err
	}
	switch _, busy, err := h.agents.AtWork(ctx, name); {
	case err != nil:
		return connector.AgentView{}, h.handler.ToError(err)
	case busy:
		return connector.AgentView{}, operation.Errorf(operation.Conflict, "%s is running; use `/stop` in its channel first", name)
	}
	return h.view(a, by.Guild), nil
}

// DeleteAgent implements connector.Admin.
func (h *Backend) DeleteAgent(ctx context.Context, by connector.Caller, name string, keepFiles bool) error {
	if _, err := h.CheckDeleteAgent(ctx, by, name); err != nil {
		return err
	}
	_, err := h.agents.DestroyAgent(ctx, caller(by), operations.DestroyAgentRequest{Name: name, KeepFiles: keepFiles})
	return h.handler.ToError(err)
}

// GuildAgents implements connector.Admin: those of the guild and those without a guild;
// other guilds' agents are private.
func (h *Backend) GuildAgents(ctx context.Context, by connector.Caller) ([]connector.AgentView, error) {
	list, err := h.App.Settings.Agents().List(ctx)
	if err != nil {
		return nil, h.handler.ToError(err)
	}
	var out []connector.AgentView
	for _, b := range h.Bots {
		if !slices.ContainsFunc(list, func(a agents.Agent) bool { return a.Name == b.Name }) {
			v := h.view(agents.Agent{Name: b.Name}, by.Guild)
			v.Description = "answers wherever no other agent does"
			out = append(out, v)
		}
	}
	for _, a := range list {
		if at := h.App.LivesIn(a.Name); at.Guild == "" || at.Guild == by.Guild {
			out = append(out, h.view(a, by.Guild))
		}
	}
	return out, nil
}

// lives reports whether an agent may appear in a guild: a guild's agent is not
// available to other guilds with a channel of its name.
func (h *Backend) lives(name string, in room.Channel) bool {
	at := h.App.LivesIn(name)
	return at.Guild == "" || at.Guild == in.Guild
}

// BotName implements connector.BotNames: a bot with one agent in a guild takes its name,
// if somebody has named it.
func (h *Backend) BotName(_ context.Context, bot, guild string, channels []room.Channel) string {
	settings, err := h.App.Settings.BotIn(bot, guild)
	if err != nil || !settings.IsSet("innerName") {
		return ""
	}
	for _, c := range channels {
		if other := h.ChannelAgent(c); other != "" && other != bot && h.speaksFor(bot, other) {
			return ""
		}
	}
	return settings.InnerName
}

// Reloads implements connector.BotNames.
func (h *Backend) Reloads(ctx context.Context) <-chan struct{} { return h.App.Settings.Changes(ctx) }
