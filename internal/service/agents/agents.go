// Package agents implements the operations on agents: listing, showing, creating, changing and removing them, the files
// of their workspaces, and a preview of what a draft of one would send to its model.
package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/tool/selfedit"
)

// Handler implements the operations on agents.
type Handler struct {
	app      *service.Service
	sessions *service.Handler
}

// New returns a handler that reads sessions and settings through another handler.
func New(app *service.Service, sessions *service.Handler) *Handler { return &Handler{app, sessions} }

var (
	_ operations.Agents       = (*Handler)(nil)
	_ operations.AgentEditing = (*Handler)(nil)
)

// shownSessions is how many sessions are shown with an agent.
const shownSessions = 20

// ListAgents implements the operation of that name. The default agent comes first, even if nobody has created it.
func (o *Handler) ListAgents(ctx context.Context, by operation.Caller, in operations.AgentQuery) (operation.List[operations.Agent], error) {
	out := operation.List[operations.Agent]{Items: []operations.Agent{}}
	list, err := o.app.Settings.Agents().List(ctx)
	if err != nil {
		return out, err
	}
	made := slices.ContainsFunc(list, func(a agents.Agent) bool { return a.Name == chat.DefaultAgent })
	if !made {
		list = append([]agents.Agent{{Name: chat.DefaultAgent}}, list...)
	}
	page, err := operation.PageBehind(list, func(a agents.Agent) string { return a.Name }, in.Cursor, in.Most())
	if err != nil {
		return out, err
	}
	for _, a := range page.Items {
		if a.Name == chat.DefaultAgent && !made {
			out.Items = append(out.Items, o.plainAgent())
		} else {
			out.Items = append(out.Items, o.agentFor(by, a))
		}
	}
	out.Next = page.Next
	return out, o.showWork(ctx, by, out.Items)
}

// showWork shows which agents work on tasks.
func (o *Handler) showWork(ctx context.Context, by operation.Caller, list []operations.Agent) error {
	if o.app.Work == nil {
		return nil
	}
	busy, err := o.app.Work.Busy(ctx, by)
	for i := range list {
		a := &list[i]
		a.State = "IDLE"
		for _, t := range busy[a.Name] {
			a.State, a.Task = "BUSY", cmp.Or(a.Task, t.ID)
			if t.ID != "" {
				a.Tasks = append(a.Tasks, t)
			}
		}
	}
	return err
}

// repoKey is the key in agent.json for the repository of an agent's tasks.
const repoKey = "repo"

// RepoOf returns the repository that an agent's tasks work in by default; "": none.
func (o *Handler) RepoOf(ctx context.Context, name string) string {
	a, err := o.FindAgent(ctx, name)
	if err != nil {
		return ""
	}
	return repoOf(a)
}

func repoOf(a agents.Agent) (repo string) {
	if json.Unmarshal(a.Extra[repoKey], &repo) != nil {
		return ""
	}
	return repo
}

// plainAgent is the agent that answers if none was created.
func (o *Handler) plainAgent() operations.Agent {
	own := o.sessions.Defaults(chat.DefaultAgent)
	return operations.Agent{Name: chat.DefaultAgent, Model: own.Model, Permissions: own.Permissions, Sandbox: own.Sandbox,
		Description: "answers if no agent is named"}
}

// agentFor returns an agent as a caller sees it: callers who may change agent.json see all of it.
func (o *Handler) agentFor(by operation.Caller, a agents.Agent) operations.Agent {
	out := o.Agent(a)
	if data, err := json.Marshal(a); err == nil && by.May(operation.Admin) && o.app.Settings.Agents().Made(a.Name) {
		out.File = o.app.Logs.Redactor().JSON(data)
	}
	return out
}

// Agent returns an agent as everybody sees it.
func (o *Handler) Agent(a agents.Agent) operations.Agent {
	own := o.sessions.Defaults(a.Name)
	line, _, _ := strings.Cut(strings.TrimSpace(a.SystemPrompt), "\n")
	return operations.Agent{Name: a.Name, Model: cmp.Or(a.Model, own.Model), Permissions: cmp.Or(a.Permissions, own.Permissions), Sandbox: own.Sandbox, Repo: repoOf(a),
		Workspace: o.app.Settings.Agents().Workspace(a.Name), CreatedAt: a.CreatedAt, Description: o.app.Logs.Redactor().Clipped(gate.Shortened(line)), Worker: a.Worker}
}

