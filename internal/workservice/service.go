// Package workservice carries out the operations on projects, tasks, repositories and notes: it looks at who asks, reads what they
// wrote, and lets the queue move. Who works on tasks is none of its business; see workrun.
//
// It promises that a caller sees and changes only what is theirs or shared, that every refusal says what to do, and that whatever
// it answered is in the store.
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

// Memos keeps small values.
type Memos interface {
	Remember(ctx context.Context, kind, key string, value []byte) error
	RememberOnce(ctx context.Context, kind, key string, value []byte, keep time.Duration) (first bool, err error)
	Recall(ctx context.Context, kind, key string) ([]byte, error)
}

// Projects keeps projects, their repositories, what happened and what was spent.
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

// Tasks keeps tasks.
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

// Options are what a Handler works with.
type Options struct {
	Projects Projects
	Tasks    Tasks
	Plans    Plans
	Memos    Memos
	Home     *datadir.Home
	Now      func() time.Time
	// Agent is who works on a task that names nobody.
	Agent string
	// Members are the processes that work on tasks.
	Members func() ([]work.Worker, error)
	// FindAgent says what is wrong with an agent's name; nil error: there is one.
	FindAgent func(ctx context.Context, name string) error
	// CheckPlace says why people without the admin scope may not work in a folder.
	CheckPlace func(dir string) error
	// CheckURL says why people without the admin scope may not have a repository cloned from an address.
	CheckURL func(ctx context.Context, url string) error
	// Abort stops the run of a thread; false: none was on.
	Abort func(ctx context.Context, thread chat.ThreadID, by string) (bool, error)
	// AutoChannels says that projects which are made on a chat platform get a channel there unless somebody says otherwise.
	AutoChannels bool
	// Channels are those of chat platforms; nil: none is connected here.
	Channels Channels
	// Audit writes down what somebody did past the rules; nil: nobody keeps a log.
	Audit func(ctx context.Context, by operation.Caller, action, detail string) error
	// Changed is called when there may be something to begin.
	Changed func()
	// Changes has a value when something of the work may have changed, until ctx ends, and is closed when nobody is to wait any longer; nil:
	// nobody tells.
	Changes func(ctx context.Context) <-chan struct{}
	// Git does what needs a repository.
	Git Git
	// NameOf is what people call somebody; nil: their keys are shown.
	NameOf func(ctx context.Context, principal string) string
	// Tools read, search and run commands in the repositories of projects.
	Tools Tools
	// RepoOf is the repository that an agent works in unless a task names another; "": its project's first one. nil: nobody has one.
	RepoOf func(ctx context.Context, agent string) string
	// FetchTime is how long remotes are waited for where somebody wants to know how repositories stand; 0: 20 seconds.
	FetchTime time.Duration
	// WaitsForNode names the node that has the files of a project, while it is not there; "": there is one that has them. nil: there is.
	WaitsForNode func(ctx context.Context, project string) (string, error)
}

// Git does what needs a repository.
type Git interface {
	// Diff is what a task changed, cut at limit bytes.
	Diff(ctx context.Context, t work.Task, limit int) (work.Changes, error)
	// Repo opens a repository of a project, and Checkout its files beside those of tasks; they are made where they are not there yet.
	Repo(ctx context.Context, project, id string) (*gitrepo.Repo, work.Repo, error)
	Checkout(ctx context.Context, project, id string) (*gitrepo.Tree, work.Repo, error)
}

// Handler carries out the operations. It may be used from any goroutine.
type Handler struct{ o Options }

// New makes a handler.
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

// window is over how long shares and limits of tokens are counted.
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

// manages reports whether a project is the caller's.
func manages(by operation.Caller, p work.Project) bool {
	return by.May(operation.Admin) || by.Principal.ID != "" && p.Owner.String() == by.Principal.String()
}

// SeesProject reports whether a caller may see a project. Of one that is gone, whoever runs this Chorus sees what happened.
func (h *Handler) SeesProject(ctx context.Context, by operation.Caller, id string) (bool, error) {
	p, err := h.o.Projects.Project(ctx, id)
	if errors.Is(err, journal.ErrUnknown) {
		return by.May(operation.Admin), nil
	}
	return err == nil && sees(by, p), err
}

// project finds one that the caller may see; without a name the one that the conversation is about.
func (h *Handler) project(ctx context.Context, by operation.Caller, id string) (work.Project, error) {
	if id == "" {
		active, err := h.active(ctx, by.Session, by.Here)
		if err != nil {
			return work.Project{}, err
		}
		if active == "" {
			return work.Project{}, operation.InvalidField("projectId", "project_id is required (no active project set)")
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

// task finds one whose project the caller may see.
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
	orchestrator  = "orchestrator"   // one: paused or not
	appendedNote  = "appended-note"  // by idempotency key
	openedThread  = "opened-notes"   // by idempotency key
)

// Active is the project that a conversation is about; "": none.
func (h *Handler) Active(ctx context.Context, session chat.ThreadID) (string, error) {
	transport, place, _, _ := session.Parts()
	return h.active(ctx, session, transport+":"+place)
}

// active goes from the conversation to the place where it is held, and to the project that the channel belongs to. here is a place as
// operation.Caller has it.
func (h *Handler) active(ctx context.Context, session chat.ThreadID, here string) (string, error) {
	if here == "" && session.OnPlatform() { // an agent asks, in a conversation there
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

// Note is what the model is told of the active project: the document's wording.
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

// Paused reports whether no tasks are begun at all.
func (h *Handler) Paused(ctx context.Context) (bool, error) {
	value, err := h.o.Memos.Recall(ctx, orchestrator, "state")
	return string(value) == "paused", err
}

func (h *Handler) changed() {
	if h.o.Changed != nil {
		h.o.Changed()
	}
}
