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

// wishes are what somebody has written and chosen for a new conversation.
type wishes struct {
	Message, Agent, Model, Permissions, Folder string
}

// newSession shows the form for a new conversation. Somebody who comes from another one goes on in its folder.
func (p *Pages) newSession(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	asked := wishes{Agent: r.URL.Query().Get("agent")}
	if from := r.URL.Query().Get("from"); from != "" {
		if s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: from}); err == nil && display.Folder(s.WorkspacePath) == s.WorkspacePath {
			asked.Folder = s.WorkspacePath // its own folder cannot be another's
		}
	}
	return p.showNew(w, r, by, http.StatusOK, asked, "")
}

// showNew shows the form with what was written in it, and why it could not be done.
func (p *Pages) showNew(w http.ResponseWriter, r *http.Request, by operation.Caller, status int, asked wishes, problem string) error {
	agents, err := operation.CallWhole(r.Context(), operations.ListAgents, p.Executor, by, operations.AgentQuery{})
	if err != nil {
		return err
	}
	c := p.choose(r, by)
	f := p.layout(r, by, "New conversation")
	f.Script = "new.js"
	return p.render(w, status, "new.html", map[string]any{"Layout": f, "Agents": agents, "Models": c.Models, "Profiles": c.Profiles, "Asked": asked, "Problem": problem})
}

// createSession makes a session and sends its first message, if there is one. What cannot be done is said in the form, with all that was
// written still in it.
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
		return p.command(w, r, by) // its answer has a page of its own
	}
	return finishForm(w, r, "/s/"+id, "/s/"+id)
}

// begin makes the session that somebody wishes for and says its first words in it. A command is for Chorus and said to nobody. Words that
// are refused leave no session behind.
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
	if _, err = p.sendMessage(w, r, by, made.SessionID, asked.Message); err != nil { // files need a session to be kept in
		_, undone := operations.DeleteSession.Call(context.WithoutCancel(r.Context()), p.Executor, by, operations.SessionDeletion{ID: made.SessionID, Now: true})
		return "", errors.Join(err, undone)
	}
	return made.SessionID, nil
}

// otherAgents are the names of the agents that a conversation could be begun with instead.
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
