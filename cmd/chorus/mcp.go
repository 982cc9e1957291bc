package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/service"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/mcpserver"
	"chorus/internal/usage"
)

func (c *program) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Manage MCP servers, and run Chorus as one", RunE: onlySubcommands,
		Example: `  chorus mcp add files -- npx -y @modelcontextprotocol/server-filesystem /data
  chorus mcp add issues --url https://mcp.example.org/mcp
  chorus mcp login issues
  chorus mcp test issues
  chorus mcp serve                            offer Chorus to an MCP client on standard input and output`,
	}
	cmd.AddCommand(c.mcpServeCommand(), c.mcpLoginCommand())
	return c.group(cmd, func(commands *cli.Commands) {
		cli.InvalidIsUsage(commands, operations.AddMCPServer)
		cli.Prepare(commands, operations.AddMCPServer, addServerFlags)
		cli.Prepare(commands, operations.ListMCPServers, func(*cobra.Command) func(context.Context, cli.Connection, *operations.MCPServerQuery, []string) error {
			return func(_ context.Context, to cli.Connection, in *operations.MCPServerQuery, _ []string) error {
				return workFolder(to, &in.Workspace, ".")
			}
		})
		ref := func(*cobra.Command) func(context.Context, cli.Connection, *operations.MCPServerRef, []string) error {
			return func(_ context.Context, to cli.Connection, in *operations.MCPServerRef, _ []string) error {
				return workFolder(to, &in.Workspace, ".")
			}
		}
		cli.Prepare(commands, operations.TestMCPServer, ref)
		cli.Prepare(commands, operations.RemoveMCPServer, ref)
		cli.Prepare(commands, operations.LogoutMCPServer, ref)
		cli.Render(commands, operations.TestMCPServer, func(v cli.View, _ operations.MCPServerRef, r operations.MCPServerReport) error {
			if r.State != serverReady {
				return nil // the error says so
			}
			fmt.Fprintf(v.Out, "%s works: %s, %s, %s\n", text.OneLine(r.Name), text.Count(len(r.Tools), "tool"), text.Count(len(r.Prompts), "prompt"), text.Count(len(r.Resources), "resource"))
			for _, name := range slices.Concat(r.Tools, r.Prompts, r.Resources) {
				fmt.Fprintln(v.Out, "  "+text.OneLine(name))
			}
			return nil
		})
		cli.Fails(commands, operations.TestMCPServer, func(r operations.MCPServerReport) error {
			if r.State == serverReady {
				return nil
			}
			return fmt.Errorf("%s: %s: %s", r.Name, r.State, r.Why)
		})
	})
}

// serverReady is the state of a usable server.
const serverReady = "ready"

// addServerFlags adds the flags whose values may contain commas, which list flags would split.
func addServerFlags(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.NewMCPServer, []string) error {
	env := cmd.Flags().StringArray("env", nil, "NAME=VALUE for its program's environment; may be given more than once")
	headers := cmd.Flags().StringArray("header", nil, "NAME=VALUE header to send to it; may be given more than once")
	return func(_ context.Context, to cli.Connection, in *operations.NewMCPServer, args []string) error {
		in.Env, in.Headers = *env, *headers
		if len(args) > 2 {
			in.Args = args[2:]
		}
		return workFolder(to, &in.Workspace, ".")
	}
}

func (c *program) mcpServeCommand() *cobra.Command {
	scopes := []string{string(operation.Read), string(operation.Chat)}
	cmd := &cobra.Command{
		Use: "serve", Short: "Offer Chorus to an MCP client on standard input and output", Args: exactly(0),
		Long: `Speaks MCP on standard input and output, for a client that starts it as a process. Threads,
messages, search, approvals and schedules are its tools and resources. It acts as you on
your home or, with --server, as the holder of the token on that server.

The client is a program driven by a model, so by default it may only read and chat. With
--scopes read,chat,approve it may also answer approvals in your name.

chorus serve offers the same over HTTP at /mcp, to anybody with a token.`,
		Example: `  chorus mcp serve
  {"mcpServers": {"chorus": {"command": "chorus", "args": ["mcp", "serve"]}}}    in the client's configuration`,
	}
	cmd.Flags().StringSliceVar(&scopes, "scopes", scopes, "what the client may do: read, chat, approve, admin")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit, err := parseScopes(scopes)
		if err != nil {
			return err
		}
		ctx, stop := twoSignals(cmd.Context(), c, "")
		defer stop()
		if c.remote() {
			to, err := c.dial()
			if err != nil {
				return err
			}
			defer to.Close()
			return c.serveMCP(ctx, mcpserver.Options{Executor: to}, operation.Caller{Scopes: limit})
		}
		return c.with(ctx, func(a *app.App) error {
			by := a.Service.LocalCaller()
			by.Scopes = limit
			if err := a.Service.Handler().CheckOwner(ctx); err != nil {
				return err
			}
			a.StartBackground()
			return c.serveMCP(ctx, mcpserver.Options{Executor: a.Service.Operations(), Changes: a.Changes}, by)
		})
	}
	return cmd
}

func (c *program) serveMCP(ctx context.Context, o mcpserver.Options, by operation.Caller) error {
	o.Operations, o.Tool, o.Version = operations.All(), service.ClientTool(o.Executor), version
	server := mcpserver.New(o)
	return server.Serve(ctx, by, io.NopCloser(c.console.In), unclosed{c.console.Out})
}

// unclosed keeps standard output open, because others may still print at the end.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func parseScopes(words []string) (scopes []operation.Scope, _ error) {
	for _, word := range words {
		scope := operation.Scope(strings.TrimSpace(word))
		if !slices.Contains(operation.Scopes(), scope) {
			return nil, &usage.Error{Err: fmt.Errorf("there is no scope %q; choose from read, chat, approve and admin", word)}
		}
		scopes = append(scopes, scope)
	}
	return scopes, nil
}
