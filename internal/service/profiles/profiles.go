// Package profiles implements the operations on permission profiles: showing their rules, trying other rules on past calls, and changing them.
package profiles

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/digest"
	"chorus/internal/gate"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/service"
	"chorus/internal/settings"
	"chorus/internal/tool/files"
)

// Handler implements the operations on permission profiles.
type Handler struct {
	app      *service.Service
	settings *service.Handler
}

// New returns a handler that changes settings through another one.
func New(app *service.Service, settings *service.Handler) *Handler { return &Handler{app, settings} }

var _ operations.Profiles = (*Handler)(nil)

// rulesOf returns the rules of a saved profile; false: there is none of that name.
func (o *Handler) rulesOf(name string) (*config.Bot, permit.Rules, bool, error) {
	bot, err := o.app.Settings.Bot("")
	if err != nil {
		return nil, permit.Rules{}, false, err
	}
	if _, own := bot.Profiles[name]; !own && !permit.IsPreset(name) {
		return bot, permit.Rules{}, false, nil
	}
	p, err := settings.Profile(bot, name)
	if err != nil {
		return bot, permit.Rules{}, false, err
	}
	return bot, p.Rules(), true, nil
}

// profileVersion is a digest of a profile's contents.
func profileVersion(r permit.Rules) string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // texts always encode
	}
	return digest.Of(text)[:16]
}

// heldElsewhere says why a profile cannot be changed by an operation; "": it can.
func (o *Handler) heldElsewhere(bot *config.Bot, name string) string {
	for _, row := range bot.Rows() {
		if strings.HasPrefix(row.Key, "profiles."+name+".") && row.File != "" && filepath.Clean(row.File) != o.app.Home.Settings() {
			return "it stands in " + row.From() + "; change it there"
		}
	}
	if _, own := bot.Profiles[name]; !own && permit.IsPreset(name) {
		return "it is built in; create your own from it"
	}
	return ""
}

// GetProfile implements the operation of that name.
func (o *Handler) GetProfile(ctx context.Context, _ operation.Caller, in operations.ProfileRef) (operations.ProfileDetail, error) {
	bot, rules, there, err := o.rulesOf(in.Name)
	if err != nil {
		return operations.ProfileDetail{}, err
	}
	if !there {
		return operations.ProfileDetail{}, operation.Errorf(operation.NotFound, "there is no permission profile %.64q", in.Name)
	}
	_, own := bot.Profiles[in.Name]
	out := operations.ProfileDetail{Name: in.Name, About: permit.About(in.Name), BuiltIn: permit.IsPreset(in.Name) && !own, Fixed: o.heldElsewhere(bot, in.Name), Version: profileVersion(rules),
		Deny: inWords(rules.Deny), Allow: inWords(rules.Allow), Ask: inWords(rules.Ask), Agents: []string{}}
	list, err := o.app.Settings.Agents().List(ctx)
	if err != nil {
		return out, err
	}
	for _, a := range list {
		if cmp.Or(a.Permissions, bot.Permissions) == in.Name {
			out.Agents = append(out.Agents, a.Name)
		}
	}
	if bot.Permissions == in.Name && !slices.ContainsFunc(list, func(a agents.Agent) bool { return a.Name == chat.DefaultAgent }) {
		out.Agents = append(out.Agents, chat.DefaultAgent)
	}
	return out, nil
}

// inWords describes rules in words, or says what is wrong with them.
func inWords(list []string) []operations.RuleWords {
	out := []operations.RuleWords{}
	for _, rule := range list {
		words, err := permit.Words(rule)
		if err != nil {
			words = err.Error()
		}
		out = append(out, operations.RuleWords{Rule: rule, Words: words})
	}
	return out
}

// ExplainRule implements the operation of that name.
func (o *Handler) ExplainRule(_ context.Context, _ operation.Caller, in operations.RuleText) (operations.RuleWords, error) {
	words, err := permit.Words(in.Rule)
	if err != nil {
		return operations.RuleWords{}, operation.InvalidField("rule", "%v", err)
	}
	return operations.RuleWords{Rule: in.Rule, Words: words}, nil
}

// SaveProfile implements the operation of that name.
func (o *Handler) SaveProfile(ctx context.Context, by operation.Caller, in operations.ProfileEdit) (operations.ProfileDetail, error) {
	if err := o.mayChangeProfiles(by); err != nil {
		return operations.ProfileDetail{}, err
	}
	bot, now, there, err := o.rulesOf(in.Name)
	if err != nil {
		return operations.ProfileDetail{}, err
	}
	if why := o.heldElsewhere(bot, in.Name); why != "" {
		return operations.ProfileDetail{}, operation.Errorf(operation.Conflict, "%s cannot be changed: %s", in.Name, why)
	}
	if !there && in.Seen == "" && in.Allow == nil && in.Ask == nil && in.Deny == nil {
		return operations.ProfileDetail{}, operation.Errorf(operation.Invalid, "%s has no rules and would refuse everything; add some", in.Name)
	}
	wished := drafted(now, in.Allow, in.Ask, in.Deny)
	if err := checkRules(wished); err != nil {
		return operations.ProfileDetail{}, err
	}
	if err := o.writeProfile(ctx, in.Name, in.Seen, &wished); err != nil {
		return operations.ProfileDetail{}, err
	}
	if err := o.settings.Record(ctx, by, "", "profile save "+in.Name, gate.Shortened(string(encoded(wished)))); err != nil {
		return operations.ProfileDetail{}, err
	}
	return o.GetProfile(ctx, by, operations.ProfileRef{Name: in.Name})
}

