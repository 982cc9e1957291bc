package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/node"
	"chorus/internal/service"
	"chorus/internal/transcript"
	"chorus/internal/work"
	"chorus/internal/workrun"
)

// serverName is the server's name among the workers.
const serverName = "server"

// joinAsServer lists the server among the workers. A second server of the same home gets another name.
func (a *App) joinAsServer() (leave func()) {
	name := serverName
	if a.member != nil { // every node has one
		name += "-" + a.member.Name()
	}
	self := work.Worker{Name: name, Host: node.HostName(), PID: os.Getpid(), Slots: a.work.Workers}
	own, err := a.members.Join(self)
	if errors.Is(err, workrun.ErrNameTaken) {
		self.Name = fmt.Sprintf("%s-%d", name, self.PID)
		own, err = a.members.Join(self)
	}
	a.work.Self = self
	if err != nil {
		a.Log.Warn("the server is not listed among the workers: "+err.Error(), "component", "work", "event", "worker_not_listed")
		return func() {}
	}
	return own.Leave
}

// workHandler returns the handler for what is said to tasks. In a worker
// it runs no other threads than those of its tasks.
func (a *App) workHandler() *service.Handler {
	if a.working.Load() {
		return a.Service.Guest()
	}
	return a.Service.Handler()
}

// hasTask reports whether the run of a task's thread belongs to this process, that is, to the worker that
// has the task. What people say to a task that nobody works on goes to the server.
func (a *App) hasTask(thread chat.ThreadID) bool {
	ctx, cancel := context.WithTimeout(context.Background(), grantTime)
	defer cancel()
	t, err := a.taskOf(ctx, thread)
	switch {
	case errors.Is(err, journal.ErrUnknown): // deleted, or of an agent that a worker asked; its own process runs such a thread
		return a.serving.Load()
	case err != nil:
		return false // the next sweep asks again
	case t.Run == "" && t.State != work.Assigned:
		return a.serving.Load()
	}
	return t.Worker == a.work.Self.Name
}

// takes keeps a process that once worked on a task from beginning an attempt that another process has.
func (a *App) takes(thread chat.ThreadID, prompt transcript.Waiting) bool {
	if thread.Transport() == chat.WorkTransport && (a.serving.Load() || a.working.Load()) && !a.hasTask(thread) {
		return false
	}
	return a.Service.Takes(thread, prompt)
}

// WorkerOptions are the flags of worker.
type WorkerOptions struct {
	Name     string // "": the machine's name and the process id
	Slots    int
	Projects []string
	Agents   []string
	Drain    time.Duration // how long its tasks may continue when it is told to stop
	Ready    func(name string)
	// Draining is called with the number of tasks that are waited for, once it was told to stop.
	Draining func(tasks int)
}

// WorkOnTasks takes tasks and works on them until ctx ends. Then it takes no more, and its present tasks may
// continue for a while. Others take over what is not finished by then, where it stopped.
func (a *App) WorkOnTasks(ctx context.Context, o WorkerOptions) error {
	self := work.Worker{Name: cmp.Or(o.Name, fmt.Sprintf("%s-%d", node.HostName(), os.Getpid())), Host: node.HostName(), PID: os.Getpid(), Slots: o.Slots, Projects: o.Projects, Agents: o.Agents}
	if err := a.member.Join("worker", "", ""); err != nil {
		return err
	}
	own, err := a.members.Join(self)
	if err != nil {
		return err
	}
	defer own.Leave()
	a.working.Store(true)
	a.work.Self, a.work.Workers = self, o.Slots
	a.Engine(func(thread chat.ThreadID) bool { return thread.Transport() == chat.WorkTransport })
	a.StartBackground()
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	wait := a.followWork(going)
	a.Log.Info("working", "component", "work", "event", "worker_started", "worker", self.Name, "slots", self.Slots)
	o.Ready(self.Name)
	<-ctx.Done()
	a.work.Drain()
	if err := own.Draining(); err != nil {
		a.Log.Warn("that this worker stops cannot be told: "+err.Error(), "component", "work", "event", "drain_not_told")
	}
	a.awaitTasks(self.Name, o)
	a.toolGrace = a.toolTime()
	cancel()
	wait()
	return a.stopEngine()
}

// awaitTasks waits until a worker has no tasks any more, or its time is over.
func (a *App) awaitTasks(name string, o WorkerOptions) {
	late := time.NewTimer(o.Drain)
	defer late.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for before := -1; ; {
		held, err := a.work.Tasks.Held(context.Background())
		n := 0
		for _, t := range held {
			if t.Worker == name && t.State != work.WaitingInput {
				n++
			}
		}
		if err == nil && n == 0 || err != nil && errors.Is(err, context.Canceled) {
			return
		}
		if n != before && o.Draining != nil {
			o.Draining(n)
		}
		before = n
		select {
		case <-late.C:
			return
		case <-tick.C:
		}
	}
}

// stopEngine stops the runs of this process where they are, before others learn that it is gone.
func (a *App) stopEngine() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.toolGrace+stopTimeout)
	defer cancel()
	return a.Running().StopGently(ctx, a.toolGrace)
}
