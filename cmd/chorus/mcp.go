package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/mcpserver"
	"chorus/internal/usage"
)

func (c *program) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "MCP: servers whose tools agents use, and Chorus as a server: add, list, test, remove, login, serve", RunE: oneOf,
		Example: `  chorus mcp add files -- npx -y @modelcontextprotocol/server-filesystem /data
  chorus mcp add issues --url https://mcp.example.org/mcp
  chorus mcp login issues
  chorus mcp test issues
  chorus mcp serve                            Chorus for an MCP client, on standard input and output`,
	}
	cmd.AddCommand(c.mcpServeCommand(), c.mcpAddCommand(), c.mcpListCommand(), c.mcpTestCommand(), c.mcpRemoveCommand(), c.mcpLoginCommand(), c.mcpLogoutCommand())
	return cmd
}

func (c *program) mcpAddCommand() *cobra.Command {
	var s runsetup.NewServer
	var env, headers []string
	cmd := &cobra.Command{
		Use: "add NAME [-- COMMAND ARGS…]", Short: "Add an MCP server, for all agents of the home", Args: between(1, anyNumber),
		Long: `Adds a server to mcp.json in the home, which has the form that other programs use. Servers of
the configuration and of a repository's .mcp.json stay where they are.

A value like ${NAME} is taken from the environment when the server is started.`,
		Example: `  chorus mcp add files -- npx -y @modelcontextprotocol/server-filesystem /data
  chorus mcp add issues --url https://mcp.example.org/mcp
  chorus mcp add wiki --url https://wiki.example.org/mcp --header 'Authorization=Bearer ${WIKI_TOKEN}'`,
	}
	f := cmd.Flags()
	f.StringVar(&s.URL, "url", "", "the address of a server on the network")
	f.StringVar(&s.Type, "type", "", "how it is spoken to: stdio, http or sse (default: told from the rest)")
	f.StringArrayVar(&env, "env", nil, "NAME=VALUE that its program gets; may be given more than once")
	f.StringArrayVar(&headers, "header", nil, "NAME=VALUE that is sent to it; may be given more than once")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 1 {
			s.Command, s.Args = args[1], args[2:]
		}
		if s.Env, err = pairs(env); err != nil {
			return err
		}
		if s.Headers, err = pairs(headers); err != nil {
			return err
		}
		return c.withSetup(cmd, func(ctx context.Context, setup *runsetup.Setup, dir string) error {
			if err := setup.AddServer(dir, args[0], s); err != nil {
				return &usage.Error{Err: err}
			}
			_, err := fmt.Fprintf(c.out(), "%s is added; see whether it works: chorus mcp test %s\n", args[0], args[0])
			return err
		})
	}
	return cmd
}

// pairs reads NAME=VALUE.
func pairs(list []string) (map[string]string, error) {
	var out map[string]string
	for _, one := range list {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, &usage.Error{Err: fmt.Errorf("%q is not NAME=VALUE", one)}
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	return out, nil
}

// withSetup does something with the servers of the home and of this folder.
func (c *program) withSetup(cmd *cobra.Command, do func(ctx context.Context, setup *runsetup.Setup, dir string) error) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	return c.with(cmd.Context(), func(a *app.App) error { return do(cmd.Context(), a.Setup, dir) })
}

func (c *program) mcpListCommand() *cobra.Command {
	cmd := c.jsonFlag(&cobra.Command{Use: "list", Short: "List the MCP servers that agents in this folder have", Args: exactly(0)})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withSetup(cmd, func(_ context.Context, setup *runsetup.Setup, dir string) error {
			list, err := setup.Servers(dir)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(nonNil(list))
			}
			table := operation.Table{Head: []string{"NAME", "STATE", "WHERE", "FROM"}}
			for _, s := range list {
				table.Rows = append(table.Rows, []string{s.Name, s.State, s.Where, s.From})
			}
			return cli.WriteTable(c.out(), table, "there are no MCP servers; add one: chorus mcp add NAME -- COMMAND")
		})
	}
	return cmd
}

func (c *program) mcpTestCommand() *cobra.Command {
	cmd := c.jsonFlag(&cobra.Command{Use: "test NAME", Short: "Start an MCP server as a run would, and show what it has", Args: exactly(1)})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withSetup(cmd, func(ctx context.Context, setup *runsetup.Setup, dir string) error {
			report, err := setup.TestServer(ctx, runsetup.SessionOptions{Dir: dir}, args[0])
			switch {
			case err != nil && (!c.json || report.State == ""):
				return err
			case c.json:
				return errors.Join(c.printJSON(report), err)
			}
			fmt.Fprintf(c.out(), "%s works: %s, %s\n", text.OneLine(report.Name), text.Count(len(report.Tools), "tool"), text.Count(len(report.Prompts), "prompt"))
			for _, name := range slices.Concat(report.Tools, report.Prompts) {
				fmt.Fprintln(c.out(), "  "+text.OneLine(name))
			}
			return nil
		})
	}
	return cmd
}

