package pages

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

func (p *Pages) settings(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.showSettings(w, r, by, settingsNews{})
}

// settingsNews is the result of a form: the text of a new token, or why a value was rejected.
type settingsNews struct {
	Made       *operations.Token
	Key, Value string // the rejected value
	Problem    string
	Token      tokenForm
}

// tokenForm is the input for a new token, and why it was rejected.
type tokenForm struct {
	Name    string
	Scopes  map[operation.Scope]bool
	Problem string
}

// settingGroup is a part of the configuration.
type settingGroup struct {
	Name     string
	Settings []operations.Setting
	Set      int  // how many of them were set
	Open     bool // it contains a value that was just typed
}

// onlySet reports whether a page shows only settings that were set.
func onlySet(r *http.Request) bool { return r.URL.Query().Get("show") == "changed" }

// settingField is a setting with its input, which keeps a rejected value.
type settingField struct {
	S              operations.Setting
	May            bool
	Only           bool // the page shows only settings that were set, and stays that way
	Value, Problem string
	Form           string // the kind of input: choice, switch, number, lines (one per line) or text; long: a text of several lines
	Hint           string // a number of milliseconds in words
}

func settingOf(s operations.Setting, admin, only bool, news settingsNews) settingField {
	f := settingField{S: s, Only: only, May: admin && !s.Fixed, Value: s.Value, Form: inputOf(s), Hint: inWords(s.Key, cmp.Or(s.Value, s.Default))}
	if f.Form == "lines" {
		f.Value = strings.Join(listOf(s.Value), "\n")
	}
	if news.Problem != "" && news.Key == s.Key {
		f.Value, f.Problem = news.Value, news.Problem
		if _, err := strconv.ParseFloat(f.Value, 64); err != nil && f.Form == "number" {
			f.Form = "text" // a number input would not show what was typed
		}
	}
	return f
}

// inputOf chooses the input for a setting. A single-line input would drop the line breaks of a text.
func inputOf(s operations.Setting) string {
	switch {
	case len(s.Choices) > 0:
		return "choice"
	case s.Kind == "true or false":
		return "switch"
	case s.Kind == "whole number" || s.Kind == "number":
		return "number"
	case strings.HasPrefix(s.Kind, "list"):
		return "lines"
	case strings.Contains(s.Value, "\n") || slices.Contains([]string{"systemPrompt", "preamble", "contextPrefix"}, s.Key):
		return "long"
	}
	return "text"
}

// listOf parses a list setting; anything else stays one text.
func listOf(value string) []string {
	var list []string
	if value == "" || json.Unmarshal([]byte(value), &list) == nil {
		return list
	}
	return []string{value}
}

// inWords formats milliseconds in words; "": the setting is no duration, or it is too short to be hard to read.
func inWords(key, value string) string {
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil || ms < 1000 || !strings.HasSuffix(key, "Ms") {
		return ""
	}
	return display.Duration(time.Duration(ms) * time.Millisecond)
}

// groupSettings groups settings by topic; changed: only those that were set, and those that were rejected.
func groupSettings(list []operations.Setting, changed bool, news settingsNews) []settingGroup {
	var out []settingGroup
	for _, s := range list {
		refused := news.Problem != "" && news.Key == s.Key
		if changed && s.Source == "" && !refused {
			continue
		}
		name := cmp.Or(s.Section, "Other")
		at := slices.IndexFunc(out, func(g settingGroup) bool { return g.Name == name })
		if at < 0 {
			out = append(out, settingGroup{Name: name})
			at = len(out) - 1
		}
		out[at].Settings = append(out[at].Settings, s)
		out[at].Open = out[at].Open || changed || refused
		if s.Source != "" {
			out[at].Set++
		}
	}
	return out
}

// showSettings shows the configuration, the tokens, the rules that always allow calls, and the result of a form.
func (p *Pages) showSettings(w http.ResponseWriter, r *http.Request, by operation.Caller, news settingsNews) error {
	settings, err := operations.ListSettings.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	models, err := operations.ListModels.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	data := map[string]any{"Layout": p.layout(r, by, "Settings"), "Groups": groupSettings(settings.Items, onlySet(r), news), "Changed": onlySet(r),
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
	if news.Problem != "" || news.Token.Problem != "" {
		status = http.StatusBadRequest
	}
	return p.render(w, status, "settings.html", data)
}

func (p *Pages) setSetting(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	key, value := r.PostFormValue("key"), strings.ReplaceAll(r.PostFormValue("value"), "\r\n", "\n")
	meant := value
	if r.PostFormValue("form") == "lines" {
		meant = ""
		if lines := readRules(value); len(lines) > 0 {
			list, err := json.Marshal(lines)
			if err != nil {
				return err
			}
			meant = string(list)
		}
	}
	_, err := operations.SetSetting.Call(r.Context(), p.Executor, by, operations.SettingValue{Key: key, Value: meant})
	if err != nil && !fromScript(r) && operation.KindOf(err) == operation.Invalid {
		return p.showSettings(w, r, by, settingsNews{Key: key, Value: value, Problem: p.userMessage(err)})
	}
	if err != nil {
		return err
	}
	where := "/settings"
	if onlySet(r) {
		where += "?show=changed"
	}
	return finishForm(w, r, where+"#"+url.PathEscape(key), "set")
}

func (p *Pages) createToken(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	in := operations.NewToken{Name: r.PostFormValue("name")}
	asked := tokenForm{Name: in.Name, Scopes: map[operation.Scope]bool{}}
	for _, s := range r.PostForm["scopes"] {
		in.Scopes = append(in.Scopes, operation.Scope(s))
		asked.Scopes[operation.Scope(s)] = true
	}
	if len(in.Scopes) == 0 {
		asked.Problem = "choose at least one scope"
		return p.showSettings(w, r, by, settingsNews{Token: asked})
	}
	made, err := operations.CreateToken.Call(r.Context(), p.Executor, by, in)
	if err != nil && operation.KindOf(err) == operation.Invalid {
		asked.Problem = p.userMessage(err)
		return p.showSettings(w, r, by, settingsNews{Token: asked})
	}
	if err != nil {
		return err
	}
	return p.showSettings(w, r, by, settingsNews{Made: &made})
}

func (p *Pages) revokeToken(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if _, err := operations.RevokeToken.Call(r.Context(), p.Executor, by, operations.TokenRef{ID: r.PostFormValue("id")}); err != nil {
		return err
	}
	return finishForm(w, r, "/settings", "revoked")
}

// removeRule removes a rule that always allows a call.
func (p *Pages) removeRule(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if _, err := operations.RemoveRules.Call(r.Context(), p.Executor, by, operations.RuleRefs{IDs: []string{r.PostFormValue("id")}}); err != nil {
		return err
	}
	return finishForm(w, r, "/settings#rules", "removed")
}
