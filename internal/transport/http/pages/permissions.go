package pages

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// profileForm is what somebody has typed about a permission profile, with its effect.
type profileForm struct {
	New             bool
	Name            string
	Seen            string
	From            string // the profile to compare with
	Deny, Allow     string // rules, one per line
	Ask             string
	About, Fixed    string
	Agents          []string
	Wrong, Conflict string
	Field           string // the list that is wrong
	Trial           *operations.ProfileTrial
}

// newProfileVersion is the version of a profile that does not exist yet.
const newProfileVersion = "new"

// profiles lists the permission profiles.
func (p *Pages) profiles(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ListProfiles.Call(r.Context(), p.Executor, by, operations.ProfileQuery{})
	if err != nil {
		return err
	}
	var out []operations.ProfileDetail
	for _, one := range list.Items {
		detail, err := operations.GetProfile.Call(r.Context(), p.Executor, by, operations.ProfileRef{Name: one.Name})
		if operation.KindOf(err) == operation.NotFound {
			continue // a file of rules
		}
		if err != nil {
			return err
		}
		out = append(out, detail)
	}
	return p.render(w, http.StatusOK, "permissions.html", map[string]any{"Layout": p.layout(r, by, "Permissions"), "List": out})
}

func (p *Pages) profile(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	f, err := p.savedProfile(r, by, r.PathValue("name"))
	if err != nil {
		return err
	}
	return p.showProfile(w, r, by, f, http.StatusOK)
}

// newProfile shows a form that starts with the rules of another profile.
func (p *Pages) newProfile(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	f, err := p.savedProfile(r, by, cmp.Or(r.URL.Query().Get("from"), "standard"))
	if err != nil {
		return err
	}
	f.New, f.From, f.Name, f.Seen, f.Fixed, f.About, f.Agents = true, f.Name, "", newProfileVersion, "", "", nil
	return p.showProfile(w, r, by, f, http.StatusOK)
}

func (p *Pages) savedProfile(r *http.Request, by operation.Caller, name string) (profileForm, error) {
	d, err := operations.GetProfile.Call(r.Context(), p.Executor, by, operations.ProfileRef{Name: name})
	if err != nil {
		return profileForm{}, err
	}
	return profileForm{Name: d.Name, Seen: d.Version, Deny: ruleLines(d.Deny), Allow: ruleLines(d.Allow), Ask: ruleLines(d.Ask), About: d.About, Fixed: d.Fixed, Agents: d.Agents}, nil
}

// ruleLines are rules, one per line. Line breaks within a rule are escaped.
func ruleLines(list []operations.RuleWords) string {
	var out []string
	for _, rule := range list {
		out = append(out, strings.ReplaceAll(rule.Rule, "\n", `\n`))
	}
	return strings.Join(out, "\n")
}

func readRules(text string) []string {
	out := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// saveProfile shows the effect of the typed rules, or saves or removes the profile.
func (p *Pages) saveProfile(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	get := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	f := profileForm{New: r.PathValue("name") == "", Name: cmp.Or(r.PathValue("name"), get("name")), Seen: get("seen"), From: get("from"), Deny: get("deny"), Allow: get("allow"), Ask: get("ask")}
	var err error
	switch get("do") {
	case "save":
		_, err = operations.SaveProfile.Call(r.Context(), p.Executor, by, operations.ProfileEdit{Name: f.Name, Seen: f.Seen, Allow: readRules(f.Allow), Ask: readRules(f.Ask), Deny: readRules(f.Deny)})
	case "remove":
		if _, err = operations.RemoveProfile.Call(r.Context(), p.Executor, by, operations.ProfileRef{Name: f.Name}); err == nil {
			return finishForm(w, r, "/permissions", "removed")
		}
	default:
		return p.showProfile(w, r, by, f, http.StatusOK)
	}
	if err == nil {
		return finishForm(w, r, "/permissions/"+url.PathEscape(f.Name), "saved")
	}
	var known *operation.Error
	if fromScript(r) || !errors.As(err, &known) || known.Kind != operation.Invalid && known.Kind != operation.Conflict {
		return err
	}
	f.Wrong, f.Field = p.userMessage(err), known.Field
	if about, ok := known.About.(operations.ProfileConflict); ok {
		f.Seen, f.Conflict = about.Version, about.Difference
		f.Wrong = "Somebody else saved this profile after you opened it. Your changes are not saved yet."
	}
	return p.showProfile(w, r, by, f, statusOf(err))
}

// showProfile shows the form with its effect on past calls; our script asks for the effect alone.
func (p *Pages) showProfile(w http.ResponseWriter, r *http.Request, by operation.Caller, f profileForm, status int) error {
	trial, err := operations.TryProfile.Call(r.Context(), p.Executor, by, operations.ProfileDraft{Name: cmp.Or(f.Name, "new-profile"), From: f.From, Allow: readRules(f.Allow), Ask: readRules(f.Ask), Deny: readRules(f.Deny)})
	var known *operation.Error
	switch {
	case err == nil:
		f.Trial = &trial
	case !errors.As(err, &known) || known.Kind != operation.Invalid:
		return err
	case f.Wrong == "":
		f.Wrong, f.Field = p.userMessage(err), known.Field
	}
	if fromScript(r) {
		var out bytes.Buffer
		if err := p.execute(&out, "permission.html", "trial", f); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, err := w.Write(out.Bytes())
		return err
	}
	if !f.New && f.Agents == nil {
		if d, err := operations.GetProfile.Call(r.Context(), p.Executor, by, operations.ProfileRef{Name: f.Name}); err == nil {
			f.Agents, f.Fixed, f.About = d.Agents, d.Fixed, d.About
		}
	}
	frame := p.layout(r, by, cmp.Or(f.Name, "New profile"))
	frame.Path, frame.Style = "/permissions", "editor.css"
	if f.Fixed == "" {
		frame.Script = "editor.js"
	}
	return p.render(w, status, "permission.html", map[string]any{"Layout": frame, "Form": f})
}
