// Package processes implements the operations on background processes of agents, and the messages of their hooks.
package processes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/background"
	"chorus/internal/background/watch"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/service"
	"chorus/internal/store/processes"
	"chorus/internal/transcript"
)

// Handler implements the operations on processes.
type Handler struct {
	Options
	app      *service.Service
	sessions *service.Handler
	rows     *processes.Store
}

// Options are what a Handler needs besides sessions.
type Options struct {
	Watcher *watch.Watcher // of what agents left running
	Shown   *ShownHooks
}

// New returns a handler that uses another one for sessions and their messages.
func New(app *service.Service, sessions *service.Handler, o Options) *Handler {
	return &Handler{o, app, sessions, processes.New(app.DB)}
}

var _ operations.Processes = (*Handler)(nil)

const (
	// shownProcesses is how many are listed, and shownFires how many actions of hooks of each.
	shownProcesses = 100
	shownFires     = 50
	// Default limits for reading a log.
	defaultLines = 20
	defaultBytes = 64 << 10
	// killTime is how long to wait for a process that was asked to end: longer than it has.
	killTime = 8 * time.Second
)

// seesProcess reports whether a caller may see a process: it is theirs, or it runs in a session that they see.
func (o *Handler) seesProcess(ctx context.Context, by operation.Caller, p background.Process) bool {
	if by.May(operation.Admin) {
		return true
	}
	return by.Principal.ID != "" && p.Owner.Person().String() == by.Principal.String() || o.sessions.SeesThread(ctx, by, p.Thread)
}

// ownsProcess reports whether a caller may end a process and give it hooks.
func ownsProcess(by operation.Caller, p background.Process) bool {
	return by.May(operation.Admin) || by.Principal.ID != "" && p.Owner.Person().String() == by.Principal.String()
}

// ListProcesses implements the operation of that name.
func (o *Handler) ListProcesses(ctx context.Context, by operation.Caller, in operations.ProcessQuery) (out operation.List[operations.Process], err error) {
	var rows []background.Process
	switch {
	case in.Session != "":
		row, err := o.sessions.Find(ctx, by, in.Session)
		if err != nil {
			return out, err
		}
		if rows, err = o.rows.ProcessesOf(ctx, row.ID, shownProcesses); err != nil {
			return out, err
		}
	default:
		owner := by.Principal.String()
		if by.May(operation.Admin) {
			owner = ""
		} else if owner == "" {
			return out, nil
		}
		if rows, err = o.rows.Processes(ctx, owner, shownProcesses); err != nil {
			return out, err
		}
	}
	for _, p := range rows {
		if p = o.Watcher.Observe(p); in.Running && p.Over() {
			continue
		}
		out.Items = append(out.Items, o.showProcess(p))
	}
	return out, nil
}

// GetProcess implements the operation of that name.
func (o *Handler) GetProcess(ctx context.Context, by operation.Caller, in operations.ProcessRef) (operations.Process, error) {
	p, err := o.findProcess(ctx, by, in.ID)
	if err != nil {
		return operations.Process{}, err
	}
	fires, err := o.rows.ProcessFires(ctx, p.ID, shownFires)
	shown := o.showProcess(p)
	for _, f := range fires {
		shown.Fired = append(shown.Fired, operations.ProcessHookFired{Hook: f.Hook + 1, Do: string(f.Do), State: f.State, Why: f.Why, Seq: f.Seq, At: f.At})
	}
	return shown, err
}

