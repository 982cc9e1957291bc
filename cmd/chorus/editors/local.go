// Package editors offers the sessions of this home, or of a server, to editors that speak the Agent Client Protocol.
package editors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/runsetup"
	"chorus/internal/transport/acp"
	"chorus/internal/transport/repl/local"
)

// Local offers the sessions of this home to an editor.
type Local struct {
	App     *app.App
	Options runsetup.SessionOptions
	Warn    func(string)
}

var _ acp.Host = (*Local)(nil)

// Open implements acp.Host.
func (e *Local) Open(ctx context.Context, dir, id string, servers []acp.Server) (acp.Session, []string, error) {
	o := e.Options
	o.Dir, o.ID = dir, id
	if id != "" {
		row, err := e.App.Service.FindThread(ctx, id)
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
	s, err := e.App.Sessions.OpenSession(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, nil, err
	}
	for _, sentence := range refused {
		e.Warn(sentence)
	}
	made := &localSession{Session: s, editor: e, profile: s.Info().Profile, closed: make(chan struct{})}
	go made.warn()
	return made, refused, nil
}

// servers splits the editor's MCP servers into those that can be used and the reasons why others cannot.
func (e *Local) servers(list []acp.Server) (out []config.MCPServer, refused []string) {
	bot, err := e.App.Settings.Bot(e.Options.Agent)
	if err != nil {
		bot = e.App.Shared
	}
	for _, s := range list {
		switch {
		case s.Type == "acp":
			refused = append(refused, fmt.Sprintf("The MCP server %s is not used, because servers inside the editor cannot be reached. Configure it with a command or a url.", s.Name))
			continue
		case slices.ContainsFunc(bot.MCPServers, func(own config.MCPServer) bool { return own.Name == s.Name }):
			refused = append(refused, fmt.Sprintf("The editor's MCP server %s is not used, because Chorus's configuration has one with that name.", s.Name))
			continue
		}
		out = append(out, config.MCPServer{Name: s.Name, Type: s.Type, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers,
			StartTimeout: 30 * time.Second, CallTimeout: time.Minute})
	}
	return out, refused
}

// List implements acp.Host.
func (e *Local) List(ctx context.Context, dir, cursor string) ([]acp.Listed, string, error) {
	return listFor(ctx, e.App.Service.GuestOperations(), e.App.Service.LocalCaller(), dir, cursor, func(s operations.Session) bool {
		thread, err := chat.ParseThreadID(s.Thread)
		return err == nil && thread.Transport() == "cli"
	})
}

// Models implements acp.Host.
func (e *Local) Models(ctx context.Context) []acp.Choice {
	return modelsFor(ctx, e.App.Service.GuestOperations(), e.App.Service.LocalCaller())
}

// listFor returns a page of sessions. If a page contains no matching session, it tries the next one.
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

// modelsFor returns the models that could answer now.
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

// localSession is a conversation on the engine of this process.
type localSession struct {
	*local.Session
	editor  *Local
	profile string // the session's initial profile
	closed  chan struct{}
}

var _ acp.Session = (*localSession)(nil)

func (s *localSession) Head() int64 { return s.Start }

// warn prints remarks that are not part of the conversation to standard error, which editors keep as a log.
func (s *localSession) warn() {
	for {
		select {
		case r := <-s.Remarks():
			s.editor.Warn(r.Text)
		case <-s.closed:
			return
		}
	}
}

func (s *localSession) Close() error {
	close(s.closed)
	return s.Session.Close()
}

func (s *localSession) GoOn() { s.Session.GoOn() }

// Modes returns the permission profiles and, if the session still has its initial profile, the other modes.
func (s *localSession) Modes() ([]acp.Choice, string) {
	info := s.Info()
	names := append([]string{"standard"}, slices.DeleteFunc(permit.Presets(), func(n string) bool { return n == "standard" })...)
	if bot, err := s.editor.App.Settings.Bot(info.Agent); err == nil {
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

// modeChoices returns the permission profiles, and the modes whose names are not also profiles.
func modeChoices(profiles []string) (out []acp.Choice) {
	for _, name := range profiles {
		out = append(out, choice(name, permit.About(name)))
	}
	for _, m := range chat.Modes() {
		if !slices.Contains(profiles, m.Name) {
			out = append(out, choice(m.Name, m.About))
		}
	}
	return out
}

// choice is a profile or a mode as an editor lists it.
func choice(name, about string) acp.Choice {
	return acp.Choice{ID: name, Name: strings.ToUpper(name[:1]) + name[1:], About: about}
}

// SetMode implements acp.Session. It applies to later prompts.
func (s *localSession) SetMode(_ context.Context, id string) error {
	all, _ := s.Modes()
	if !slices.ContainsFunc(all, func(c acp.Choice) bool { return c.ID == id }) {
		return fmt.Errorf("there is no mode %q", id)
	}
	profile, mode := id, ""
	if runsetup.ValidMode(id) == nil && !permit.IsPreset(id) {
		if bot, err := s.editor.App.Settings.Bot(s.Info().Agent); err != nil || !hasProfile(bot, id) {
			profile, mode = s.profile, id
		}
	}
	if _, err := s.editor.App.Setup.Profile(profile); err != nil {
		return err
	}
	s.Choose(profile, mode)
	return nil
}

func hasProfile(bot *config.Bot, name string) bool { _, ok := bot.Profiles[name]; return ok }
