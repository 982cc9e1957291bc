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
		Long: `Logs in with OAuth 2.1: shows a page on which you approve the login, waits for the browser to
come back, and stores the tokens in mcp-logins of the home, readable only by you. They are
renewed as needed.

Chorus registers itself with the server. If the server does not support that, register a client
there by hand, with the redirect address http://127.0.0.1/callback (any port), and pass the
client's id with --client-id.

With --server, that server asks for the login, keeps the tokens and receives the redirect. The
redirect address is its own address followed by /mcp-login. If your browser cannot reach it,
paste the address at which the browser ended here. You have ten minutes.`,
		Example: `  chorus mcp login issues
  chorus mcp login issues --server https://chorus.example.org
  chorus mcp login issues --scope 'issues:read issues:write'
  chorus mcp login issues --client-id 8f3a --client-secret-file secret.txt`}
	f := cmd.Flags()
	f.StringSliceVar(&scopes, "scope", nil, "scopes to ask for in addition to what the server asks for")
	f.StringVar(&o.ClientID, "client-id", "", "id of a client you registered with the server")
	f.StringVar(&secretFile, "client-secret-file", "", "file with the client's secret")
	f.StringVarP(&folder, "repo", "r", "", "folder whose .mcp.json is read too (default: this one); with --server a folder of that machine (default: none)")
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

// loginLocally logs in with a browser on this machine.
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

// loginOnServer starts a login on a server, and waits until the browser returns there or somebody types where it ended.
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
	fmt.Fprintf(c.console.Err, "it comes back to %s; if it cannot, paste the address where it ended here\n", text.OneLine(in.Address))
	if err := mcplogin.Wait(ctx, to, login, c.console.In, c.warn); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out(), "logged in to %s\n", text.OneLine(in.Name))
	return err
}
