package pages

import (
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// loginPath is where the browser returns to after a login to an MCP server.
const loginPath = "/mcp-login"

// beginServerLogin shows a link to the page on which a person approves the login. It is a link because our own security
// policy would block a form that leads to another site.
func (p *Pages) beginServerLogin(w http.ResponseWriter, r *http.Request, by operation.Caller, name string) error {
	login, err := operations.LoginMCPServer.Call(r.Context(), p.Executor, by, operations.NewMCPLogin{Name: name, Address: r.Header.Get("Origin")})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "serverlogin.html", map[string]any{"Layout": p.layout(r, by, "Log in to "+name), "Login": login})
}

// finishServerLogin takes the address that a browser returned to but could not reach.
func (p *Pages) finishServerLogin(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	done, err := operations.FinishMCPLogin.Call(r.Context(), p.Executor, by, operations.MCPLoginReturn{Redirect: r.PostFormValue("redirect")})
	if err != nil {
		return err
	}
	return finishForm(w, r, "/servers", "logged in to "+done.Name)
}

// serverLoginReturned handles the browser's return. It need not be signed in here: the values it brings are its authorization.
func (p *Pages) serverLoginReturned(w http.ResponseWriter, r *http.Request) {
	data := map[string]any{"Layout": layout{Title: "Log in", Plain: true, Version: p.Version}}
	status := http.StatusOK
	if p.LoginReturned == nil {
		data["Problem"] = "this server does not accept logins"
		status = http.StatusNotFound
	} else if name, err := p.LoginReturned(r.Context(), r.URL.Query()); err != nil {
		status, data["Problem"] = statusOf(err), p.userMessage(err)
	} else {
		data["Server"] = name
	}
	if err := p.render(w, status, "loggedin.html", data); err != nil {
		p.Log.Error("page failed", "component", "web", "error", err)
	}
}
