package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/transport/repl"
)

// agent answers an editor's requests.
type agent struct {
	ctx     context.Context // until the editor leaves
	host    Host
	version string
	out     *output
	log     *slog.Logger
	conn    *sdk.AgentSideConnection

	mu       sync.Mutex
	sessions map[string]*session
}

var (
	_ sdk.Agent       = (*agent)(nil)
	_ sdk.AgentLoader = (*agent)(nil)
)

// close ends all sessions. Current runs are left alone: they continue when their session is loaded.
func (a *agent) close() error {
	a.mu.Lock()
	all := a.sessions
	a.sessions = map[string]*session{}
	a.mu.Unlock()
	var errs []error
	for _, s := range all {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

func (a *agent) Initialize(_ context.Context, p sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	title := "Chorus"
	return sdk.InitializeResponse{
		ProtocolVersion: min(p.ProtocolVersion, sdk.ProtocolVersionNumber),
		AgentInfo:       &sdk.Implementation{Name: "chorus", Title: &title, Version: cmp.Or(a.version, "dev")},
		AuthMethods:     a.authMethods(),
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: sdk.PromptCapabilities{Image: true, EmbeddedContext: true},
			McpCapabilities:    sdk.McpCapabilities{Http: true, Sse: true},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{}, Resume: &sdk.SessionResumeCapabilities{},
				Close: &sdk.SessionCloseCapabilities{}},
		},
	}, nil
}

// authMethods are the ways to sign in; none if the process runs as the person, with their home.
func (a *agent) authMethods() []sdk.AuthMethod {
	out := []sdk.AuthMethod{}
	if by, ok := a.host.(Authenticator); ok {
		for _, c := range by.AuthMethods() {
			out = append(out, sdk.AuthMethod{Agent: &sdk.AuthMethodAgent{Id: c.ID, Name: c.Name, Description: optional(c.About)}})
		}
	}
	return out
}

// Authenticate signs the person in if that is needed.
func (a *agent) Authenticate(ctx context.Context, p sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	by, ok := a.host.(Authenticator)
	if !ok {
		return sdk.AuthenticateResponse{}, invalid("there is nothing to sign in to: the agent runs with the home of this user")
	}
	if !slices.ContainsFunc(by.AuthMethods(), func(c Choice) bool { return c.ID == string(p.MethodId) }) {
		return sdk.AuthenticateResponse{}, invalid("there is no authentication method %q", p.MethodId)
	}
	return sdk.AuthenticateResponse{}, refusal(by.Authenticate(ctx, string(p.MethodId)))
}

// authRequired is the protocol's code for a person who must sign in first.
const authRequired = -32000

// refusal converts the error of a request; nil: there was none.
func refusal(err error) error {
	var auth *AuthError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &auth):
		return &sdk.RequestError{Code: authRequired, Message: "Authentication required: " + auth.Text}
	}
	return invalid("%v", err)
}

func (a *agent) NewSession(ctx context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	s, err := a.open(ctx, p.Cwd, "", p.McpServers, true)
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	return sdk.NewSessionResponse{SessionId: s.id(), Modes: s.modes(), ConfigOptions: a.options(ctx, s)}, nil
}

// LoadSession sends the whole history before it answers, and then continues interrupted work.
func (a *agent) LoadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	s, err := a.reopen(ctx, p.Cwd, p.SessionId, p.McpServers, true)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	return sdk.LoadSessionResponse{Meta: answerTo(p.SessionId), Modes: s.modes(), ConfigOptions: a.options(ctx, s)}, nil
}

// ResumeSession is LoadSession for an editor that still shows the history.
func (a *agent) ResumeSession(ctx context.Context, p sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	s, err := a.reopen(ctx, p.Cwd, p.SessionId, p.McpServers, false)
	if err != nil {
		return sdk.ResumeSessionResponse{}, err
	}
	return sdk.ResumeSessionResponse{Meta: answerTo(p.SessionId), Modes: s.modes(), ConfigOptions: a.options(ctx, s)}, nil
}

