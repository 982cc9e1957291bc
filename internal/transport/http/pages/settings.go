package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

func (p *Pages) settings(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.showSettings(w, r, by, settingsNews{})
}

// settingsNews is what came of a form: the text of a new token, or why a value was not taken.
type settingsNews struct {
	Made       *operations.Token
	Key, Value string // that was not taken
	Problem    string
}

// settingGroup is a part of the configuration.
type settingGroup struct {
	Name     string
	Settings []operations.Setting
}

// settingField is a setting with what its field shows: what was typed, where that was not taken.
type settingField struct {
	S              operations.Setting
	May            bool
	Value, Problem string
}

func settingOf(s operations.Setting, admin bool, news settingsNews) settingField {
	f := settingField{S: s, May: admin && !s.Fixed, Value: s.Value}
	if news.Problem != "" && news.Key == s.Key {
		f.Value, f.Problem = news.Value, news.Problem
	}
	return f
}

// groupSettings puts settings under what they are about; changed: only those that somebody has set.
func groupSettings(list []operations.Setting, changed bool) []settingGroup {
	var out []settingGroup
	for _, s := range list {
		if changed && s.Source == "" {
			continue
		}
		name := cmp.Or(s.Section, "Other")
		at := slices.IndexFunc(out, func(g settingGroup) bool { return g.Name == name })
		if at < 0 {
			out = append(out, settingGroup{Name: name})
			at = len(out) - 1
		}
		out[at].Settings = append(out[at].Settings, s)
	}
	return out
}

// showSettings shows the configuration, the tokens, what was allowed for good, and what came of a form.
func (p *Pages) showSettings(w http.ResponseWriter, r *http.Request, by operation.Caller, news settingsNews) error {
	settings, err := operations.ListSettings.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	models, err := operations.ListModels.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	data := map[string]any{"Layout": p.layout(r, by, "Settings"), "Groups": groupSettings(settings.Items, r.URL.Query().Get("show") == "changed"), "Changed": r.URL.Query().Get("show") == "changed",
		"Models": models.Items, "Admin": by.May(operation.Admin), "News": news, "Scopes": operation.Scopes()}
	if by.May(operation.Admin) {
		tokens, err := operations.ListTokens.Call(r.Context(), p.Executor, by, operation.None{})
		if err != nil {
			return err
		}
		rules, err := operations.ListRules.Call(r.Context(), p.Executor, by, operation.None{})
		if err != nil {
			return err
		}
		data["Tokens"], data["Rules"], data["Names"] = tokens.Items, rules.Items, p.names(r.Context(), by)
	}
	status := http.StatusOK
	if news.Problem != "" {
		status = http.StatusBadRequest
	}
	return p.render(w, status, "settings.html", data)
}

func requireAdmin(by operation.Caller) error {
	if !by.May(operation.Admin) {
		return operation.Errorf(operation.Forbidden, "your token lacks the scope admin")
	}
	return nil
}

func (p *Pages) setSetting(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := requireAdmin(by); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	key, value := r.PostFormValue("key"), r.PostFormValue("value")
	_, err := operations.SetSetting.Call(r.Context(), p.Executor, by, operations.SettingValue{Key: key, Value: value})
	if err != nil && !fromScript(r) && operation.KindOf(err) == operation.Invalid {
		return p.showSettings(w, r, by, settingsNews{Key: key, Value: value, Problem: p.userMessage(err)})
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, "/settings#"+url.PathEscape(key), "set")
}

func (p *Pages) createToken(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := requireAdmin(by); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	in := operations.NewToken{Name: r.PostFormValue("name")}
	for _, s := range r.PostForm["scopes"] {
		in.Scopes = append(in.Scopes, operation.Scope(s))
	}
	made, err := operations.CreateToken.Call(r.Context(), p.Executor, by, in)
	if err != nil {
		return err
	}
	return p.showSettings(w, r, by, settingsNews{Made: &made})
}

func (p *Pages) revokeToken(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := requireAdmin(by); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	if _, err := operations.RevokeToken.Call(r.Context(), p.Executor, by, operations.TokenRef{ID: r.PostFormValue("id")}); err != nil {
		return err
	}
	return finishForm(w, r, "/settings", "revoked")
}

// removeRule takes back something that was allowed for good.
func (p *Pages) removeRule(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := requireAdmin(by); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	if _, err := operations.RemoveRules.Call(r.Context(), p.Executor, by, operations.RuleRefs{IDs: []string{r.PostFormValue("id")}}); err != nil {
		return err
	}
	return finishForm(w, r, "/settings#rules", "removed")
}
