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
	"chorus/internal/transport/mcpserver"
	"chorus/internal/usage"
)

func (c *program) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "MCP, the protocol by which programs give tools to models: offer Chorus to them", RunE: oneOf,
		Example: `  chorus mcp serve                            for a program that starts it, on standard input and output
  chorus mcp serve --scopes read              only to look
  chorus mcp serve --server https://chorus.example.org`,
	}
	cmd.AddCommand(c.mcpServeCommand())
	return cmd
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