func (c *program) mcpRemoveCommand() *cobra.Command {
	return &cobra.Command{Use: "remove NAME", Short: "Take out an MCP server that was added, and its login", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSetup(cmd, func(_ context.Context, setup *runsetup.Setup, dir string) error {
				if err := setup.RemoveServer(dir, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.out(), "%s is gone\n", args[0])
				return err
			})
		}}
}

func (c *program) mcpLoginCommand() *cobra.Command {
	return &cobra.Command{Use: "login NAME", Short: "Log in to an MCP server on the network, in a browser", Args: exactly(1),
		Long: `Logs in by OAuth 2.1: shows a page on which you say yes, waits until the browser comes back, and
keeps the tokens in mcp-logins of the home, for your eyes only. They are renewed as needed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSetup(cmd, func(ctx context.Context, setup *runsetup.Setup, dir string) error {
				err := setup.LogIn(ctx, dir, args[0], func(page string) {
					fmt.Fprintf(c.out(), "open this page in a browser of this machine: %s\n", text.OneLine(page))
				})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.out(), "logged in to %s\n", args[0])
				return err
			})
		}}
}

func (c *program) mcpLogoutCommand() *cobra.Command {
	return &cobra.Command{Use: "logout NAME", Short: "Forget the login to an MCP server", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSetup(cmd, func(_ context.Context, setup *runsetup.Setup, dir string) error {
				if err := setup.LogOut(dir, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.out(), "logged out of %s\n", args[0])
				return err
			})
		}}
}

func (c *program) mcpServeCommand() *cobra.Command {
	scopes := []string{string(operation.Read), string(operation.Chat)}
	cmd := c.serverFlags(&cobra.Command{
		Use: "serve", Short: "Offer Chorus to an MCP client on standard input and output", Args: exactly(0),
		Long: `Speaks MCP on standard input and output, for a client that starts it as a process: threads,
messages, search, approvals and schedules as tools and resources. It acts as you, on your
home, or with --server on a server as whoever its token is for.

The client is a model's program, so it gets no more than it needs: reading and chatting. With
--scopes read,chat,approve it may also answer approvals, which is your say given away.

chorus serve offers the same over HTTP at /mcp, to whoever has a token.`,
		Example: `  chorus mcp serve
  {"mcpServers": {"chorus": {"command": "chorus", "args": ["mcp", "serve"]}}}    in the client's configuration`,
	})
	cmd.Flags().StringSliceVar(&scopes, "scopes", scopes, "what the client may do: read, chat, approve, admin")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit, err := parseScopes(scopes)
		if err != nil {
			return err
		}
		ctx, stop := twoSignals(cmd.Context(), c)
		defer stop()
		if c.remote() {
			to, err := c.dial()
			if err != nil {
				return err
			}
			defer to.Close()
			return c.serveMCP(ctx, to, operation.Caller{Scopes: limit})
		}
		return c.with(ctx, func(a *app.App) error {
			by := a.Service.LocalCaller()
			by.Scopes = limit
			if err := a.Service.Handler().CheckOwner(ctx); err != nil {
				return err
			}
			a.StartBackground()
			return c.serveMCP(ctx, a.Service.Operations(), by)
		})
	}
	return cmd
}

func (c *program) serveMCP(ctx context.Context, to operation.Executor, by operation.Caller) error {
	server := mcpserver.New(mcpserver.Options{Executor: to, Operations: operations.All(), Tool: service.ClientTool(to), Version: version})
	return server.Serve(ctx, by, io.NopCloser(c.console.In), unclosed{c.console.Out})
}

// unclosed keeps standard output open: others may have something to say at the end.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func parseScopes(words []string) (scopes []operation.Scope, _ error) {
	for _, word := range words {
		scope := operation.Scope(strings.TrimSpace(word))
		if !slices.Contains(operation.Scopes(), scope) {
			return nil, &usage.Error{Err: fmt.Errorf("there is no scope %q; there are read, chat, approve and admin", word)}
		}
		scopes = append(scopes, scope)
	}
	return scopes, nil
}
