package api

import (
	"context"
	"net/http"
	"net/url"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/transport/http/rest"
)

// NewSession is the body that makes a session.
type NewSession struct {
	WorkspacePath string `json:"workspacePath,omitempty" maxLen:"4096" doc:"the folder it works in; left out: one of its own"`
	Agent         string `json:"agent,omitempty" maxLen:"64" doc:"who answers"`
	Provider      string `json:"provider,omitempty" maxLen:"64"`
	Model         string `json:"model,omitempty" maxLen:"200" doc:"provider/model, or a model's name alone"`
	Permissions   string `json:"permissions,omitempty" maxLen:"64" doc:"the profile that says what may be done without asking"`
	Sandbox       string `json:"sandbox,omitempty" maxLen:"32" doc:"host, bwrap or docker"`
	Mode          string `json:"mode,omitempty" maxLen:"32" doc:"plan, review, implement or verify"`
	Title         string `json:"title,omitempty" maxLen:"200"`
	MaxIterations int    `json:"maxIterations,omitempty" min:"0" max:"10000" doc:"how many rounds a run may take; 0: the agent's"`
}

// Made is a session that was made or taken up.
type Made struct {
	SessionID string          `json:"sessionId"`
	Session   command.Session `json:"session"`
}

// Location implements rest.Locator.
func (m Made) Location() string { return "/api/sessions/" + url.PathEscape(m.SessionID) }

var _ rest.Locator = Made{}

// Words are the body of a message.
type Words struct {
	Message     string   `json:"message,omitempty" maxLen:"1000000" doc:"what is said; may be left out where something is attached"`
	Attachments []string `json:"attachments,omitempty" maxItems:"100" doc:"ids of uploads"`
}

// Steering is the body of words for the run that is on.
type Steering struct {
	Message     string   `json:"message,omitempty" maxLen:"1000000" doc:"what is said; may be left out where something is attached"`
	Attachments []string `json:"attachments,omitempty" maxItems:"100" doc:"ids of uploads"`
	Mode        string   `json:"mode,omitempty" enum:"inject,interrupt" doc:"after the tools that run, or instead of those that wait; left out: inject"`
}

// Stop is the body of an abort.
type Stop struct {
	All bool `json:"all,omitempty" doc:"refuse what waits, too"`
}

// Stopped says what an abort found.
type Stopped struct {
	Aborted bool `json:"aborted" doc:"false: nothing was running"`
}

// TakeUp is the body of a resume.
type TakeUp struct {
	WorkspacePath string `json:"workspacePath" minLen:"1" maxLen:"4096" doc:"the folder with the session's log"`
	Provider      string `json:"provider,omitempty" maxLen:"64"`
	Model         string `json:"model,omitempty" maxLen:"200"`
	Mode          string `json:"mode,omitempty" maxLen:"32" pattern:"^(full|summary|last-[0-9]+)?$" doc:"how much of it: full, last-N or summary"`
}

// ForkAt is the body of a fork.
type ForkAt struct {
	AtSeq int64 `json:"atSeq" min:"1" max:"9007199254740991" doc:"the last number that the fork shares"`
}

// oneSession is the path of everything below a session.
type oneSession struct {
	ID string `path:"id" maxLen:"1024" doc:"the session's id"`
}

const (
	readScope    = string(command.Read)
	chatScope    = string(command.Chat)
	approveScope = string(command.Approve)
	adminScope   = string(command.Admin)
)

func (a *API) sessionOps() []rest.Operation {
	const tag = "sessions"
	return []rest.Operation{
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions", ID: "createSession", Tag: tag, Scope: chatScope, Status: http.StatusCreated, Creates: true,
			Summary: "Make a session", Errors: []int{404, 409}}, a.createSession),
		rest.Op(rest.Route{Method: "GET", Path: "/api/sessions", ID: "listSessions", Tag: tag, Scope: readScope,
			Summary: "List sessions, the ones that moved last first"}, a.listSessions),
		rest.Op(rest.Route{Method: "GET", Path: "/api/sessions/{id}", ID: "getSession", Tag: tag, Scope: readScope,
			Summary: "Show a session with its runs", Errors: []int{404}}, func(ctx context.Context, in oneSession) (command.Session, error) {
			return a.service.GetSession(ctx, by(ctx), in.ID)
		}),
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions/{id}/chat", ID: "chat", Tag: tag, Scope: chatScope, Status: http.StatusAccepted, Creates: true,
			Summary: "Say something", Doc: "The answer comes over the stream.", Errors: []int{404, 409}, MaxBody: 8 << 20}, a.chat),
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions/{id}/steer", ID: "steer", Tag: tag, Scope: chatScope, Status: http.StatusAccepted, Creates: true,
			Summary: "Say something to the run that is on", Doc: "Where nothing runs it is a message like any other.", Errors: []int{404, 409}, MaxBody: 8 << 20}, a.steer),
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions/{id}/abort", ID: "abort", Tag: tag, Scope: chatScope, Status: http.StatusAccepted,
			Summary: "Stop the run that is on", Errors: []int{404, 409}}, a.abort),
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions/{id}/resume", ID: "resume", Tag: tag, Scope: chatScope,
			Summary: "Take up a session from its log", Errors: []int{404, 409}}, a.resume),
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions/{id}/fork", ID: "fork", Tag: tag, Scope: chatScope, Status: http.StatusCreated, Creates: true,
			Summary: "Make a session that shares this one's beginning", Errors: []int{404, 409}}, a.fork),
		rest.Op(rest.Route{Method: "POST", Path: "/api/sessions/{id}/attachments", ID: "attach", Tag: tag, Scope: chatScope, Status: http.StatusCreated, Creates: true,
			Summary: "Upload a file that a later message names", Doc: "The bytes as they are, or one file of a form.", Errors: []int{404, 409}, MaxBody: maxUpload}, a.attach),
	}
}

