package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/editors"
	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/client"
	"chorus/internal/runsetup"
	"chorus/internal/transport/acp"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl/remote"
	"chorus/internal/usage"
)

func (c *program) acpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Run as an agent for editors (Zed, Neovim, JetBrains) on standard input and output",
		Long: `Speaks the Agent Client Protocol on standard input and output, for an editor that
starts it as a process. It shares its sessions with chorus chat: you can continue an
editor's session in the terminal, and load a terminal's session in the editor.

You may kill it, or the editor, at any time: loading the session again shows the whole
conversation and continues what was interrupted. See docs/guides/acp.md for how to
configure editors.`,
		Example: `  chorus acp
  chorus acp -m anthropic/claude-sonnet-4-5 --permissions guarded
  chorus acp --server http://127.0.0.1:8420
  {"agent_servers": {"Chorus": {"command": "chorus", "args": ["acp"]}}}    in Zed's settings.json`,
		Args: exactly(0),
	}
	o := &runsetup.SessionOptions{}
	c.serverFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.Agent, "agent", "a", "", "agent to talk to (default "+chat.DefaultAgent+")")
	f.StringVarP(&o.Provider, "provider", "p", "", "model provider")
	f.StringVarP(&o.Model, "model", "m", "", "model, as provider/model or a bare name (default: depends on the keys that are set)")
	f.StringVar(&o.Profile, "permissions", "", "permission profile to start with (default standard); the editor can choose another")
	f.StringVar(&o.Sandbox, "sandbox", "", "where commands run (default: as configured)")
	f.StringVar(&o.Mode, "mode", "", "mode to start with: "+chat.ModeWords("or"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := twoSignals(cmd.Context(), c, "")
		defer stop()
		o.CanAsk, o.Warn = true, c.warn
		serve := func(host acp.Host, log *slog.Logger) error {
			return acp.Serve(ctx, host, c.console.In, c.console.Out, acp.Options{Version: version, Log: log})
		}
		if c.remote() {
			if _, err := client.ParseURL(c.server.url); err != nil {
				return &usage.Error{Err: err}
			}
			at := &editors.Connection{Dial: c.dial}
			defer at.Close()
			to := cli.Connection{Executor: at, Server: c.server.url, Close: func() error { return nil }}
			return serve(&editors.Remote{At: at, Options: *o, Server: c.server.url, TokenFile: c.server.tokenFile,
				OpenSession: func(ctx context.Context, o runsetup.SessionOptions) (*remote.Session, error) {
					options, err := c.serverSessionOptions(o)
					if err != nil {
						return nil, err
					}
					options.AtOnce = true // the editor names it by its id
					return c.openOnServer(ctx, to, options, false)
				}}, nil)
		}
		return c.with(ctx, func(a *app.App) error {
			return serve(&editors.Local{App: a, Options: *o, Warn: c.warn}, a.Log)
		})
	}
	return cmd
}
