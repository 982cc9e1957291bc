package app

import (
	"context"
	"sync"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/chatcommand"
	"chorus/internal/database"
	"chorus/internal/gitrepo"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/owner"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox"
	"chorus/internal/service"
	"chorus/internal/service/agents"
	"chorus/internal/store/nodes"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
	"chorus/internal/workrun"
	"chorus/internal/workservice"
	"chorus/internal/workservice/projecttools"
)

// workers are the processes that work on tasks.
type workers interface {
	Join(who work.Worker) (workrun.Membership, error)
	Alive(name string) bool
	List() ([]work.Worker, error)
}

// wireWork creates what projects and tasks need.
func (a *App) wireWork() {
	queue := tasks.New(a.DB, a.workWritten)
	a.Host.Work, a.queue = queue, queue
	active := workservice.New(workservice.Options{Projects: queue, Tasks: queue, Memos: a.DB, NameOf: a.Service.NameOf})
	a.members = &workrun.Members{Dir: a.Home.Workers(), Now: a.Service.Now}
	if a.member != nil {
		a.members = &workrun.SharedMembers{Owner: a.owner, Memos: a.DB, Now: a.Service.Now,
			Held: func(ctx context.Context) (map[owner.Name]bool, error) { return nodes.Held(ctx, a.DB) }}
	}
	a.taskOf = queue.OfThread
	a.work = &workrun.Runner{Tasks: queue, Home: a.Home, Now: a.Service.Now, Log: a.Log, Workers: a.Shared.Workers, Deadline: provider.Milliseconds(a.Shared.TaskTimeoutMS), TokenLimit: int64(a.Shared.WorkTokensDaily),
		Reminders: work.Reminders{Every: provider.Milliseconds(a.Shared.TaskReminderMS), Escalate: provider.Milliseconds(a.Shared.TaskEscalationMS)},
		Tell: func(ctx context.Context, t work.Task, words, key string) error {
			return a.workHandler().TellWork(ctx, t, words, key)
		},
		Self: work.Worker{Name: serverName}, Alive: a.members.Alive, Adopted: func(thread chat.ThreadID) { a.Engine(nil).Wake(thread) },
		Paused: active.Paused, Lead: func(ctx context.Context, lead func(context.Context)) { a.whileOwner(ctx, a.leads(), lead) }, Git: gitrepo.Options{Environ: a.Environ, LocalURLs: true},
		Say: func(ctx context.Context, t work.Task, words, key string) (string, error) {
			return a.workHandler().SayWork(ctx, t, words, key)
		},
		Answer: func(ctx context.Context, thread chat.ThreadID) (string, error) {
			return a.workHandler().LastAnswer(ctx, thread)
		},
		Abort: func(ctx context.Context, thread chat.ThreadID, by string) error {
			_, err := a.workHandler().Engine.Abort(ctx, thread, by, false)
			return err
		}}
	handler := func(h *service.Handler) *workservice.Handler {
		return workservice.New(workservice.Options{
			WaitsForNode: a.member.ProjectWaits,
			NameOf:       h.NameOf, Git: a.work, Members: a.members.List, Projects: queue, Tasks: queue, Plans: queue, Memos: a.DB, Home: a.Home, Now: a.Service.Now, Agent: chat.DefaultAgent, CheckURL: workservice.CheckCloneURL,
			FindAgent: func(ctx context.Context, name string) error {
				_, err := agents.New(a.Service, h).GetAgent(ctx, operation.Caller{}, operations.AgentRef{Name: name})
				return err
			},
			Audit: func(ctx context.Context, by operation.Caller, action, detail string) error {
				return h.Record(ctx, by, "", action, detail)
			},
			Changed: func() {
				a.work.Changed()
				h.Engine.NotifyPeers(workrun.ChangedElsewhere)
			},
			Changes: func(ctx context.Context) <-chan struct{} {
				ctx, cancel := context.WithCancel(ctx)
				context.AfterFunc(h.Stopping(), cancel)
				return a.Changes(ctx)
			},
			CheckPlace: func(dir string) error { return a.Settings.CheckPlace("", dir) }, Tools: projecttools.Tools{Setup: a.Setup}, RepoOf: agents.New(a.Service, h).RepoOf,
			Channels: a.Host.ProjectChannels(), AutoChannels: a.Shared.ProjectChannels,
			Abort: func(ctx context.Context, thread chat.ThreadID, by string) (bool, error) {
				return h.Engine.Abort(ctx, thread, by, false)
			},
		})
	}
	a.Service.Others = func(h *service.Handler) []any {
		return append(a.handlers(h), handler(h), chatcommand.New(h.Operations, h.FilesFor), restarter{a}, a.nodeOperations())
	}
	if a.member != nil {
		a.Service.Nodes = func(ctx context.Context) ([]operations.Node, error) {
			list, err := a.nodeOperations().ListNodes(ctx, operation.Caller{}, operation.None{})
			return list.Items, err
		}
	}
	a.Service.Work = active
	a.Service.SeesProject = active.SeesProject
	a.Setup.Roots = a.workRoots
	a.Setup.NoteSources = append(a.Setup.NoteSources, runsetup.NoteSource{What: "active project", Gone: "No project is active any more.",
		Text: func(ctx context.Context, at runsetup.NoteContext) (string, error) { return active.Note(ctx, at.Row.ID) },
		Rows: func(runsetup.NoteContext) (database.Question, bool) { return tasks.AnyProject(), true }})
}

