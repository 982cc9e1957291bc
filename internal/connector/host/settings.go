package host

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/gate"
	"chorus/internal/operation"
)

// ownKeys are an agent's settings that are not keys of the configuration.
var ownKeys = []string{"tools", "webSearch"}

// AgentSetting implements connector.Admin.
func (h *Backend) AgentSetting(ctx context.Context, by connector.Caller, name, key string) (connector.Setting, error) {
	a, err := h.own(ctx, by, name)
	if err != nil && (operation.KindOf(err) != operation.NotFound || !h.isBot(name)) {
		return connector.Setting{}, err
	}
	if slices.Contains(ownKeys, key) {
		return ownSetting(a, key), nil
	}
	k, err := config.AgentFile.Key(key)
	if err != nil {
		return connector.Setting{}, operation.InvalidField("key", "%v", err)
	}
	bot, err := h.App.Settings.BotIn(name, by.Guild)
	if err != nil {
		return connector.Setting{}, h.handler.ToError(err)
	}
	return h.setting(bot, k.Path), nil
}

// ownSetting is a setting that only agent.json has.
func ownSetting(a agents.Agent, key string) connector.Setting {
	s := connector.Setting{Key: key, From: "agent.json"}
	switch key {
	case "tools":
		s.Value = cmp.Or(strings.Join(a.Tools, ", "), "all")
	case "worker":
		s.Value = cmp.Or(a.Worker, "none")
	default:
		s.Value = fmt.Sprint(a.WebSearch)
	}
	return s
}

// setting is the effective value of a key, and where it was set. Files are named relative to the home.
func (h *Backend) setting(bot *config.Bot, path string) connector.Setting {
	out := connector.Setting{Key: path, Value: "not set", From: "built in"}
	for _, row := range bot.Rows() {
		if row.Key != path {
			continue
		}
		if text, ok := row.Value.(string); ok && !row.Secret {
			out.Value = cmp.Or(text, "(empty)")
		} else if row.Value != nil {
			out.Value = row.Shown()
		}
		out.Value = h.App.Logs.Redactor().Text(out.Value)
		out.From = row.From()
		if rel, err := filepath.Rel(h.App.Home.Dir(), row.File); err == nil && filepath.IsAbs(row.File) && filepath.IsLocal(rel) {
			out.From = strings.Replace(out.From, row.File, rel, 1)
		} else if filepath.IsAbs(row.File) {
			out.From = strings.Replace(out.From, row.File, filepath.Base(row.File), 1)
		}
		if bot.Origin(path).Layer == config.GuildSettings {
			out.From = "set with `/settings` here"
		}
	}
	if path == "continuationModel" {
		out.Key = "model"
		if name, err := h.App.Models.Name("", bot.ContinuationModel); err == nil {
			if out.Value = name; !bot.IsSet(path) {
				out.From = "the default"
			}
		}
	}
	return out
}

// SetAgent implements connector.Admin.
func (h *Backend) SetAgent(ctx context.Context, by connector.Caller, name, key, value string) (connector.Setting, string, error) {
	path := key
	if !slices.Contains(ownKeys, key) {
		k, err := config.AgentFile.Key(key)
		if err != nil {
			return connector.Setting{}, "", operation.InvalidField("key", "%v", err)
		}
		path = k.Path
	}
	if path == "permissions" || path == "continuationModel" {
		value = strings.TrimSpace(value) // a name; in other values a space may matter
	}
	if err := h.mayChange(by, selfEditOf(path, value)); err != nil {
		return connector.Setting{}, "", err
	}
	if _, err := h.own(ctx, by, name); err != nil {
		return connector.Setting{}, "", err
	}
	if err := h.writeAgent(ctx, by, name, path, value); err != nil {
		return connector.Setting{}, "", err
	}
	if err := h.handler.Record(ctx, caller(by), name, "agent config "+path, gate.Shortened(value)); err != nil {
		return connector.Setting{}, "", h.handler.ToError(err)
	}
	now, err := h.AgentSetting(ctx, by, name, path)
	if err != nil {
		return now, "", err
	}
	return now, h.above(name, by.Guild, path, value), nil
}

// selfEditOf is the equivalent action of an agent's own tools.
func selfEditOf(path, value string) string {
	switch path {
	case "continuationModel":
		return "model " + value
	case "permissions":
		return "permissions " + value
	default:
		return "system_prompt"
	}
}

func (h *Backend) writeAgent(ctx context.Context, by connector.Caller, name, path, value string) error {
	unset := value == connector.Unset
	switch path {
	case "permissions":
		profile := value
		if unset {
			profile = "standard" // the profile of an agent that names none
		}
		bot, err := h.App.Settings.BotIn(name, by.Guild)
		if err != nil {
			return h.handler.ToError(err)
		}
		if err := h.mayChangeProfile(by, bot.Permissions, profile); err != nil {
			return err
		}
	case "continuationModel":
		if path = "model"; !unset {
			var err error
			if value, err = h.modelFor(by, value); err != nil {
				return err
			}
		}
	}
	var err error
	if unset {
		_, err = h.App.Settings.Agents().Unset(ctx, name, path)
	} else {
		_, err = h.App.Settings.Agents().Configure(ctx, name, path, value)
	}
	if err != nil {
		return operation.InvalidField(path, "%v", strings.TrimPrefix(err.Error(), "configure agent "+name+": "))
	}
	return nil
}