// ProcessLogs implements the operation of that name.
func (o *Handler) ProcessLogs(ctx context.Context, by operation.Caller, in operations.ProcessLogQuery) (operations.ProcessOutput, error) {
	p, err := o.findProcess(ctx, by, in.ID)
	if err != nil {
		return operations.ProcessOutput{}, err
	}
	if err := o.processIsHere(ctx, p); err != nil {
		return operations.ProcessOutput{}, err
	}
	most := cmp.Or(in.Bytes, defaultBytes)
	out := operations.ProcessOutput{ID: p.ID, Status: string(p.State)}
	if in.From > 0 {
		read, err := o.Watcher.Output(p.ID, in.From-1, most)
		if in.Whole && !p.Over() {
			read.Text = wholeLines(read.Text, most)
		}
		out.From, out.Next, out.Total, out.Text = read.From+1, read.From+int64(len(read.Text))+1, read.Total, read.Text
		out.Text = o.app.Logs.Redactor().Text(strings.ToValidUTF8(out.Text, "\uFFFD"))
		return out, err
	}
	lines := cmp.Or(in.Lines, defaultLines)
	whole, err := o.Watcher.Output(p.ID, 0, 0)
	if err != nil {
		return out, err
	}
	out.Text, err = o.Watcher.Tail(p.ID, most, lines)
	out.Text = o.app.Logs.Redactor().Text(out.Text)
	out.Total, out.Next = whole.Total, whole.Total+1
	out.From = max(out.Next-int64(len(out.Text))-1, 1)
	return out, err
}

// wholeLines leaves out an incomplete last line, because a half-written secret would not be recognized. A line longer
// than one read is returned in pieces.
func wholeLines(text string, most int) string {
	if at := strings.LastIndexAny(text, "\n\r"); at >= 0 {
		return text[:at+1]
	}
	if len(text) < most {
		return ""
	}
	return text
}

