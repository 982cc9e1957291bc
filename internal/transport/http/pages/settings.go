package pages

import (
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

func (p *Pages) settings(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.showSettings(w, r, by, nil)
}

// showSettings shows the configuration, the tokens, and the text of a token that was just created.
func (p *Pages) showSettings(w http.ResponseWriter, r *http.Request, by operation.Caller, made *operations.Token) error {
	settings, err := operations.ListSettings.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	models, err := operations.ListModels.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	data := map[string]any{"Layout": p.layout(r, by, "Settings"), "Settings": settings.Items, "Models": models.Items, "Admin": by.May(operation.Admin), "Made": made, "Scopes": operation.Scopes()}
	if by.May(operation.Admin) {
		tokens, err := operations.ListTokens.Call(r.Context(), p.Executor, by, operation.None{})
		if err != nil {
			return err
		}
		data["Tokens"] = tokens.Items
	}
	return p.render(w, http.StatusOK, "settings.html", data)
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
	if _, err := operations.SetSetting.Call(r.Context(), p.Executor, by, operations.SettingValue{Key: r.PostFormValue("key"), Value: r.PostFormValue("value")}); err != nil {
		return err
	}
	return finishForm(w, r, "/settings", "set")
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
	return p.showSettings(w, r, by, &made)
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