// answerTo names the session in an answer that has no field for it, for output.
func answerTo(id sdk.SessionId) map[string]any { return map[string]any{"sessionId": string(id)} }

// reopen opens an existing session.
func (a *agent) reopen(ctx context.Context, dir string, id sdk.SessionId, servers []sdk.McpServer, show bool) (*session, error) {
	if id == "" {
		return nil, invalid("sessionId is empty")
	}
	return a.open(ctx, dir, string(id), servers, show)
}

// open opens a session and follows it. With show, it sends the history.
func (a *agent) open(ctx context.Context, dir, id string, servers []sdk.McpServer, show bool) (*session, error) {
	if !filepath.IsAbs(dir) {
		return nil, invalid("cwd must be an absolute path, not %q", dir)
	}
	a.drop(id) // opened a second time: the editor may have forgotten its contents
	opened, refused, err := a.host.Open(ctx, dir, id, serversOf(servers))
	var unknown *ErrNoSession
	switch {
	case errors.As(err, &unknown):
		return nil, &sdk.RequestError{Code: -32002, Message: err.Error()}
	case err != nil:
		return nil, refusal(err)
	}
	s := newSession(a, opened, opened.Head(), show)
	a.mu.Lock()
	a.sessions[opened.ID()] = s
	a.mu.Unlock()
	s.start()
	select {
	case <-s.caughtUp:
	case <-s.ended:
		return nil, &sdk.RequestError{Code: -32603, Message: s.failure().Error()}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a.out.whenAnswered(opened.ID(), func() {
		s.send(sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: s.commands()}})
		for _, sentence := range refused {
			s.send(sdk.UpdateAgentThoughtText(sentence + "\n"))
		}
		s.goOn()
	})
	return s, nil
}

// drop closes a session if it is open.
func (a *agent) drop(id string) {
	a.mu.Lock()
	s := a.sessions[id]
	delete(a.sessions, id)
	a.mu.Unlock()
	if s != nil {
		if err := s.close(); err != nil {
			a.log.Warn("close a session", "session", id, "error", err)
		}
	}
}

func (a *agent) find(id sdk.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[string(id)]; s != nil {
		return s, nil
	}
	return nil, &sdk.RequestError{Code: -32002, Message: fmt.Sprintf("session %s is not open; load it with session/load", id)}
}

func (a *agent) CloseSession(_ context.Context, p sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	s, err := a.find(p.SessionId)
	if err != nil {
		return sdk.CloseSessionResponse{}, err
	}
	s.cancel(a.ctx)
	a.drop(string(p.SessionId))
	return sdk.CloseSessionResponse{}, nil
}

func (a *agent) ListSessions(ctx context.Context, p sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	var dir, cursor string
	if p.Cwd != nil {
		dir = *p.Cwd
	}
	if p.Cursor != nil {
		cursor = *p.Cursor
	}
	list, next, err := a.host.List(ctx, dir, cursor)
	if err != nil {
		return sdk.ListSessionsResponse{}, refusal(err)
	}
	out := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	for _, l := range list {
		out.Sessions = append(out.Sessions, sdk.SessionInfo{SessionId: sdk.SessionId(l.ID), Cwd: l.Dir, Title: optional(l.Title), UpdatedAt: optional(l.MovedAt)})
	}
	out.NextCursor = optional(next)
	return out, nil
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (a *agent) Cancel(_ context.Context, p sdk.CancelNotification) error {
	s, err := a.find(p.SessionId)
	if err != nil {
		return err
	}
	return s.cancel(a.ctx)
}

func (a *agent) SetSessionMode(ctx context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	s, err := a.find(p.SessionId)
	if err != nil {
		return sdk.SetSessionModeResponse{}, err
	}
	if err := s.inner.SetMode(ctx, string(p.ModeId)); err != nil {
		return sdk.SetSessionModeResponse{}, refusal(err)
	}
	return sdk.SetSessionModeResponse{}, nil
}

// The settings that an editor shows next to a session.
const (
	modeOption  = "mode"
	modelOption = "model"
)

// options are the mode and the model in the form of settings, which newer editors show instead of modes.
func (a *agent) options(ctx context.Context, s *session) []sdk.SessionConfigOption {
	var out []sdk.SessionConfigOption
	add := func(id, name string, category sdk.SessionConfigOptionCategory, all []Choice, now string) {
		if len(all) < 2 {
			return
		}
		var list sdk.SessionConfigSelectOptionsUngrouped
		found := false
		for _, c := range all {
			list = append(list, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(c.ID), Name: c.Name, Description: optional(c.About)})
			found = found || c.ID == now
		}
		if !found {
			list = append(list, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(now), Name: now})
		}
		option := sdk.NewSessionConfigOptionSelect(sdk.SessionConfigValueId(now), sdk.SessionConfigSelectOptions{Ungrouped: &list})
		option.Select.Id, option.Select.Name, option.Select.Category = sdk.SessionConfigId(id), name, &category
		out = append(out, option)
	}
	all, now := s.inner.Modes()
	add(modeOption, "Mode", sdk.SessionConfigOptionCategoryMode, all, now)
	add(modelOption, "Model", sdk.SessionConfigOptionCategoryModel, a.host.Models(ctx), s.inner.Info().Model)
	return out
}