// KillProcess implements the operation of that name.
func (o *Handler) KillProcess(ctx context.Context, by operation.Caller, in operations.ProcessRef) (operations.Process, error) {
	p, err := o.findProcess(ctx, by, in.ID)
	switch {
	case err != nil:
		return operations.Process{}, err
	case !ownsProcess(by, p):
		return operations.Process{}, operation.Errorf(operation.Forbidden, "process %s belongs to %s; only they and the owner of this Chorus can end it", p.ID, p.Owner.Person().Label())
	case p.Over():
		return operations.Process{}, operation.Errorf(operation.Conflict, "process %s has already ended: %s", p.ID, p.State)
	}
	if !o.Watcher.Here(p.ID) {
		return o.killElsewhere(ctx, p)
	}
	if _, err := o.Watcher.Stop(p); err != nil {
		return operations.Process{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	for p = o.Watcher.Observe(p); !p.Over(); p = o.Watcher.Observe(p) {
		if !await.For(ctx, 50*time.Millisecond) {
			return o.showProcess(p), operation.Errorf(operation.Unavailable, "process %s has not ended yet", p.ID)
		}
	}
	o.Watcher.Changed()
	return o.showProcess(p), nil
}

// processIsHere returns an error naming the node of a process whose output is not here.
func (o *Handler) processIsHere(ctx context.Context, p background.Process) error {
	if o.Watcher.Here(p.ID) {
		return nil
	}
	node, err := o.Watcher.PlaceOf(ctx, p.ID)
	if err != nil {
		return err
	}
	return operation.Errorf(operation.Conflict, "process %s and its output are on node %s; ask that node", p.ID, cmp.Or(node, "(unknown)"))
}

// killElsewhere asks the process's node to end it.
func (o *Handler) killElsewhere(ctx context.Context, p background.Process) (operations.Process, error) {
	node, err := o.Watcher.PlaceOf(ctx, p.ID)
	if err != nil {
		return operations.Process{}, err
	}
	if err := o.Watcher.AskStop(ctx, p.ID); err != nil {
		return operations.Process{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	for {
		now, err := o.rows.Process(ctx, p.ID)
		if err == nil && now.Over() {
			return o.showProcess(now), nil
		}
		if err != nil && ctx.Err() == nil {
			return o.showProcess(p), err
		}
		if !await.For(ctx, 50*time.Millisecond) {
			return o.showProcess(p), operation.Errorf(operation.Unavailable, "process %s is on node %s, which was told to end it and has not yet", p.ID, cmp.Or(node, "(unknown)"))
		}
	}
}

// findProcess finds a process that the caller may see, by its id or a unique prefix.
func (o *Handler) findProcess(ctx context.Context, by operation.Caller, name string) (background.Process, error) {
	p, err := o.rows.Process(ctx, name)
	if errors.Is(err, journal.ErrUnknown) {
		if p, err = o.processNamed(ctx, by, name); err != nil {
			return p, err
		}
	}
	if err != nil {
		return p, err
	}
	if !o.seesProcess(ctx, by, p) {
		return p, noProcess(name)
	}
	return o.Watcher.Observe(p), nil
}

// processNamed finds the only process with a prefix, or the only running one.
func (o *Handler) processNamed(ctx context.Context, by operation.Caller, prefix string) (background.Process, error) {
	list, err := o.rows.Processes(ctx, "", shownProcesses)
	if err != nil {
		return background.Process{}, err
	}
	list = slices.DeleteFunc(list, func(p background.Process) bool {
		return !strings.HasPrefix(p.ID, strings.ToLower(prefix)) || !o.seesProcess(ctx, by, p)
	})
	if len(list) > 1 {
		if running := slices.DeleteFunc(slices.Clone(list), func(p background.Process) bool { return o.Watcher.Observe(p).Over() }); len(running) > 0 {
			list = running
		}
	}
	switch len(list) {
	case 0:
		return background.Process{}, noProcess(prefix)
	case 1:
		return list[0], nil
	}
	return background.Process{}, operation.Errorf(operation.Conflict, "several processes start with %.40q; give more of the id", prefix)
}

// Nouns implements operation.Namer.
func (o *Handler) Nouns() map[string]operation.Noun {
	return map[string]operation.Noun{"process": {Suggest: o.names}}
}

// names returns suggestions for completion.
func (o *Handler) names(ctx context.Context, by operation.Caller, prefix string) (names []string, err error) {
	list, err := o.ListProcesses(ctx, by, operations.ProcessQuery{})
	for _, p := range list.Items {
		if strings.HasPrefix(p.ID, strings.ToLower(prefix)) {
			names = append(names, p.ID)
		}
	}
	return names, err
}

// noProcess is the error for a process that does not exist or belongs to somebody else.
func noProcess(name string) error {
	return operation.Errorf(operation.NotFound, "there is no process %.64q; `chorus process list` lists them", name)
}

func (o *Handler) showProcess(p background.Process) operations.Process {
	hide := o.app.Logs.Redactor()
	shown := operations.Process{ID: p.ID, Command: hide.Text(p.Command), Status: string(p.State), Why: p.Why, Owner: p.Owner.Person().String(), OwnerName: p.Owner.Person().Label(), Agent: p.Thread.Agent(), SessionID: p.Thread.Thread(),
		Directory: p.Dir, StartedAt: p.Started, EndedAt: p.Ended, Hooks: []operations.ProcessHook{}}
	if p.State == background.Exited || p.State == background.Killed {
		shown.Exit = &p.Exit
	}
	if !p.Over() && p.Timeout > 0 {
		shown.EndsBy = p.Started.Add(p.Timeout)
	}
	if line, err := o.Watcher.Tail(p.ID, 1000, 1); err == nil {
		shown.LastLine = hide.Text(line)
	}
	for _, h := range p.Hooks {
		shown.Hooks = append(shown.Hooks, showHook(h))
	}
	return shown
}

func showHook(h background.Hook) operations.ProcessHook {
	return operations.ProcessHook{Says: h.Rule.String(), On: string(h.On), If: h.If, Pattern: h.Pattern, After: h.After, Do: string(h.Do), Message: h.Message, MaxFires: h.MaxFires, Interval: h.Interval, Delay: h.Delay, Fires: h.Fires, Suppressed: h.Suppressed}
}

// processPlatform marks messages of processes, in arrivals and events.
const processPlatform = "process"

// Act runs an action of a process's hook, once per key of the fire.
func (o *Handler) Act(ctx context.Context, p background.Process, f background.Fire, output string) (watch.Acted, error) {
	row, err := o.app.DB.Thread(ctx, p.Thread)
	if errors.Is(err, journal.ErrUnknown) {
		return watch.Acted{Refused: "the session no longer exists"}, nil
	}
	if err != nil {
		return watch.Acted{}, err
	}
	if why, err := o.sessions.Lapsed(ctx, p.Owner.Person()); err != nil || why != "" {
		return watch.Acted{Refused: why}, err
	}
	if f.Rule.Do == background.StopThread {
		_, err := o.sessions.Engine.Abort(ctx, p.Thread, processPlatform+" "+p.ID, false)
		return watch.Acted{}, err
	}
	who := p.Principal()
	in := chat.Inbound{Principal: who, From: chat.Participant{ID: p.ID, Name: "process", Kind: chat.System}, Platform: processPlatform, PlatformID: p.ID + "/" + f.Key()}
	text := processWords(p, f, o.app.Logs.Redactor().Text(output))
	if f.Rule.Do == background.NotifyChannel {
		return o.notify(ctx, row, in, text)
	}
	by := operation.Caller{Principal: who}
	if err := o.app.Gate.MayWork(ctx, row, []transcript.Sender{{Principal: who}}); err == nil { // wherever its owner may let an agent work
		by.Scopes = operation.Scopes()
	}
	if f.Rule.Do == background.SpawnThread {
		if busy, err := o.spawnedBy(ctx, p); err != nil {
			return watch.Acted{}, err
		} else if busy >= background.MaxSpawned {
			return watch.Acted{Refused: fmt.Sprintf("%d conversations that its hooks started are still running", busy)}, nil
		}
		if row, err = o.spawned(ctx, row, p, f); err != nil {
			return watch.Acted{}, err
		}
	}
	if f.Rule.Waits() {
		in.Intake = chat.Inject
		return o.notify(ctx, row, in, text)
	}
	if f.Rule.Do == background.InjectContext {
		in.Intake = chat.Inject // a current run gets it between two steps
	}
	said, err := o.sessions.SayUnattended(ctx, by, row, text, in)
	return watch.Acted{Seq: said.Seq, Refused: said.Refused}, err
}

// notify adds a message to a conversation without starting a run: the model sees it at the next request, in a current
// run with the next step. People see it too, unless it was injected for the model alone.
func (o *Handler) notify(ctx context.Context, row journal.Thread, in chat.Inbound, text string) (watch.Acted, error) {
	in.Threads, in.Blocks, in.Fired = []chat.ThreadID{row.ID}, chat.TextBlocks(text), true
	got, err := o.sessions.Engine.Deliver(ctx, in, nil)
	if err != nil {
		return watch.Acted{}, err
	}
	return watch.Acted{Seq: got[0].Seq}, nil
}

func spawnPrefix(p background.Process) string { return "process-" + p.ID + "-" }

// spawnedBy counts the conversations that hooks of a process started and that still run.
func (o *Handler) spawnedBy(ctx context.Context, p background.Process) (n int, err error) {
	active, err := o.app.DB.ActiveThreads(ctx)
	for _, t := range active {
		if strings.HasPrefix(t.ID.Thread(), spawnPrefix(p)) {
			n++
		}
	}
	return n, err
}

// spawned returns the conversation that a hook starts: with the same agent, place and folder. The fire determines its
// name, so that it is the same one after a crash.
func (o *Handler) spawned(ctx context.Context, row journal.Thread, p background.Process, f background.Fire) (journal.Thread, error) {
	name := spawnPrefix(p) + strings.ReplaceAll(f.Key(), "/", "-")
	thread, err := chat.NewThreadID(row.ID.Transport(), row.Place, name, row.Agent)
	if err != nil {
		return row, err
	}
	if there, err := o.app.DB.Thread(ctx, thread); err == nil || !errors.Is(err, journal.ErrUnknown) {
		return there, err
	}
	made, err := o.sessions.Standing(ctx, row.ID)
	if err != nil {
		return row, err
	}
	title := []rune(fmt.Sprintf("process %s: %s", p.State, p.Command))
	next := journal.Thread{ID: thread, Owner: row.Owner, Dir: row.Dir, Title: string(title[:min(len(title), 80)])}
	if err := o.sessions.Begin(ctx, next, made, true); err != nil {
		return row, err
	}
	return o.app.DB.Thread(ctx, thread)
}
