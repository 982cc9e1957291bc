// Package workservice implements the operations on projects, tasks,
// repositories and notes: it checks who asks, reads their input, and moves the
// queue. It does not run the work itself; see workrun.
//
// A caller sees and changes only what is theirs or shared. Every refusal says
// what to do. Everything it reports is in the store.
package workservice

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/gitrepo"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// Memos stores small values.
type Memos interface {
	Remember(ctx context.Context, kind, key string, value []byte) error
	RememberOnce(ctx context.Context, kind, key string, value []byte, keep time.Duration) (first bool, err error)
	Recall(ctx context.Context, kind, key string) ([]byte, error)
}

// Projects stores projects, their repositories, events and usage.
type Projects interface {
	CreateProject(context.Context, work.Project) (bool, error)
	Project(ctx context.Context, id string) (work.Project, error)
	Projects(context.Context) ([]work.Project, error)
	OfChannel(ctx context.Context, channel string) (work.Project, error)
	ChangeProject(ctx context.Context, id string, change func(*work.Project) (work.Event, error)) (work.Project, error)
	DeleteProject(ctx context.Context, id, by string, may func(running int) error) error
	AddRepo(ctx context.Context, r work.Repo, by string) (bool, error)
	Repos(ctx context.Context, project string) ([]work.Repo, error)
	Events(context.Context, work.EventFilter) ([]work.Event, error)
	Record(context.Context, work.Event) error
	SpentBy(ctx context.Context, since time.Time) ([]work.Spent, error)
	SpentOn(ctx context.Context, project, task string) ([]work.Spent, error)
	SpentDays(ctx context.Context, project string, since time.Time) ([]work.SpentDay, error)
}

// Tasks stores tasks.
type Tasks interface {
	Create(context.Context, work.NewTask) (work.Task, error)
	Change(ctx context.Context, id string, change func(t *work.Task, now time.Time) ([]work.Event, error)) (work.Task, error)
	Delete(ctx context.Context, id, by string, may func(t work.Task, subtasks int) error) (work.Task, error)
	Depend(ctx context.Context, id, needs, by string) error
	Undepend(ctx context.Context, id, needs, by string) (bool, error)
	Task(ctx context.Context, id string) (work.Task, error)
	List(context.Context, work.Filter) ([]work.Task, error)
	In(context.Context, work.State) ([]work.Task, error)
	Count(ctx context.Context, project string) (map[work.State]int, error)
	Running(context.Context) (int, error)
	Held(context.Context) ([]work.Task, error)
	Needs(ctx context.Context, id string) ([]work.Task, error)
	Dependents(ctx context.Context, id string) ([]work.Task, error)
	Results(ctx context.Context, task string) ([]work.Result, error)
	Edges(ctx context.Context, project string) ([]work.Edge, error)
}

