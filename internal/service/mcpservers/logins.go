package mcpservers

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
)

// loginPath is where browsers return to after a login to an MCP server.
const loginPath = "/mcp-login"

// nowhere is the redirect address of a login whose browser cannot return to us. Authorization servers allow it for
// programs on a user's own machine.
const nowhere = "http://127.0.0.1" + loginPath

// LoginMCPServer implements the operation of that name.
func (o *Handler) LoginMCPServer(ctx context.Context, by operation.Caller, in operations.NewMCPLogin) (out operations.MCPLogin, err error) {
	dir, err := folder(in.Workspace)
	if err != nil {
		return out, err
	}
	redirect := nowhere
	if in.Address != "" {
		if redirect, err = loginRedirect(in.Address); err != nil {
			return out, err
		}
	}
	one, err := o.app.Setup.BeginLogin(ctx, dir, in.Name, runsetup.ServerLogin{Scopes: in.Scopes, ClientID: in.ClientID, ClientSecret: in.ClientSecret}, redirect, func(err error) {
		if err != nil {
			return
		}
		if err := o.app.Gate.RecordDecision(context.WithoutCancel(ctx), by.Principal, "mcp login", in.Name); err != nil {
			o.app.Log.Error("a login could not be recorded", "component", "mcp", "event", "login_not_recorded", "server", in.Name, "error", err.Error())
		}
	})
	if err != nil {
		return out, toError(err)
	}
	return showLogin(one, false, nil), nil
}

// loginRedirect is our address that a browser returns to.
func loginRedirect(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return "", operation.InvalidField("address", "%.200q is not an address like https://chorus.example.org", address)
	}
	return strings.TrimSuffix(address, "/") + loginPath, nil
}

// FinishMCPLogin implements the operation of that name.
func (o *Handler) FinishMCPLogin(ctx context.Context, _ operation.Caller, in operations.MCPLoginReturn) (out operations.MCPServerName, err error) {
	at, err := url.Parse(strings.TrimSpace(in.Redirect))
	if err != nil || at.RawQuery == "" {
		return out, operation.InvalidField("redirectUrl", "this is not the address that the browser returned to; give the full address, with everything after its ?")
	}
	out.Name, err = o.ReturnedLogin(ctx, at.Query())
	return out, err
}

// ReturnedLogin takes the values that a browser returned with. The state authorizes it: only the person who started the login has it.
func (o *Handler) ReturnedLogin(ctx context.Context, came url.Values) (server string, err error) {
	server, err = o.app.Setup.FinishLogin(ctx, came)
	switch {
	case errors.Is(err, runsetup.ErrUnknownLogin):
		return "", operation.Errorf(operation.NotFound, "%w: chorus mcp login NAME", err)
	case err != nil && ctx.Err() == nil:
		return "", operation.Errorf(operation.Conflict, "%w", err)
	}
	return server, err
}

// MCPLoginState implements the operation of that name.
func (o *Handler) MCPLoginState(ctx context.Context, _ operation.Caller, in operations.MCPLoginRef) (out operations.MCPLogin, err error) {
	wait, cancel := context.WithTimeout(ctx, time.Duration(in.Wait)*time.Second)
	defer cancel()
	one, over, err := o.app.Setup.WaitForLogin(wait, in.ID)
	if one == nil {
		return out, operation.Errorf(operation.NotFound, "%w: chorus mcp login NAME", err)
	}
	return showLogin(one, over, err), nil
}

func showLogin(one *runsetup.OpenLogin, over bool, err error) operations.MCPLogin {
	out := operations.MCPLogin{ID: one.ID, Name: one.Server, URL: one.Page, State: operations.LoginWaiting, ExpiresAt: one.Until}
	switch {
	case over && err != nil:
		out.State, out.Error = operations.LoginFailed, err.Error()
	case over:
		out.State = operations.LoginDone
	}
	return out
}
