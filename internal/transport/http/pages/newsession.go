package pages

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

// wishes are the text and the choices for a new conversation.
type wishes struct {
	Message, Agent, Model, Permissions, Folder string
}

// newSession shows the form for a new conversation. From another conversation, it keeps that one's folder.
func (p *Pages) newSession(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	asked := wishes{Agent: r.URL.Query().Get("agent")}
	if from := r.URL.Query().Get("from"); from != "" {
		if s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: from}); err == nil && display.Folder(s.WorkspacePath) == s.WorkspacePath {
			asked.Folder = s.WorkspacePath // a folder of its own cannot be shared
		}
	}
	return p.showNew(w, r, by, http.StatusOK, asked, "")
}

// showNew shows the form with its contents, and an error if there was one.
func (p *Pages) showNew(w http.ResponseWriter, r *http.Request, by operation.Caller, status int, asked wishes, problem string) error {
	agents, err := operation.CallWhole(r.Context(), operations.ListAgents, p.Executor, by, operations.AgentQuery{})
	if err != nil {
		return err
	}
	c := p.choose(r, by)
	f := p.layout(r, by, "New conversation")
	f.Script = "new.js"
	return p.render(w, status, "new.html", map[string]any{"Layout": f, "Agents": agents, "Models": c.Models, "Profiles": c.Profiles, "Folders": p.recentFolders(r, by), "Asked": asked, "Problem": problem})
}

// mostFolders limits the folders that are offered for a new conversation.
const mostFolders = 12

// recentFolders returns the folders that the caller's newest conversations work in, except those of their own.
func (p *Pages) recentFolders(r *http.Request, by operation.Caller) []string {
	list, err := operations.ListSessions.Call(r.Context(), p.Executor, by, operations.SessionQuery{Kind: "talk", Limit: 100})
	if err != nil {
		return nil // any folder can be typed
	}
	var out []string
	for _, s := range list.Items {
		if dir := s.WorkspacePath; dir != "" && display.Folder(dir) == dir && !slices.Contains(out, dir) && len(out) < mostFolders {
			out = append(out, dir)
		}
	}
	return out
}

// createSession creates a session and sends its first message, if there is one. Errors are shown in the form, with everything that was typed.
func (p *Pages) createSession(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	asked := wishes{Message: strings.TrimSpace(r.PostFormValue("message")), Agent: r.PostFormValue("agent"), Model: r.PostFormValue("model"),
		Permissions: r.PostFormValue("permissions"), Folder: strings.TrimSpace(r.PostFormValue("workspacePath"))}
	id, err := p.begin(w, r, by, asked)
	switch {
	case err != nil && !fromScript(r) && statusOf(err) < http.StatusInternalServerError:
		return p.showNew(w, r, by, statusOf(err), asked, p.userMessage(err))
	case err != nil:
		return err
	case isCommand(asked.Message) && !fromScript(r):
		r.SetPathValue("id", id)
		return p.command(w, r, by) // its answer has its own page
	}
	return finishForm(w, r, "/s/"+id, "/s/"+id)
}

// begin creates the session and sends the first message. A command goes to Chorus instead of the agent. A refused
// message leaves no session behind.
func (p *Pages) begin(w http.ResponseWriter, r *http.Request, by operation.Caller, asked wishes) (string, error) {
	in := operations.NewSession{WorkspacePath: asked.Folder, Agent: asked.Agent, Model: asked.Model, Permissions: asked.Permissions, Key: r.PostFormValue("key"), Sample: r.PostFormValue("sample") != ""}
	files := r.MultipartForm != nil && len(r.MultipartForm.File["files"]) > 0
	if !files && !isCommand(asked.Message) {
		in.Message = asked.Message
	}
	made, err := operations.CreateSession.Call(r.Context(), p.Executor, by, in)
	if err != nil || !files || isCommand(asked.Message) {
		return made.SessionID, err
	}
	if _, err = p.sendMessage(w, r, by, made.SessionID, asked.Message); err != nil { // files need a session to be stored in
		_, undone := operations.DeleteSession.Call(context.WithoutCancel(r.Context()), p.Executor, by, operations.SessionDeletion{ID: made.SessionID, Now: true})
		return "", errors.Join(err, undone)
	}
	return made.SessionID, nil
}

// otherAgents returns the agents that a conversation could be started with instead.
func otherAgents(list []operations.Agent, but string) []string {
	var out []string
	for _, a := range list {
		if name := cmp.Or(a.Name, but); name != but {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
