package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/client"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/text"
	"chorus/internal/usage"
)

func (c *program) mcpLoginCommand() *cobra.Command {
	var o runsetup.ServerLogin
	var scopes []string
	secretFile, folder := "", ""
	cmd := &cobra.Command{Use: "login NAME", Short: "Log in to an MCP server on the network, in a browser", Args: exactly(1),
		Long: `Logs in by OAuth 2.1: shows a page on which you say yes, waits until the browser comes back, and
keeps the tokens in mcp-logins of the home, for your eyes only. They are renewed as needed.

Chorus registers itself with the server. Where that is not possible, register it by hand, with
the redirect address http://127.0.0.1/callback of any port, and name the client it was given.

With --server it is the server that asks, keeps the tokens and is come back to: the redirect
address is its own with /mcp-login behind it. If your browser cannot reach it there, type the
address at which the browser ended here. You have ten minutes.`,
		Example: `  chorus mcp login issues
  chorus mcp login issues --server https://chorus.example.org
  chorus mcp login issues --scope 'issues:read issues:write'
  chorus mcp login issues --client-id 8f3a --client-secret-file secret.txt`}
	f := cmd.Flags()
	f.StringSliceVar(&scopes, "scope", nil, "what the login shall allow beside what the server asks for")
	f.StringVar(&o.ClientID, "client-id", "", "the client that you have registered with the server")
	f.StringVar(&secretFile, "client-secret-file", "", "file with its secret")
	f.StringVarP(&folder, "repo", "r", "", "the folder whose .mcp.json counts too; with --server one of its machine (default: this one, there: none)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, words := range scopes {
			o.Scopes = append(o.Scopes, strings.Fields(words)...)
		}
		if secretFile != "" {
			data, err := os.ReadFile(secretFile)
			if err != nil {
				return &usage.Error{Err: err}
			}
			o.ClientSecret = strings.TrimSpace(string(data))
		}
		if c.remote() {
			return c.loginThere(cmd.Context(), operations.NewMCPLogin{Name: args[0], Workspace: folder, Scopes: o.Scopes, ClientID: o.ClientID, ClientSecret: o.ClientSecret})
		}
		return c.loginHere(cmd.Context(), args[0], folder, o)
	}
	return cmd
}

// loginHere logs in with a browser of this machine.
func (c *program) loginHere(ctx context.Context, name, folder string, o runsetup.ServerLogin) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if folder != "" {
		if dir, err = filepath.Abs(folder); err != nil {
			return err
		}
	}
	return c.with(ctx, func(a *app.App) error {
		err := a.Setup.LogIn(ctx, dir, name, o, func(page string) {
			fmt.Fprintf(c.out(), "open this page in a browser of this machine: %s\n", text.OneLine(page))
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out(), "logged in to %s\n", name)
		return err
	})
}

// loginWait is how long one question after the end of a login waits for its answer.
const loginWait = 25

// loginThere has a server log in, and waits until the browser has come back to it, or until somebody types where the browser ended.
func (c *program) loginThere(ctx context.Context, in operations.NewMCPLogin) error {
	to, err := c.dial()
	if err != nil {
		return err
	}
	defer to.Close()
	address, err := client.ParseURL(c.server.url)
	if err != nil {
		return &usage.Error{Err: err}
	}
	in.Address = strings.TrimSuffix(address.String(), "/")
	login, err := operations.LoginMCPServer.Call(ctx, to, operation.Caller{}, in)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out(), "open this page in a browser: %s\n", text.OneLine(login.URL))
	fmt.Fprintf(c.console.Err, "it comes back to %s; if it cannot, type the address at which it ended here\n", text.OneLine(in.Address))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- c.waitForLogin(ctx, to, login) }()
	go c.typedRedirects(ctx, to, ended)
	if err := <-ended; err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out(), "logged in to %s\n", text.OneLine(in.Name))
	return err
}

// waitForLogin waits until a login is over. A server that is gone may come back, and says then that it knows of no login.
func (c *program) waitForLogin(ctx context.Context, to operation.Executor, login operations.MCPLogin) error {
	gone := false
	for {
		now, err := operations.MCPLoginState.Call(ctx, to, operation.Caller{}, operations.MCPLoginRef{ID: login.ID, Wait: loginWait})
		switch {
		case operation.KindOf(err) == operation.Unavailable && time.Now().Before(login.ExpiresAt):
			if !gone {
				c.warn(err.Error())
				c.warn("waiting until the server is there again")
			}
			gone = true
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		case err != nil:
			return err
		case now.State == operations.LoginDone:
			return nil
		case now.State == operations.LoginFailed:
			return errors.New(now.Error)
		}
	}
}

// typedRedirects hands over what somebody types. A line that is no such address is told, and another may be typed. The end of
// what is typed is not the end of the wait.
func (c *program) typedRedirects(ctx context.Context, to operation.Executor, ended chan<- error) {
	lines := bufio.NewScanner(c.console.In)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		_, err := operations.FinishMCPLogin.Call(ctx, to, operation.Caller{}, operations.MCPLoginReturn{Redirect: line})
		if kind := operation.KindOf(err); ctx.Err() == nil && (kind == operation.Invalid || kind == operation.NotFound) {
			c.warn(err.Error())
			continue
		}
		ended <- err
		return
	}
}