// mayChangeProfiles requires the right to give any rights, because whoever writes the rules gives them.
func (o *Handler) mayChangeProfiles(by operation.Caller) error {
	if err := o.app.Gate.MayGive(gate.Everything, by.Principal); err != nil {
		return operation.Errorf(operation.Forbidden, "only people who may give any rights can change permission profiles: %w", err)
	}
	return nil
}

// drafted returns the rules with some lists replaced; nil: unchanged.
func drafted(now permit.Rules, allow, ask, deny []string) permit.Rules {
	if allow != nil {
		now.Allow = allow
	}
	if ask != nil {
		now.Ask = ask
	}
	if deny != nil {
		now.Deny = deny
	}
	return now
}

// checkRules reports the list and the rule that is wrong.
func checkRules(r permit.Rules) error {
	for _, l := range []struct {
		name  string
		rules []string
	}{{permit.ListDeny, r.Deny}, {permit.ListAllow, r.Allow}, {permit.ListAsk, r.Ask}} {
		for i, rule := range l.rules {
			if err := permit.CheckRule(l.name, i, rule); err != nil {
				return operation.InvalidField(l.name, "%v", err)
			}
		}
	}
	return nil
}

func encoded(r permit.Rules) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		return nil // texts always encode
	}
	return text
}

// RemoveProfile implements the operation of that name.
func (o *Handler) RemoveProfile(ctx context.Context, by operation.Caller, in operations.ProfileRef) (operation.None, error) {
	p, err := o.GetProfile(ctx, by, in)
	if err == nil {
		err = o.mayChangeProfiles(by)
	}
	switch {
	case err != nil:
		return operation.None{}, err
	case p.Fixed != "":
		return operation.None{}, operation.Errorf(operation.Conflict, "%s cannot be removed: %s", in.Name, p.Fixed)
	case len(p.Agents) > 0:
		return operation.None{}, operation.Errorf(operation.Conflict, "%s is the profile of %s; give them another one first", in.Name, strings.Join(p.Agents, ", "))
	}
	if err := o.writeProfile(ctx, in.Name, "", nil); err != nil {
		return operation.None{}, err
	}
	return operation.None{}, o.settings.Record(ctx, by, "", "profile remove "+in.Name, "")
}

// writeProfile changes a profile of settings.json, if the result is valid; nil removes it. With a version, it fails if
// somebody else has changed the profile since.
func (o *Handler) writeProfile(ctx context.Context, name, seen string, wished *permit.Rules) error {
	return o.settings.ChangeSettings(ctx, config.Key{Path: "profiles"}, func(doc map[string]any) error { return putProfile(doc, name, seen, wished) })
}

// putProfile changes a profile in the contents of settings.json. Its other settings (sandbox, hosts) are kept.
func putProfile(doc map[string]any, name, seen string, wished *permit.Rules) error {
	all, _ := doc["profiles"].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	own, _ := all[name].(map[string]any)
	now := permit.Rules{Allow: texts(own["allow"]), Ask: texts(own["ask"]), Deny: texts(own["deny"])}
	if seen != "" && own == nil && seen != newProfile || seen != "" && own != nil && profileVersion(now) != seen {
		moved := operation.Errorf(operation.Conflict, "somebody else has changed %s meanwhile, so nothing was saved; check the difference, then save again with the new version", name)
		if wished != nil {
			moved.About = operations.ProfileConflict{Version: profileVersion(now), Difference: files.UnifiedWhole(name, rulesText(now), rulesText(*wished))}
		}
		return moved
	}
	if wished == nil {
		delete(all, name)
	} else {
		if own == nil {
			own = map[string]any{}
		}
		own["allow"], own["ask"], own["deny"] = wished.Allow, wished.Ask, wished.Deny
		all[name] = own
	}
	if doc["profiles"] = all; len(all) == 0 {
		delete(doc, "profiles")
	}
	return nil
}

// newProfile is the version of a profile that does not exist yet.
const newProfile = "new"

// texts returns a list from a settings file.
func texts(value any) []string {
	list, _ := value.([]any)
	out := []string{}
	for _, item := range list {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// rulesText formats a profile as a text with readable diffs.
func rulesText(r permit.Rules) string {
	return "deny\n" + lines(r.Deny) + "allow\n" + lines(r.Allow) + "ask\n" + lines(r.Ask)
}

func lines(list []string) string {
	var out strings.Builder
	for _, text := range list {
		out.WriteString("  " + text + "\n")
	}
	return out.String()
}
