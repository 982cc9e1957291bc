package pages

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

// group is a part of the sidebar: conversations of one day, or the pinned ones.
type group struct {
	Name     string
	Sessions []operations.Session
}

// The groups of the sidebar, in order.
var groupNames = []string{"Pinned", "Today", "Yesterday", "Last seven days", "Earlier"}

// groupSessions groups conversations by the day of their last change.
func groupSessions(pinned, list []operations.Session, now time.Time) []group {
	groups := make([]group, len(groupNames))
	for i, name := range groupNames {
		groups[i].Name = name
	}
	groups[0].Sessions = pinned
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	for _, s := range list {
		if s.Listing == "pinned" {
			continue
		}
		at := 4
		switch {
		case !s.MovedAt.Before(today):
			at = 1
		case !s.MovedAt.Before(today.AddDate(0, 0, -1)):
			at = 2
		case !s.MovedAt.Before(today.AddDate(0, 0, -7)):
			at = 3
		}
		groups[at].Sessions = append(groups[at].Sessions, s)
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.Sessions) == 0 })
}

// changeSession renames, pins or archives a conversation, or changes its model, permissions or mode.
func (p *Pages) changeSession(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id := r.PathValue("id")
	change := changeOf(r, id)
	change.Title, change.Listing = r.PostFormValue("title"), r.PostFormValue("listing")
	s, err := operations.ChangeSession.Call(r.Context(), p.Executor, by, change)
	if err != nil {
		return err
	}
	return finishForm(w, r, cmp.Or(localPath(r.PostFormValue("back")), "/s/"+id), changedWords(change, s))
}

// changeOf reads from a form what should change.
func changeOf(r *http.Request, id string) operations.SessionChange {
	return operations.SessionChange{ID: id, Model: r.PostFormValue("model"), Permissions: r.PostFormValue("permissions"), Mode: r.PostFormValue("work")}
}

// changedWords says what was changed.
func changedWords(c operations.SessionChange, s operations.Session) string {
	switch {
	case c.Title != "":
		return "Renamed"
	case c.Listing == "pinned":
		return "Pinned"
	case c.Listing == "archived":
		return "Archived. A new message brings it back to the list"
	case c.Listing != "":
		return "Back on the list"
	case c.Model != "":
		return modelOf(s) + " answers from the next message on"
	case c.Permissions != "":
		return "Permissions from the next message on: " + s.Permissions
	}
	return "Applies from the next message on"
}

// localPath returns a path of our own pages; "": it is not one.
func localPath(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n") {
		return ""
	}
	return path
}

// choices are the options that a reader has for a conversation.
type choices struct {
	Models   []operations.Model
	Profiles []operations.Profile
	Modes    []chat.Mode
	NoMode   string   // ends a mode
	Agents   []string // the others
}

// choose loads the options. A list that cannot be loaded is left out: the conversation is shown anyway.
func (p *Pages) choose(r *http.Request, by operation.Caller) choices {
	c := choices{Modes: chat.Modes(), NoMode: chat.NoMode}
	if list, err := operations.ListModels.Call(r.Context(), p.Executor, by, operation.None{}); err == nil {
		c.Models = slices.DeleteFunc(slices.Clone(list.Items), func(m operations.Model) bool { return !m.Ready })
	}
	if list, err := operations.ListProfiles.Call(r.Context(), p.Executor, by, operations.ProfileQuery{}); err == nil {
		c.Profiles = list.Items
	}
	return c
}

// chooseFor does the same for a conversation, with the other available agents.
func (p *Pages) chooseFor(r *http.Request, by operation.Caller, s operations.Session) choices {
	c := p.choose(r, by)
	if list, err := operation.CallWhole(r.Context(), operations.ListAgents, p.Executor, by, operations.AgentQuery{}); err == nil {
		c.Agents = otherAgents(list, s.Agent)
	}
	return c
}

