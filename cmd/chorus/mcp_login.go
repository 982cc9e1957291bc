package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/mcplogin"
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
			return c.loginOnServer(cmd.Context(), operations.NewMCPLogin{Name: args[0], Workspace: folder, Scopes: o.Scopes, ClientID: o.ClientID, ClientSecret: o.ClientSecret})
		}
		return c.loginLocally(cmd.Context(), args[0], folder, o)
	}
	return cmd
}

// loginLocally logs in with a browser of this machine.
func (c *program) loginLocally(ctx context.Context, name, folder string, o runsetup.ServerLogin) error {
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

// loginOnServer has a server log in, and waits until the browser has come back to it, or until somebody types where the browser ended.
func (c *program) loginOnServer(ctx context.Context, in operations.NewMCPLogin) error {
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
	if err := mcplogin.Wait(ctx, to, login, c.console.In, c.warn); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out(), "logged in to %s\n", text.OneLine(in.Name))
	return err
}