func (a *agent) SetSessionConfigOption(ctx context.Context, p sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	if p.ValueId == nil {
		return sdk.SetSessionConfigOptionResponse{}, invalid("mode and model take the id of a value")
	}
	s, err := a.find(p.ValueId.SessionId)
	if err != nil {
		return sdk.SetSessionConfigOptionResponse{}, err
	}
	value := string(p.ValueId.Value)
	switch p.ValueId.ConfigId {
	case modeOption:
		err = s.inner.SetMode(ctx, value)
	case modelOption:
		_, err = s.inner.Command(ctx, "/model "+value)
	default:
		err = fmt.Errorf("there is no option %q; there are mode and model", p.ValueId.ConfigId)
	}
	if err != nil {
		return sdk.SetSessionConfigOptionResponse{}, refusal(err)
	}
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: a.options(ctx, s)}, nil
}

func (a *agent) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	s, err := a.find(p.SessionId)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	return s.prompt(ctx, p.Prompt)
}

// availableCommands are the commands for prompts that begin with a slash.
func availableCommands(ctx context.Context, s Session) []sdk.AvailableCommand {
	var out []sdk.AvailableCommand
	for _, c := range repl.Commands(ctx, s) {
		switch c.Name {
		case "help", "steer", "stop", "exit", "resume", "attach": // the editor has its own
			continue
		}
		made := sdk.AvailableCommand{Name: c.Name, Description: c.About}
		if c.Args != "" {
			made.Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: strings.Trim(c.Args, "[]")}}
		}
		out = append(out, made)
	}
	return out
}

func serversOf(list []sdk.McpServer) []Server {
	var out []Server
	named := func(pairs []sdk.HttpHeader) map[string]string {
		m := map[string]string{}
		for _, p := range pairs {
			m[p.Name] = p.Value
		}
		return m
	}
	for _, s := range list {
		switch {
		case s.Stdio != nil:
			env := map[string]string{}
			for _, v := range s.Stdio.Env {
				env[v.Name] = v.Value
			}
			out = append(out, Server{Name: s.Stdio.Name, Type: "stdio", Command: s.Stdio.Command, Args: s.Stdio.Args, Env: env})
		case s.Http != nil:
			out = append(out, Server{Name: s.Http.Name, Type: "http", URL: s.Http.Url, Headers: named(s.Http.Headers)})
		case s.Sse != nil:
			out = append(out, Server{Name: s.Sse.Name, Type: "sse", URL: s.Sse.Url, Headers: named(s.Sse.Headers)})
		case s.Acp != nil:
			out = append(out, Server{Name: s.Acp.Name, Type: "acp"})
		}
	}
	return out
}

// invalid is an error for an editor: some show the message, some the data.
func invalid(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	data, err := json.Marshal(text)
	if err != nil {
		data = nil
	}
	return &sdk.RequestError{Code: -32602, Message: text, Data: json.RawMessage(data)}
}