// again answers a message again: in this conversation if its run failed, else in a fork that ends before the message.
// With edit, the fork opens with the message in its form instead.
func (p *Pages) again(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id := r.PathValue("id")
	at, err := strconv.ParseInt(r.PostFormValue("at"), 10, 64)
	if err != nil || at < 1 {
		return operation.Errorf(operation.Invalid, "the request does not say which message")
	}
	said, err := p.messageBefore(r, by, id, at)
	if err != nil {
		return err
	}
	words, _ := display.SplitFiles(said.Text)
	if r.PostFormValue("how") == "retry" {
		if _, err := operations.Say.Call(r.Context(), p.Executor, by, operations.Message{ID: id, Message: words, Key: forkKey(r)}); err != nil {
			return err
		}
		return finishForm(w, r, "/s/"+id, "")
	}
	edit := r.PostFormValue("how") == "edit"
	if edit {
		words = ""
	}
	fork, err := p.forkBefore(r, by, id, said.Seq, words)
	if err != nil {
		return err
	}
	if edit {
		http.Redirect(w, r, "/s/"+fork+"?edit="+id+"."+strconv.FormatInt(said.Seq, 10), http.StatusSeeOther)
		return nil
	}
	http.Redirect(w, r, "/s/"+fork, http.StatusSeeOther)
	return nil
}

// forkKey identifies a click of a button, so that a second click of the same button creates nothing new; "": the page gave none.
func forkKey(r *http.Request) string {
	key := r.PostFormValue("key")
	if key == "" {
		return ""
	}
	return key + " " + r.PostFormValue("how") + " " + r.PostFormValue("at")
}

// forkBefore creates a conversation with everything before a message and sends a message in it, both at once. Before the
// first message there is nothing to fork, so a new conversation with the same choices does as well.
func (p *Pages) forkBefore(r *http.Request, by operation.Caller, id string, seq int64, words string) (string, error) {
	before, err := operations.Messages.Call(r.Context(), p.Executor, by, operations.EventRange{ID: id, Before: seq, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(before.Items) > 0 {
		made, err := operations.Fork.Call(r.Context(), p.Executor, by, operations.ForkRequest{ID: id, AtSeq: seq - 1, Message: words, Key: forkKey(r)})
		return made.SessionID, err
	}
	s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: id})
	if err != nil {
		return "", err
	}
	in := operations.NewSession{WorkspacePath: s.WorkspacePath, Agent: s.Agent, Model: modelOf(s), Permissions: s.Permissions, Message: words, Key: forkKey(r)}
	if display.Folder(s.WorkspacePath) != s.WorkspacePath { // a folder of its own cannot be shared
		in.WorkspacePath = ""
	}
	made, err := operations.CreateSession.Call(r.Context(), p.Executor, by, in)
	return made.SessionID, err
}

// messageBefore returns the last message of a person up to an event.
func (p *Pages) messageBefore(r *http.Request, by operation.Caller, id string, at int64) (feed.UserMessage, error) {
	for range 5 { // a run has few pages of items; a longer one is not searched to its end
		list, err := operations.Messages.Call(r.Context(), p.Executor, by, operations.EventRange{ID: id, Before: at + 1, Limit: maxItems})
		if err != nil {
			return feed.UserMessage{}, err
		}
		for _, item := range slices.Backward(list.Items) {
			if said, ok := item.(feed.UserMessage); ok {
				return said, nil
			}
		}
		before, err := strconv.ParseInt(list.Next, 10, 64)
		if err != nil || before <= 1 {
			break
		}
		at = before - 1
	}
	return feed.UserMessage{}, operation.Errorf(operation.NotFound, "there is no earlier message from a person")
}

// draftOf returns the text that a message is edited from: ?edit=SESSION.SEQ.
func (p *Pages) draftOf(r *http.Request, by operation.Caller) string {
	id, seq, ok := strings.Cut(r.URL.Query().Get("edit"), ".")
	at, err := strconv.ParseInt(seq, 10, 64)
	if !ok || err != nil || at < 1 {
		return ""
	}
	said, err := p.messageBefore(r, by, id, at)
	if err != nil {
		return ""
	}
	words, _ := display.SplitFiles(said.Text)
	return words
}

// proposal shows what "always" may mean for an approval, with samples.
func (p *Pages) proposal(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.ProposeRules.Call(r.Context(), p.Executor, by, operations.ApprovalRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	data := map[string]any{"Layout": p.layout(r, by, "Always allow"), "List": list, "Back": localPath(r.URL.Query().Get("back"))}
	return p.render(w, http.StatusOK, "always.html", data)
}
