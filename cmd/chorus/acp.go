package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/client"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/runsetup"
	"chorus/internal/transport/acp"
	"chorus/internal/transport/repl/local"
	"chorus/internal/usage"
)

func (c *program) acpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "An agent for editors (Zed, Neovim, JetBrains) on standard input and output",
		Long: `Speaks the Agent Client Protocol on standard input and output, for an editor that
starts it as a process. Sessions are those of chorus chat: each can be gone on with
in the terminal, and those of the terminal can be loaded in the editor.

Kill it, or the editor, whenever you like: a session that is loaded again shows what
was said and goes on with what was cut off. docs/guides/acp.md has the configuration
of editors.`,
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
	f.StringVarP(&o.Provider, "provider", "p", "", "whose model")
	f.StringVarP(&o.Model, "model", "m", "", "model, as provider/model or bare (default: by the keys that are set)")
	f.StringVar(&o.Profile, "permissions", "", "permission profile to begin with (default standard); the editor can choose another")
	f.StringVar(&o.Sandbox, "sandbox", "", "where commands run (default: as configured)")
	f.StringVar(&o.Mode, "mode", "", "mode to begin with: plan, review, implement or verify")
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
			at := &serverConnection{dial: c.dial}
			defer at.Close()
			return serve(&remoteEditor{c: c, at: at, options: *o}, nil)
		}
		return c.with(ctx, func(a *app.App) error {
			return serve(&localEditor{c: c, app: a, options: *o}, a.Log)
		})
	}
	return cmd
}

// localEditor has the sessions of this home for an editor.
type localEditor struct {
	c       *program
	app     *app.App
	options runsetup.SessionOptions
}

var _ acp.Host = (*localEditor)(nil)

func (e *localEditor) Open(ctx context.Context, dir, id string, servers []acp.Server) (acp.Session, []string, error) {
	o := e.options
	o.Dir, o.ID = dir, id
	if id != "" {
		row, err := e.app.Service.FindThread(ctx, id)
		switch {
		case errors.Is(err, journal.ErrUnknown):
			return nil, nil, &acp.ErrNoSession{ID: id}
		case err != nil:
			return nil, nil, err
		}
		o.Agent = row.Agent
	}
	var refused []string
	o.Servers, refused = e.servers(servers)
	// The session outlives the request that opened it.
	s, err := e.app.Sessions.OpenSession(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, nil, err
	}
	for _, sentence := range refused {
		e.c.warn(sentence)
	}
	made := &localEditorSession{Session: s, editor: e, profile: s.Info().Profile, closed: make(chan struct{})}
	go made.warn()
	return made, refused, nil
}

// servers are the editor's MCP servers as far as they can be used.
func (e *localEditor) servers(list []acp.Server) (out []config.MCPServer, refused []string) {
	bot, err := e.app.Settings.Bot(e.options.Agent)
	if err != nil {
		bot = e.app.Shared
	}
	for _, s := range list {
		switch {
		case s.Type == "acp":
			refused = append(refused, fmt.Sprintf("The MCP server %s is not used: servers inside of the editor cannot be reached; give one with a command or a url.", s.Name))
			continue
		case slices.ContainsFunc(bot.MCPServers, func(own config.MCPServer) bool { return own.Name == s.Name }):
			refused = append(refused, fmt.Sprintf("The MCP server %s of the editor is not used: the configuration of Chorus has one of that name.", s.Name))
			continue
		}
		out = append(out, config.MCPServer{Name: s.Name, Type: s.Type, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers,
			StartTimeout: 30 * time.Second, CallTimeout: time.Minute})
	}
	return out, refused
}

func (e *localEditor) List(ctx context.Context, dir, cursor string) ([]acp.Listed, string, error) {
	return listFor(ctx, e.app.Service.GuestOperations(), e.app.Service.LocalCaller(), dir, cursor, func(s operations.Session) bool {
		thread, err := chat.ParseThreadID(s.Thread)
		return err == nil && thread.Transport() == "cli"
	})
}

func (e *localEditor) Models(ctx context.Context) []acp.Choice {
	return modelsFor(ctx, e.app.Service.GuestOperations(), e.app.Service.LocalCaller())
}