func (o *Handler) FindAgent(ctx context.Context, name string) (agents.Agent, error) {
	a, err := o.app.Settings.Agents().Get(ctx, name)
	if _, ok := errors.AsType[*agents.FileError](err); ok {
		err = nil // the last good version applies
	}
	if errors.Is(err, agents.ErrUnknown) || errors.Is(err, agents.ErrName) || errors.Is(err, journal.ErrUnknown) {
		return a, operation.Errorf(operation.NotFound, "there is no agent %.80q", name)
	}
	return a, err
}

// GetAgent implements the operation of that name.
func (o *Handler) GetAgent(ctx context.Context, by operation.Caller, in operations.AgentRef) (operations.AgentDetail, error) {
	name := in.Name
	a, err := o.FindAgent(ctx, name)
	shown := o.agentFor(by, a)
	if err != nil && operation.KindOf(err) == operation.NotFound && name == chat.DefaultAgent {
		shown, err = o.plainAgent(), nil
	}
	if err != nil {
		return operations.AgentDetail{}, err
	}
	bot, err := o.app.Settings.Bot(name)
	if err != nil {
		return operations.AgentDetail{}, err
	}
	hide := o.app.Logs.Redactor()
	var file *agents.FileError
	_, broken := o.app.Settings.Agents().Get(ctx, name)
	out := operations.AgentDetail{Agent: shown, Tools: []operations.Tool{}, Docs: []operations.Doc{}, Sessions: []operations.Session{}, Settings: []operations.Setting{},
		SystemPrompt: hide.Text(cmp.Or(a.SystemPrompt, bot.SystemPrompt))}
	if by.May(operation.Admin) && a.Name != "" {
		out.Version, out.OwnModel, out.OwnTools = o.app.Settings.Agents().Version(a), a.Model, a.Tools
		out.OwnPrompt = hide.Text(a.SystemPrompt)
		out.Secret = out.OwnPrompt != a.SystemPrompt
	}
	if errors.As(broken, &file) {
		out.Problem = hide.Text(file.Error())
	}
	if out.Tools, err = o.toolsOf(a, bot); err != nil {
		return out, err
	}
	for _, d := range runsetup.Docs(filepath.Join(o.app.Home.AgentDir(name), "docs")) {
		out.Docs = append(out.Docs, operations.Doc{Name: d.Name, Text: hide.Text(d.Text)})
	}
	if text, ok := runsetup.ReadText(filepath.Join(o.app.Home.AgentDir(name), "MEMORY.md")); ok {
		out.Memory = hide.Text(text)
	}
	for _, row := range bot.Rows() {
		if bot.IsSet(row.Key) {
			out.Settings = append(out.Settings, o.sessions.Setting(row))
		}
	}
	list, err := o.sessions.ListSessions(ctx, by, operations.SessionQuery{Agent: name, Limit: shownSessions})
	out.Sessions = list.Items
	return out, err
}

// toolsOf returns the built-in tools of an agent with what its profile says about them in general. Tools of MCP servers
// are known once they run.
func (o *Handler) toolsOf(a agents.Agent, bot *config.Bot) ([]operations.Tool, error) {
	b, err := o.sessions.BareToolbox()
	if err != nil {
		return nil, err
	}
	rules, err := settings.Profile(bot, cmp.Or(a.Permissions, bot.Permissions))
	if err != nil {
		return nil, err
	}
	out := []operations.Tool{}
	tools := b.List
	if runsetup.IsDir(o.app.Home.AgentDir(a.Name)) && b.Self == nil {
		tools = append(slices.Clip(tools), selfedit.Tools(nil)...) // they are only described
	}
	for _, t := range tools {
		s := t.Spec()
		if len(a.Tools) > 0 && !slices.Contains(a.Tools, s.Name) {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(s.Description), "\n\n")
		verdict := "depends"
		if !rules.Possible(s.Name) {
			verdict = "deny"
		}
		out = append(out, operations.Tool{Name: s.Name, Description: strings.Join(strings.Fields(first), " "), ReadOnly: s.ReadOnly, Verdict: verdict})
	}
	return out, nil
}