// workWritten tells whoever follows the work, in this process and in others, that there may be news.
func (a *App) workWritten() {
	a.Bus.Publish(work.EventsWritten, bus.Note{})
	a.mu.Lock()
	running := a.Running()
	a.mu.Unlock()
	if running != nil {
		running.NotifyPeers(workrun.ChangedElsewhere)
	}
}

// leads returns the name that the process which merges must own: one per home or, if homes share a
// database, one per machine, because each machine merges what it has the files of.
func (a *App) leads() owner.Name {
	if a.member == nil {
		return owner.Work
	}
	return owner.WorkOf(a.member.Name())
}

// grantTime limits looking up a task's checkout.
const grantTime = 10 * time.Second

// workRoots limit the commands of a task to its own branch: in the repository of its
// checkout they may write what git needs for that, and read the rest.
func (a *App) workRoots(thread chat.ThreadID) ([]sandbox.Root, error) {
	if thread.Transport() != chat.WorkTransport {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grantTime)
	defer cancel()
	readable, writable, err := a.work.Grant(ctx, thread)
	var roots []sandbox.Root
	for _, dir := range readable {
		roots = append(roots, sandbox.Root{Path: dir})
	}
	for _, dir := range writable {
		roots = append(roots, sandbox.Root{Path: dir, Writable: true})
	}
	return roots, err
}

// runWork works on the queue until the server stops. The returned function waits for that.
func (a *App) runWork(ctx context.Context) (wait func()) {
	leave := a.joinAsServer()
	ended := a.followWork(ctx)
	return func() { ended(); leave() }
}

// followWork checks the queue whenever something happens, until ctx
// ends. The returned function waits for that.
func (a *App) followWork(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	events := a.Bus.SubscribeAllProcesses(chat.Took{}.Kind(), chat.RunEnded{}.Kind(), chat.AbortAsked{}.Kind(), chat.ApprovalAsked{}.Kind(), chat.ApprovalAnswered{}.Kind())
	others := a.Bus.SubscribeTopic(workrun.ChangedElsewhere)
	var on sync.WaitGroup
	on.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-others.Wake():
				others.Take()
				a.work.Changed()
				a.Bus.Publish(work.EventsWritten, bus.Note{})
			case <-events.Wake(): // a task may have moved with its thread
				events.Take()
				a.work.Changed()
				a.Bus.Publish(work.EventsWritten, bus.Note{})
			}
		}
	})
	on.Go(func() { a.work.Run(ctx) })
	return func() { cancel(); on.Wait(); events.Close(); others.Close() }
}