// above says that a saved value is not effective, because something stronger overrides it.
func (h *Backend) above(name, guild, path, value string) string {
	bot, err := h.App.Settings.BotIn(name, guild)
	if err != nil || value == connector.Unset || slices.Contains(ownKeys, path) {
		return ""
	}
	if at := bot.Origin(path); at.Layer > config.AgentFile {
		return fmt.Sprintf("Saved, but the %s sets it too and takes precedence.", at.Layer)
	}
	return ""
}

// GuildSettings implements connector.Admin.
func (h *Backend) GuildSettings(_ context.Context, by connector.Caller) ([]connector.Setting, []connector.KeyState, error) {
	bot, err := h.App.Settings.BotIn("", by.Guild)
	if err != nil {
		return nil, nil, h.handler.ToError(err)
	}
	out := []connector.Setting{h.setting(bot, "continuationModel"), h.setting(bot, "permissions")}
	for _, row := range bot.Rows() {
		at := bot.Origin(row.Key).Layer
		if at != config.Guild && at != config.GuildSettings {
			continue
		}
		if k, err := config.GuildSettings.Key(row.Key); err == nil && k.Path != "continuationModel" && k.Path != "permissions" {
			out = append(out, h.setting(bot, row.Key))
		}
	}
	keys, err := h.keyStates()
	return out, keys, err
}

// SetGuild implements connector.Admin.
func (h *Backend) SetGuild(ctx context.Context, by connector.Caller, key, value string) (connector.Setting, string, error) {
	typed, err := config.GuildSettings.Read(key, value)
	if err != nil {
		return connector.Setting{}, "", operation.InvalidField(key, "%v", err)
	}
	if err := h.mayChange(by, selfEditOf(typed.Path, value)); err != nil {
		return connector.Setting{}, "", err
	}
	var stored any = value
	switch {
	case value == connector.Unset:
		stored = nil
		if typed.Path == "permissions" {
			err = h.mayUnset(by)
		}
	case typed.Path == "permissions":
		var bot *config.Bot
		if bot, err = h.App.Settings.BotIn("", by.Guild); err == nil {
			err = h.mayChangeProfile(by, bot.Permissions, value)
		}
	case typed.Path == "continuationModel":
		stored, err = h.modelFor(by, value)
	default:
		stored = typed.Value
	}
	if err == nil {
		err = h.App.Settings.SetGuild(by.Guild, typed.Path, stored)
	}
	if err == nil {
		err = h.handler.Record(ctx, caller(by), "", "settings "+by.Guild+" "+typed.Path, gate.Shortened(value))
	}
	if err != nil {
		return connector.Setting{}, "", h.handler.ToError(err)
	}
	bot, err := h.App.Settings.BotIn("", by.Guild)
	if err != nil {
		return connector.Setting{}, "", h.handler.ToError(err)
	}
	return h.setting(bot, typed.Path), h.others(ctx, by, typed.Path), nil
}

// mayUnset checks that somebody may restore the global profile here.
func (h *Backend) mayUnset(by connector.Caller) error {
	bot, problems := h.App.Settings.Live.Now().Bot(config.Ask{Guild: by.Guild})
	if err := problems.Err(); err != nil {
		return err
	}
	now, err := h.App.Settings.BotIn("", by.Guild)
	if err != nil {
		return err
	}
	return h.mayChangeProfile(by, now.Permissions, bot.Permissions)
}

// others names the agents that have a different value than the one just set.
func (h *Backend) others(ctx context.Context, by connector.Caller, path string) string {
	list, err := h.GuildAgents(ctx, by)
	if err != nil {
		return ""
	}
	var own []string
	for _, a := range list {
		if bot, err := h.App.Settings.BotIn(a.Name, by.Guild); err == nil && bot.Origin(path).Layer > config.GuildSettings {
			own = append(own, a.Name)
		}
	}
	if len(own) == 0 {
		return ""
	}
	return "These agents keep their own value: " + strings.Join(own, ", ") + "."
}

// CheckKeys implements connector.Admin.
func (h *Backend) CheckKeys(ctx context.Context, _ connector.Caller) ([]connector.KeyState, error) {
	if _, err := h.App.Discovery.RefreshModels(ctx, nil); err != nil {
		return nil, h.handler.ToError(err)
	}
	return h.keyStates()
}

// keyStates are the vendors with a key and their last answers.
func (h *Backend) keyStates() ([]connector.KeyState, error) {
	list := h.App.Discovery.Available(func(string) {})
	all, err := h.App.Discovery.Catalog(list)
	if err != nil {
		return nil, h.handler.ToError(err)
	}
	hide := h.App.Logs.Redactor()
	var out []connector.KeyState
	for _, v := range all.Vendors {
		if v.Key == "none" {
			continue // there is nothing to report
		}
		state := map[string]string{"valid": "valid", "valid, but": "valid, but", "no": "invalid", "none needed": "needs none", "not checked": "not checked yet"}[v.Key]
		k := connector.KeyState{Vendor: v.Name, State: cmp.Or(state, v.Key), Error: hide.Clipped(gate.Shortened(v.Error))}
		if v.Key != "none needed" {
			k.Models = list.Providers[v.Name].Models
		}
		out = append(out, k)
	}
	return out, nil
}