// listFor gives a page of sessions; of pages without any that are meant the next is looked at.
func listFor(ctx context.Context, to operation.Executor, by operation.Caller, dir, cursor string, meant func(operations.Session) bool) ([]acp.Listed, string, error) {
	for {
		page, err := operations.ListSessions.Call(ctx, to, by, operations.SessionQuery{Cursor: cursor, Limit: 100})
		if err != nil {
			return nil, "", err
		}
		var out []acp.Listed
		for _, s := range page.Items {
			if meant(s) && (dir == "" || s.WorkspacePath == dir) {
				out = append(out, acp.Listed{ID: s.ID, Title: s.Title, Dir: s.WorkspacePath, MovedAt: s.MovedAt.UTC().Format(time.RFC3339)})
			}
		}
		if cursor = page.Next; len(out) > 0 || cursor == "" {
			return out, cursor, nil
		}
	}
}

// modelsFor are the models that could answer now.
func modelsFor(ctx context.Context, to operation.Executor, by operation.Caller) []acp.Choice {
	list, err := operations.ListModels.Call(ctx, to, by, struct{}{})
	if err != nil {
		return nil
	}
	var out []acp.Choice
	for _, m := range list.Items {
		if m.Ready {
			out = append(out, acp.Choice{ID: m.Name, Name: m.Name})
		}
	}
	return out
}

// localEditorSession is a conversation on the engine of this process.
type localEditorSession struct {
	*local.Session
	editor  *localEditor
	profile string // that the session began with
	closed  chan struct{}
}

var _ acp.Session = (*localEditorSession)(nil)

func (s *localEditorSession) Head() int64 { return s.Start }

// warn says on standard error, which editors keep as a log, what is no part of the conversation.
func (s *localEditorSession) warn() {
	for {
		select {
		case r := <-s.Remarks():
			s.editor.c.warn(r.Text)
		case <-s.closed:
			return
		}
	}
}

func (s *localEditorSession) Close() error {
	close(s.closed)
	return s.Session.Close()
}

func (s *localEditorSession) GoOn() { s.Session.GoOn() }

// lookingModes are the modes that say what the agent is after.
var lookingModes = []acp.Choice{{ID: "plan", Name: "Plan", About: "looks and plans, changes nothing"}, {ID: "review", Name: "Review", About: "reads and judges, changes nothing"},
	{ID: "implement", Name: "Implement", About: "works by a plan"}, {ID: "verify", Name: "Verify", About: "looks and runs commands to check, changes no files"}}

// Modes are the permission profiles and, on the profile that the session began with, the modes that only look.
func (s *localEditorSession) Modes() ([]acp.Choice, string) {
	info := s.Info()
	names := append([]string{"standard"}, slices.DeleteFunc(permit.Presets(), func(n string) bool { return n == "standard" })...)
	if bot, err := s.editor.app.Settings.Bot(info.Agent); err == nil {
		for name := range bot.Profiles {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		slices.Sort(names[len(permit.Presets()):])
	}
	for _, name := range []string{s.profile, info.Profile} {
		if !slices.Contains(names, name) { // a file of rules
			names = append(names, name)
		}
	}
	out := modeChoices(names)
	if info.Mode != "" {
		return out, info.Mode
	}
	return out, info.Profile
}

// modeChoices are permission profiles and the modes that no profile is called by.
func modeChoices(profiles []string) (out []acp.Choice) {
	for _, name := range profiles {
		out = append(out, acp.Choice{ID: name, Name: strings.ToUpper(name[:1]) + name[1:], About: permit.About(name)})
	}
	for _, m := range lookingModes {
		if !slices.Contains(profiles, m.ID) {
			out = append(out, m)
		}
	}
	return out
}

// SetMode implements acp.Session: for what is said from now on.
func (s *localEditorSession) SetMode(_ context.Context, id string) error {
	all, _ := s.Modes()
	if !slices.ContainsFunc(all, func(c acp.Choice) bool { return c.ID == id }) {
		return fmt.Errorf("there is no mode %q", id)
	}
	profile, mode := id, ""
	if runsetup.ValidMode(id) == nil && !permit.IsPreset(id) {
		if bot, err := s.editor.app.Settings.Bot(s.Info().Agent); err != nil || !hasProfile(bot, id) {
			profile, mode = s.profile, id
		}
	}
	if _, err := s.editor.app.Setup.Profile(profile); err != nil {
		return err
	}
	s.Choose(profile, mode)
	return nil
}

func hasProfile(bot *config.Bot, name string) bool { _, ok := bot.Profiles[name]; return ok }
