package runsetup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"chorus/internal/background"
	"chorus/internal/background/watch"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/sandbox"
	"chorus/internal/store/processes"
	"chorus/internal/text"
	"chorus/internal/tool"
	"chorus/internal/tool/process"
	"chorus/internal/transcript"
)

// ownProcesses are what one agent left running in one place: the processes of this
// thread, and the running ones of its other threads there.
type ownProcesses struct {
	setup  *Setup
	thread chat.ThreadID

	mu   sync.Mutex
	host *serverHost // of the current or last run
}

var _ process.Processes = (*ownProcesses)(nil)

// listedProcesses is how many processes of a thread are listed.
const listedProcesses = 20

func (o *ownProcesses) NewID() string { return id.New() }

func (o *ownProcesses) Start(ctx context.Context, p background.Process, b sandbox.Background) (background.Process, error) {
	p.Thread, p.Owner = o.thread, ownerOf(tool.CallFrom(ctx).Senders, o.setup.Me())
	return o.setup.Processes.Start(ctx, p, b)
}

// ownerOf returns on whose words a process is started. If there are several senders,
// it is the one furthest from a person, so that chains of hooks that start processes
// with hooks come to an end whoever else has spoken.
func ownerOf(senders []chat.Principal, me chat.Principal) chat.Principal {
	if len(senders) == 0 {
		return me
	}
	return slices.MaxFunc(senders, func(a, b chat.Principal) int { return a.Depth() - b.Depth() })
}

func (o *ownProcesses) List(ctx context.Context) ([]background.Process, error) {
	list, err := processes.New(o.setup.DB).ProcessesOf(ctx, o.thread, listedProcesses)
	if err != nil {
		return nil, err
	}
	open, err := o.setup.openProcesses(ctx, o.thread)
	if err != nil {
		return nil, err
	}
	for _, p := range open {
		if p.Thread != o.thread {
			list = append(list, p)
		}
	}
	for i := range list {
		list[i] = o.setup.Processes.Observe(list[i])
	}
	return list, nil
}

func (o *ownProcesses) Tail(id string, bytes, lines int) (string, error) {
	out, err := o.setup.Processes.Tail(id, bytes, lines)
	return o.setup.Logs.Redactor().Text(out), err
}

func (o *ownProcesses) Stop(p background.Process) (bool, error) { return o.setup.Processes.Stop(p) }

func (o *ownProcesses) AddHooks(ctx context.Context, p background.Process, rules []background.Rule) (background.Process, error) {
	return o.setup.Processes.AddHooks(ctx, p.ID, rules)
}

// openProcesses returns the running processes of a thread's agent in the same place, oldest first.
func (s *Setup) openProcesses(ctx context.Context, thread chat.ThreadID) ([]background.Process, error) {
	open, err := processes.New(s.DB).OpenProcesses(ctx)
	return slices.DeleteFunc(open, func(p background.Process) bool {
		return p.Thread.Agent() != thread.Agent() || p.Thread.Transport() != thread.Transport() || p.Thread.Place() != thread.Place()
	}), err
}

// runningProcesses tells a run what its agent has left running. The
// text does not change while nothing happens.
func (s *Setup) runningProcesses(ctx context.Context, at NoteContext) (string, error) {
	open, err := s.openProcesses(ctx, at.Row.ID)
	if err != nil || len(open) == 0 {
		return "", err
	}
	var out strings.Builder
	out.WriteString("You left these running; process_logs shows their output.\n")
	for _, p := range open {
		fmt.Fprintf(&out, "- %s: `%s`, since %s", p.ID, text.Clip(strings.Join(strings.Fields(p.Command), " "), 120), p.Started.Format("2 January 15:04"))
		if p.Thread != at.Row.ID {
			out.WriteString(", from another of your threads")
		}
		out.WriteByte('\n')
		for _, h := range p.Hooks {
			fmt.Fprintf(&out, "  - %s\n", text.Clip(h.Rule.String(), 200))
		}
	}
	return out.String(), nil
}

// JudgeProcess judges the programs that a process starts, by the current rights. Nobody can
// be asked about them: the run that started the process may be over.
func (s *Setup) JudgeProcess(ctx context.Context, p background.Process) (sandbox.Judge, error) {
	row, err := s.DB.Thread(ctx, p.Thread)
	if err != nil {
		return nil, err
	}
	bot, err := s.Settings.BotFor(row)
	if err != nil {
		return nil, err
	}
	g := s.Gate.For(row, bot, engine.Work{Senders: []transcript.Sender{{Principal: p.Owner}}})
	judge := s.programsAsking(g, row, bot, bot.Permissions, nil)
	if judge == nil {
		return func(sandbox.Exec) (func(context.Context) error, error) { return nil, nil }, nil
	}
	return judge(watch.Call(p.ID)), nil
}