// maxUpload is a little more than the largest file that is kept, for the form around it.
const maxUpload = 26 << 20

func (a *API) createSession(ctx context.Context, in struct{ Body *NewSession }) (Made, error) {
	b := NewSession{}
	if in.Body != nil {
		b = *in.Body
	}
	s, err := a.service.CreateSession(ctx, by(ctx), command.NewSession{WorkspacePath: b.WorkspacePath, Agent: b.Agent, Provider: b.Provider, Model: b.Model,
		Permissions: b.Permissions, Sandbox: b.Sandbox, Mode: b.Mode, Title: b.Title, MaxIterations: b.MaxIterations, Key: rest.Key(ctx)})
	return Made{s.ID, s}, err
}

func (a *API) listSessions(ctx context.Context, in struct {
	Status string `query:"status" enum:"idle,running,waiting"`
	Agent  string `query:"agent" maxLen:"64"`
	Search string `query:"search" maxLen:"200" doc:"words of the title"`
	Cursor string `query:"cursor" maxLen:"1024" doc:"next of the page before"`
	Limit  int    `query:"limit" min:"1" max:"200"`
}) (command.List[command.Session], error) {
	return paged(in.Cursor, func(cursor string) (command.List[command.Session], error) {
		return a.service.ListSessions(ctx, by(ctx), command.SessionQuery{Status: in.Status, Agent: in.Agent, Search: in.Search, Cursor: cursor, Limit: in.Limit})
	})
}

// paged opens the cursor that comes in and closes the one that goes out.
func paged[T any](cursor string, list func(cursor string) (command.List[T], error)) (command.List[T], error) {
	text, err := rest.ReadCursor(cursor)
	if err != nil {
		return command.List[T]{}, err
	}
	page, err := list(text)
	page.Next = rest.Cursor(page.Next)
	return page, err
}

func (a *API) chat(ctx context.Context, in struct {
	ID   string `path:"id" maxLen:"1024" doc:"the session's id"`
	Body Words
}) (command.Said, error) {
	said, err := a.service.Say(ctx, by(ctx), in.ID, command.Words{Message: in.Body.Message, Attachments: in.Body.Attachments, Key: rest.Key(ctx)})
	return taken(said, err)
}

func (a *API) steer(ctx context.Context, in struct {
	ID   string `path:"id" maxLen:"1024" doc:"the session's id"`
	Body Steering
}) (command.Said, error) {
	said, err := a.service.Steer(ctx, by(ctx), in.ID, command.Words{Message: in.Body.Message, Attachments: in.Body.Attachments,
		Mode: chat.Intake(in.Body.Mode), Key: rest.Key(ctx)})
	return taken(said, err)
}

// taken turns words that were refused into an error.
func taken(said command.Said, err error) (command.Said, error) {
	if err == nil && said.Refused != "" {
		err = command.Errorf(command.Busy, "%s", said.Refused)
	}
	return said, err
}

func (a *API) abort(ctx context.Context, in struct {
	ID   string `path:"id" maxLen:"1024" doc:"the session's id"`
	Body *Stop
}) (Stopped, error) {
	aborted, err := a.service.Abort(ctx, by(ctx), in.ID, in.Body != nil && in.Body.All)
	return Stopped{aborted}, err
}

func (a *API) resume(ctx context.Context, in struct {
	ID   string `path:"id" maxLen:"1024" doc:"the session's id"`
	Body TakeUp
}) (Made, error) {
	s, err := a.service.ResumeSession(ctx, by(ctx), in.ID, command.Resume(in.Body))
	return Made{s.ID, s}, err
}

func (a *API) fork(ctx context.Context, in struct {
	ID   string `path:"id" maxLen:"1024" doc:"the session's id"`
	Body ForkAt
}) (Made, error) {
	s, err := a.service.Fork(ctx, by(ctx), in.ID, in.Body.AtSeq)
	return Made{s.ID, s}, err
}

func (a *API) attach(ctx context.Context, in struct {
	ID   string `path:"id" maxLen:"1024" doc:"the session's id"`
	Name string `query:"name" maxLen:"255" doc:"the file's name, where no form gives one"`
	Body rest.File
}) (command.Attachment, error) {
	name := in.Body.Name
	if in.Name != "" {
		name = in.Name
	}
	if name == "" {
		name = "file"
	}
	return a.service.Attach(ctx, by(ctx), in.ID, name, in.Body)
}