// Options are the dependencies of a Handler.
type Options struct {
	Projects Projects
	Tasks    Tasks
	Plans    Plans
	Memos    Memos
	Home     *datadir.Home
	Now      func() time.Time
	// Agent works on tasks that name no agent.
	Agent string
	// Members returns the processes that work on tasks.
	Members func() ([]work.Worker, error)
	// FindAgent says what is wrong with an agent's name; it returns nil if the agent exists.
	FindAgent func(ctx context.Context, name string) error
	// CheckPlace says why people without the admin scope may not work in a folder.
	CheckPlace func(dir string) error
	// CheckURL says why people without the admin scope may not have a repository cloned from an address.
	CheckURL func(ctx context.Context, url string) error
	// Abort stops the run of a thread. It returns false if there was none.
	Abort func(ctx context.Context, thread chat.ThreadID, by string) (bool, error)
	// AutoChannels says that projects created on a chat platform get a channel there by default.
	AutoChannels bool
	// Channels are the channels of chat platforms; nil if none is connected here.
	Channels Channels
	// Audit records what somebody did in spite of the rules; nil if there is no log.
	Audit func(ctx context.Context, by operation.Caller, action, detail string) error
	// Changed is called when there may be something to begin.
	Changed func()
	// Changes returns a channel that has a value when something in the work queue may have changed,
	// until ctx ends. It is closed when nobody should wait any longer. Changes may be nil.
	Changes func(ctx context.Context) <-chan struct{}
	// Git does what needs a repository.
	Git Git
	// NameOf returns what people call somebody; nil shows their keys.
	NameOf func(ctx context.Context, principal string) string
	// Tools reads, searches and runs commands in the repositories of projects.
	Tools Tools
	// RepoOf returns the repository in which an agent works by default; ""
	// means its project's first one. It may be nil.
	RepoOf func(ctx context.Context, agent string) string
	// FetchTime is how long to wait for remotes when somebody asks for
	// the state of repositories; 0: 20 seconds.
	FetchTime time.Duration
	// WaitsForNode returns the node that has the files of a project while
	// that node is away, otherwise "". It may be nil.
	WaitsForNode func(ctx context.Context, project string) (string, error)
}

// Git does what needs a repository.
type Git interface {
	// Diff returns what a task changed, cut at limit bytes.
	Diff(ctx context.Context, t work.Task, limit int) (work.Changes, error)
	// Repo opens a repository of a project. Checkout opens its checkout
	// outside of tasks. Both create what does not exist yet.
	Repo(ctx context.Context, project, id string) (*gitrepo.Repo, work.Repo, error)
	Checkout(ctx context.Context, project, id string) (*gitrepo.Tree, work.Repo, error)
}

// Handler implements the operations. It is safe for concurrent use.
type Handler struct{ o Options }

// New returns a Handler.
func New(o Options) *Handler {
	o.FetchTime = cmp.Or(o.FetchTime, 20*time.Second)
	return &Handler{o}
}

var (
	_ operations.Projects = (*Handler)(nil)
	_ operations.Tasks    = (*Handler)(nil)
	_ operations.Queue    = (*Handler)(nil)
	_ operations.Notes    = (*Handler)(nil)
	_ operations.Workers  = (*Handler)(nil)
)

// window is the period over which shares and token limits are counted.
const window = 24 * time.Hour

func noProject(id string) error {
	return operation.Errorf(operation.NotFound, "Project '%.64s' not found; `list_projects` shows those there are", id)
}

func noTask(id string) error {
	return operation.Errorf(operation.NotFound, "Task '%.64s' not found; `list_tasks` shows those there are", id)
}

// sees reports whether a caller may see a project and give it tasks.
func sees(by operation.Caller, p work.Project) bool {
	return manages(by, p) || p.Shared && by.Principal.ID != ""
}

// manages reports whether a project belongs to the caller.
func manages(by operation.Caller, p work.Project) bool {
	return by.May(operation.Admin) || by.Principal.ID != "" && p.Owner.String() == by.Principal.String()
}

// SeesProject reports whether a caller may see a project. What happened in a
// deleted project is visible to whoever runs this Chorus.
func (h *Handler) SeesProject(ctx context.Context, by operation.Caller, id string) (bool, error) {
	p, err := h.o.Projects.Project(ctx, id)
	if errors.Is(err, journal.ErrUnknown) {
		return by.May(operation.Admin), nil
	}
	return err == nil && sees(by, p), err
}

// project finds a project that the caller may see; without an id, the conversation's active project.
func (h *Handler) project(ctx context.Context, by operation.Caller, id string) (work.Project, error) {
	if id == "" {
		active, err := h.active(ctx, by.Session, by.Here)
		if err != nil {
			return work.Project{}, err
		}
		if active == "" {
			return work.Project{}, operation.InvalidField("projectId", "project_id is required (no active project set); `list_projects` shows them")
		}
		id = active
	}
	p, err := h.o.Projects.Project(ctx, id)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return p, noProject(id)
	case err != nil:
		return p, err
	case !sees(by, p):
		return p, noProject(id)
	}
	return p, nil
}