// CreateAgent implements the operation of that name.
func (o *Handler) CreateAgent(ctx context.Context, by operation.Caller, in operations.NewAgent) (operations.Agent, error) {
	given := agents.Agent{Name: in.Name, Model: in.Model, Permissions: in.Permissions, SystemPrompt: in.SystemPrompt}
	for name := range strings.SplitSeq(in.Tools, ",") {
		if name = strings.TrimSpace(name); name != "" {
			given.Tools = append(given.Tools, name)
		}
	}
	if in.Type != "chorus" {
		given.Worker = in.Type
	}
	if err := o.checkAgent(&given); err != nil {
		return operations.Agent{}, err
	}
	if given.Permissions != "" {
		if err := o.app.Gate.MayGive(given.Permissions, by.Principal); err != nil {
			return operations.Agent{}, operation.Errorf(operation.Forbidden, "%w", err)
		}
	}
	if in.Repo != "" && o.app.Work != nil {
		repo, err := o.app.Work.FindRepo(ctx, by, in.Repo)
		if err != nil {
			return operations.Agent{}, err
		}
		text, err := json.Marshal(repo)
		if err != nil {
			return operations.Agent{}, err
		}
		given.Extra = map[string]json.RawMessage{repoKey: text}
	}
	made, err := o.app.Settings.Agents().Create(ctx, given)
	if err != nil {
		return operations.Agent{}, err
	}
	return o.agentFor(by, made), o.sessions.Record(ctx, by, made.Name, "agent create", "model "+cmp.Or(made.Model, "(default)")+", permissions "+made.Permissions)
}

// checkAgent checks the settings of a new agent before anything is written.
func (o *Handler) checkAgent(a *agents.Agent) error {
	if a.Model != "" {
		name, err := o.app.Models.Name("", a.Model)
		if err != nil {
			return operation.InvalidField("model", "%v", err)
		}
		a.Model = name
	}
	if a.Permissions != "" {
		if _, err := o.app.Setup.Profile(a.Permissions); err != nil {
			return operation.InvalidField("permissions", "%v", err)
		}
	}
	return nil
}

// ConfigureAgent implements the operation of that name.
func (o *Handler) ConfigureAgent(ctx context.Context, by operation.Caller, in operations.AgentSetting) (operations.Agent, error) {
	if _, err := o.FindAgent(ctx, in.Name); err != nil {
		return operations.Agent{}, err
	}
	key := settings.CanonicalKey(in.Key)
	if key == "permissions" {
		if err := o.app.Gate.MayGive(in.Value, by.Principal); err != nil {
			return operations.Agent{}, operation.Errorf(operation.Forbidden, "%w", err)
		}
	}
	changed, err := o.app.Settings.Agents().Configure(ctx, in.Name, key, in.Value)
	if err != nil {
		return operations.Agent{}, operation.InvalidField(key, "%v", err)
	}
	return o.agentFor(by, changed), o.sessions.Record(ctx, by, changed.Name, "agent config "+key, gate.Shortened(in.Value))
}

// DestroyAgent implements the operation of that name.
func (o *Handler) DestroyAgent(ctx context.Context, by operation.Caller, in operations.DestroyAgentRequest) (operation.None, error) {
	if _, err := o.FindAgent(ctx, in.Name); err != nil {
		return operation.None{}, err
	}
	switch at, busy, err := o.AtWork(ctx, in.Name); {
	case err != nil:
		return operation.None{}, err
	case busy:
		return operation.None{}, operation.Errorf(operation.Conflict, "agent %s is working in session %s; stop it first", in.Name, at.Thread())
	}
	if err := o.app.Settings.Agents().Destroy(ctx, in.Name, in.KeepFiles); err != nil {
		return operation.None{}, err
	}
	detail := "with its files"
	if in.KeepFiles {
		detail = "its files are kept"
	}
	return operation.None{}, o.sessions.Record(ctx, by, in.Name, "agent destroy", detail)
}

// AtWork finds a thread in which an agent runs or waits for an answer; false: there is none.
func (o *Handler) AtWork(ctx context.Context, name string) (chat.ThreadID, bool, error) {
	for _, status := range []chat.Status{chat.Running, chat.Waiting} {
		busy, err := o.app.DB.Threads(ctx, store.ThreadFilter{Agent: name, Status: status, Children: true, Limit: 1})
		if err != nil {
			return "", false, err
		}
		if len(busy) > 0 {
			return busy[0].ID, true, nil
		}
	}
	return "", false, nil
}