// task finds a task whose project the caller may see.
func (h *Handler) task(ctx context.Context, by operation.Caller, id string) (work.Task, work.Project, error) {
	t, err := h.o.Tasks.Task(ctx, id)
	if errors.Is(err, journal.ErrUnknown) {
		return t, work.Project{}, noTask(id)
	}
	if err != nil {
		return t, work.Project{}, err
	}
	p, err := h.o.Projects.Project(ctx, t.Project)
	if err != nil || !sees(by, p) {
		return t, p, cmp.Or(hideUnknown(err), noTask(id))
	}
	return t, p, nil
}

func hideUnknown(err error) error {
	if errors.Is(err, journal.ErrUnknown) {
		return nil
	}
	return err
}

// The kinds of memos.
const (
	activeProject = "active-project" // by thread
	orchestrator  = "orchestrator"   // a single one: paused or not
	appendedNote  = "appended-note"  // by idempotency key
	openedThread  = "opened-notes"   // by idempotency key
)

// Active returns the project that a conversation is about, or "".
func (h *Handler) Active(ctx context.Context, session chat.ThreadID) (string, error) {
	transport, place, _, _ := session.Parts()
	return h.active(ctx, session, transport+":"+place)
}

// active looks for a project of the conversation, then of the place where it is held,
// then of the channel. here is a place as in operation.Caller.
func (h *Handler) active(ctx context.Context, session chat.ThreadID, here string) (string, error) {
	if here == "" && session.OnPlatform() { // an agent asks, in a conversation on a platform
		transport, place, _, _ := session.Parts()
		here = transport + ":" + place
	}
	transport, place, _ := strings.Cut(here, ":")
	if session.Transport() == chat.WorkTransport {
		return session.Place(), nil
	}
	if notes, err := h.NotesProject(ctx, session); err != nil || notes != "" {
		return notes, err
	}
	for _, key := range []string{string(session), here} {
		if key == "" || key == ":" {
			continue
		}
		if id, err := h.o.Memos.Recall(ctx, activeProject, key); err != nil || len(id) > 0 {
			return string(id), err
		}
	}
	if !chat.OnPlatform(transport) {
		return "", nil
	}
	p, err := h.o.Projects.OfChannel(ctx, place[strings.LastIndexByte(place, '/')+1:])
	return p.ID, hideUnknown(err)
}

// Note returns what the model is told about the active project, in the document's wording.
func (h *Handler) Note(ctx context.Context, session chat.ThreadID) (string, error) {
	id, err := h.Active(ctx, session)
	if err != nil || id == "" || session.Transport() == chat.WorkTransport {
		return "", err
	}
	text := "ACTIVE PROJECT: `" + id + "`.\nUse this as the default project_id for all tools unless the user\nexplicitly specifies a different project. When creating tasks,\n" +
		"listing notes, or any project-scoped operation, use this project."
	if notes, err := h.NotesProject(ctx, session); err != nil || notes != "" {
		return text + "\n\n" + strings.TrimSpace(work.NotesContext(notes)), err
	}
	if !session.OnPlatform() {
		return text, nil
	}
	place := session.Place()
	p, err := h.o.Projects.OfChannel(ctx, place[strings.LastIndexByte(place, '/')+1:])
	if err == nil && p.ID == id {
		text += "\n\n" + strings.TrimSpace(work.ChannelContext(id))
	}
	return text, hideUnknown(err)
}

// Paused reports whether no tasks begin at all.
func (h *Handler) Paused(ctx context.Context) (bool, error) {
	value, err := h.o.Memos.Recall(ctx, orchestrator, "state")
	return string(value) == "paused", err
}

func (h *Handler) changed() {
	if h.o.Changed != nil {
		h.o.Changed()
	}
}
