// Package watch manages the processes that agents leave running: it starts their
// keepers, takes over those that an earlier server started, notices what they print
// and how they end, and carries out their hooks.
//
// Only one server at a time manages a process. Its end is recorded once, either as it happened
// or as lost. After a crash, a hook's action is requested again with the same key, so an
// implementation that acts once per key acts once. Outside of Linux, a process ends according
// to the system's rules, and is lost after a restart.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/background"
	"chorus/internal/chat"
	"chorus/internal/lockfile"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/keep"
	"chorus/internal/sandbox/process"
)

// Store keeps processes.
type Store interface {
	AddProcess(context.Context, background.Process) (bool, error)
	MoveProcess(context.Context, background.Process, []background.Fired) (bool, error)
	Process(ctx context.Context, id string) (background.Process, error)
	OpenProcesses(context.Context) ([]background.Process, error)
	FiresSince(ctx context.Context, owner string, since time.Time) (int64, error)
}

// Places knows on which machine a process runs, and passes on requests to end it. A
// process without a folder here belongs to another machine.
type Places interface {
	// Place records that a process is about to be started here.
	Place(ctx context.Context, id string) error
	// PlaceOf returns the machine of a process, or "" if it is not known. lost means
	// that the machine is gone and has not been seen for long.
	PlaceOf(ctx context.Context, id string) (name string, lost bool, err error)
	// AskStop requests the end of a process. StopsAsked returns these requests, and StopDone removes one.
	AskStop(ctx context.Context, id string) error
	StopsAsked(ctx context.Context) ([]string, error)
	StopDone(ctx context.Context, id string) error
}

// Acted is the result of an action.
type Acted struct {
	Seq     int64  // sequence number of the words in the conversation
	Refused string // why it was not done and never will be
}

// Watcher manages processes. It is safe for concurrent use.
type Watcher struct {
	Store   Store
	Dir     string   // has a folder for each process, named by its id
	Places  Places   // knows where processes of other machines run; nil if there are none
	Environ []string // our environment; processes get its non-secret part
	Program []string // how to call our own program; nil: the running one
	// Act carries out a hook's action, except stopping the process, once per key of the fire.
	// output has the last lines printed. An error means that it should be retried.
	Act func(ctx context.Context, p background.Process, f background.Fire, output string) (Acted, error)
	// Judge judges the programs that a process starts; nil if nothing that is started needs judging.
	Judge func(ctx context.Context, p background.Process) (sandbox.Judge, error)
	Now   func() time.Time
	Log   *slog.Logger

	once   sync.Once
	poke   chan struct{}
	mu     sync.Mutex
	held   map[string]*watched
	placed map[string]time.Time // when the location of a process that is not here was last checked
}

// watched is a process that we manage.
type watched struct {
	claim   *lockfile.Lock
	process background.Process // if the version is the same, newer than the stored one
	written time.Time
	judging func() // stops the judge; nil if there is none
}

const (
	// every is the interval of checks of a process. rest is the interval of checks for new processes.
	every = 250 * time.Millisecond
	rest  = 5 * time.Second
	// writeEvery is how often the read position is stored if nothing else needs to be.
	writeEvery = 5 * time.Second
	// piece is how much output is read at a time; pieces is how often per check.
	piece  = 256 << 10
	pieces = 16
	// keepFor is how long the output of a process is kept after its end.
	keepFor = 7 * 24 * time.Hour
	// tail is how much of the output a hook reports.
	tail      = 6000
	tailLines = 30
	// MaxOfThread and MaxOpen are how many processes may run at a time.
	MaxOfThread = 8
	MaxOpen     = 64
)

func (w *Watcher) begin() {
	w.once.Do(func() {
		w.poke, w.held, w.placed = make(chan struct{}, 1), map[string]*watched{}, map[string]time.Time{}
		if w.Program == nil {
			w.Program = keep.Self()
		}
	})
}

// Folder returns the folder with the output of a process.
func (w *Watcher) Folder(id string) string { return filepath.Join(w.Dir, id) }

// ErrTooMany means that no further process may be started.
var ErrTooMany = errors.New("too many processes run already")

// Start starts a process. If Start returns without an error, the
// process is running; Run manages it from then on.
func (w *Watcher) Start(ctx context.Context, p background.Process, b sandbox.Background) (background.Process, error) {
	w.begin()
	if err := w.room(ctx, p.Thread); err != nil {
		return p, err
	}
	dir := w.Folder(p.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, fmt.Errorf("make a folder for the process: %w", err)
	}
	// Nobody else should consider it lost while it is being started.
	claim, err := keep.Claim(dir)
	if err != nil {
		return p, err
	}
	if w.Places != nil {
		if err := w.Places.Place(ctx, p.ID); err != nil {
			claim.Release()
			return p, err
		}
	}
	p.State, p.Started = background.Starting, w.Now()
	if added, err := w.Store.AddProcess(ctx, p); err != nil || !added {
		claim.Release()
		if err == nil {
			err = fmt.Errorf("there is a process %s already", p.ID)
		}
		return p, err
	}
	_, failed := keep.Spawn(ctx, w.Program, w.Environ, dir, b)
	p.State = background.Running
	if failed != nil {
		p.State, p.Exit, p.Why, p.Ended = background.Exited, -1, "it could not be started: "+failed.Error(), w.Now()
	}
	_, err = w.Store.MoveProcess(context.WithoutCancel(ctx), p, nil)
	p.Version++
	if failed != nil || err != nil {
		claim.Release()
		return p, errors.Join(failed, err)
	}
	w.mu.Lock()
	w.held[p.ID] = &watched{claim: claim, process: p, written: w.Now()}
	w.mu.Unlock()
	w.wake()
	return p, nil
}

// room returns why no further process may be started, or nil.
func (w *Watcher) room(ctx context.Context, thread chat.ThreadID) error {
	open, err := w.Store.OpenProcesses(ctx)
	if err != nil {
		return err
	}
	same := 0
	for _, p := range open {
		if p.Thread == thread {
			same++
		}
	}
	if same >= MaxOfThread || len(open) >= MaxOpen {
		return fmt.Errorf("%w: %d of this conversation, %d in all; stop one that is no longer needed", ErrTooMany, same, len(open))
	}
	return nil
}

func (w *Watcher) wake() { await.Notify(w.poke) }

// Changed requests a check soon, because somebody has written about a process.
func (w *Watcher) Changed() { w.begin(); w.wake() }

// Stop asks a process to end. If it does not, it is killed after a few
// seconds. It reports whether the process existed.
func (w *Watcher) Stop(p background.Process) (bool, error) {
	there, err := keep.Stop(w.Folder(p.ID))
	w.Changed()
	return there, err
}

// ErrHooks means that a process gets no further hooks.
var ErrHooks = errors.New("no hooks can be added")

// AddHooks adds hooks to a running process.
func (w *Watcher) AddHooks(ctx context.Context, id string, rules []background.Rule) (background.Process, error) {
	for range 5 {
		p, err := w.Store.Process(ctx, id)
		switch {
		case err != nil:
			return p, err
		case w.Observe(p).Over():
			return p, fmt.Errorf("%w: process %s is over", ErrHooks, id)
		case len(p.Hooks)+len(rules) > background.MaxHooks:
			return p, fmt.Errorf("%w: process %s has %d, and %d are the most", ErrHooks, id, len(p.Hooks), background.MaxHooks)
		}
		// They do not wait for earlier output, unless other hooks already do.
		if out, err := w.Output(id, 0, 0); err == nil && !reads(p) {
			p.ReadTo = out.Total
		}
		for _, r := range rules {
			p.Hooks = append(p.Hooks, background.Hook{Rule: r})
		}
		moved, err := w.Store.MoveProcess(ctx, p, nil)
		if err != nil {
			return p, err
		}
		if moved {
			w.Changed()
			p.Version++
			return p, nil
		}
	}
	return background.Process{}, fmt.Errorf("%w: others keep changing process %s", ErrHooks, id)
}

// reads reports whether a hook of the process waits for output.
func reads(p background.Process) bool {
	return slices.ContainsFunc(p.Hooks, func(h background.Hook) bool { return h.On == background.OnOutput })
}

// Observe returns the current state of a process, whoever manages it. If
// nobody does, the stored state may be outdated.
func (w *Watcher) Observe(p background.Process) background.Process {
	if p.Over() || !w.Here(p.ID) {
		return p
	}
	if alive, err := keep.Alive(w.Folder(p.ID)); err != nil || alive {
		return p
	}
	if p.State == background.Starting {
		if claim, err := keep.Claim(w.Folder(p.ID)); err != nil { // somebody is starting it
			return p
		} else {
			claim.Release()
		}
	}
	w.settle(&p)
	return p
}

// Run manages processes until ctx ends; they continue after that.
func (w *Watcher) Run(ctx context.Context) {
	w.begin()
	defer w.letGo()
	w.sweep(ctx)
	swept := w.Now()
	for {
		n, err := w.look(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("processes cannot be looked after: "+err.Error(), "component", "processes", "event", "processes_not_watched")
		}
		pause := rest
		if n > 0 {
			pause = every
		}
		if now := w.Now(); now.Sub(swept) > time.Hour {
			w.sweep(ctx)
			swept = now
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.poke:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// letGo lets others manage the processes.
func (w *Watcher) letGo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, one := range w.held {
		one.close()
		delete(w.held, id)
	}
}

func (o *watched) close() {
	if o.judging != nil {
		o.judging()
	}
	o.claim.Release()
}

// look checks every process once, and returns how many of them are ours.
func (w *Watcher) look(ctx context.Context) (int, error) {
	open, err := w.Store.OpenProcesses(ctx)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var failed []error
	there := map[string]bool{}
	if err := w.stopAsked(ctx); err != nil {
		failed = append(failed, err)
	}
	for _, p := range open {
		there[p.ID] = true
		if !w.Here(p.ID) {
			failed = append(failed, w.closeLost(ctx, p))
			continue
		}
		one, err := w.claim(p)
		if err != nil || one == nil {
			failed = append(failed, err)
			continue
		}
		if one.process.Version != p.Version {
			one.process = p // somebody has written about it
		}
		if err := w.step(ctx, one); err != nil {
			failed = append(failed, fmt.Errorf("process %s: %w", p.ID, err))
			one.process.Version = -1 // the changes here were not stored, so start again with what is
		}
		if one.process.Over() {
			one.close()
			delete(w.held, p.ID)
		}
	}
	for id, one := range w.held {
		if !there[id] {
			one.close()
			delete(w.held, id)
		}
	}
	return len(w.held), errors.Join(failed...)
}

// claim takes a process over. It returns nil if another server manages it.
func (w *Watcher) claim(p background.Process) (*watched, error) {
	if one := w.held[p.ID]; one != nil {
		return one, nil
	}
	claim, err := keep.Claim(w.Folder(p.ID))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.Log.Info("a process is looked after", "component", "processes", "event", "process_adopted", "process", p.ID, "thread", p.Thread)
	one := &watched{claim: claim, process: p, written: w.Now()}
	w.held[p.ID] = one
	return one, nil
}

// step checks one process, carries out its hooks, and stores what is new.
func (w *Watcher) step(ctx context.Context, one *watched) error {
	p := one.process
	p.Hooks = append([]background.Hook(nil), p.Hooks...)
	dir := w.Folder(p.ID)
	alive, err := keep.Alive(dir)
	if err != nil {
		return err
	}
	changed := false
	if alive {
		w.judge(ctx, one)
		if p.State == background.Starting {
			p.State, changed = background.Running, true
		}
	}
	lines, more, err := w.read(&p, !alive)
	if err != nil {
		return err
	}
	if !alive && !more {
		w.settle(&p)
		changed = true
		if p.State == background.Lost {
			if _, err := process.Reap(ctx, Call(p.ID)); err != nil {
				return err
			}
		}
	}
	fired, err := w.act(ctx, p, p.Step(background.Look{Now: w.Now(), Lines: lines}))
	if err != nil {
		return err
	}
	if p.ReadTo == one.process.ReadTo && !changed && len(fired) == 0 {
		one.process = p
		return nil
	}
	if !changed && len(fired) == 0 && w.Now().Sub(one.written) < writeEvery {
		one.process = p
		return nil
	}
	moved, err := w.Store.MoveProcess(ctx, p, fired)
	if err != nil {
		return err
	}
	if !moved {
		return errors.New("somebody else wrote about it at the same time")
	}
	p.Version++
	one.process, one.written = p, w.Now()
	if changed {
		w.Log.Info("a process is "+string(p.State), "component", "processes", "event", "process_"+string(p.State), "process", p.ID, "thread", p.Thread, "exit", p.Exit, "why", p.Why)
	}
	return nil
}

// Call returns the key that marks what a process has started.
func Call(id string) string { return "process/" + id }

// settle says how a process that is no longer alive has ended.
func (w *Watcher) settle(p *background.Process) {
	status, err := keep.ReadStatus(w.Folder(p.ID))
	p.Ended = w.Now()
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.State == background.Starting:
		p.State, p.Why = background.Lost, "the server stopped while it was being started"
	case err != nil:
		p.State, p.Why = background.Lost, "there is no record of how it ended"
	case status.Ended.IsZero() && status.Boot != process.BootID():
		p.State, p.Why = background.Lost, "the machine was restarted while it ran"
	case status.Ended.IsZero():
		p.State, p.Why = background.Lost, "its keeper was killed, and it ended with that"
	default:
		p.State, p.Exit, p.Ended = background.Exited, status.Exit, status.Ended
		switch {
		case status.Error != "":
			p.Why = "it could not be started: " + status.Error
		case status.TimedOut:
			p.State, p.Why = background.Killed, "its time limit was reached"
		case status.Stopped:
			p.State, p.Why = background.Killed, "it was asked to end"
		}
		if status.Forced {
			p.Why += ", and did not until it was killed"
		}
	}
}

// read returns the lines printed since the last check, if a hook needs them. more means that there
// are more. The last line counts once it is complete, or nothing more comes.
func (w *Watcher) read(p *background.Process, over bool) (lines []string, more bool, err error) {
	if !reads(*p) {
		return nil, false, nil
	}
	for range pieces {
		out, err := keep.ReadLog(w.Folder(p.ID), p.ReadTo, piece)
		if errors.Is(err, fs.ErrNotExist) {
			return lines, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		text := out.Text
		if at := strings.LastIndexByte(text, '\n'); at >= 0 {
			text = text[:at+1]
		} else if !over && len(text) < piece {
			text = ""
		}
		if text == "" && over {
			text = out.Text
		}
		if text == "" {
			return lines, false, nil
		}
		p.ReadTo = out.From + int64(len(text))
		lines = append(lines, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
	}
	return lines, true, nil
}

// act carries out hooks, and returns the results.
func (w *Watcher) act(ctx context.Context, p background.Process, fires []background.Fire) ([]background.Fired, error) {
	var out []background.Fired
	for _, f := range fires {
		done, err := w.one(ctx, p, f, len(out))
		if err != nil {
			return nil, err
		}
		fired := background.Fired{Hook: f.Hook, N: f.N, Do: f.Rule.Do, State: background.Done, Why: done.Refused, Seq: done.Seq, At: w.Now()}
		if done.Refused != "" {
			fired.State = background.Refused
			w.Log.Warn("a hook of a process did not act: "+done.Refused, "component", "processes", "event", "hook_refused", "process", p.ID, "hook", f.Hook)
		}
		out = append(out, fired)
	}
	return out, nil
}

func (w *Watcher) one(ctx context.Context, p background.Process, f background.Fire, before int) (Acted, error) {
	n, err := w.Store.FiresSince(ctx, p.Owner.Person().String(), w.Now().Add(-time.Minute))
	if err != nil {
		return Acted{}, err
	}
	if n+int64(before) >= background.MaxFiresMinute {
		return Acted{Refused: fmt.Sprintf("hooks of this person have acted %d times within a minute", background.MaxFiresMinute)}, nil
	}
	speaks := f.Rule.Do == background.InjectContext || f.Rule.Do == background.SpawnThread
	if speaks && p.Principal().Depth() > background.MaxDepth {
		return Acted{Refused: fmt.Sprintf("it was started by a hook that was started by a hook, %d deep: further ones do not speak to agents", background.MaxDepth)}, nil
	}
	if f.Rule.Do == background.StopProcess {
		_, err := keep.Stop(w.Folder(p.ID))
		return Acted{}, err
	}
	output, err := w.Tail(p.ID, tail, tailLines)
	if err != nil {
		return Acted{}, err
	}
	return w.Act(ctx, p, f, output)
}

// Tail returns the last complete lines that a process printed, or nothing if they are no longer kept.
func (w *Watcher) Tail(id string, most, lines int) (string, error) {
	out, err := keep.Tail(w.Folder(id), most)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(out.Text, "\n")
	if out.From > 0 {
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	if all := strings.Split(text, "\n"); len(all) > lines {
		text = strings.Join(all[len(all)-lines:], "\n")
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// Output returns what a process printed, starting at a position.
func (w *Watcher) Output(id string, from int64, most int) (keep.Output, error) {
	out, err := keep.ReadLog(w.Folder(id), from, most)
	if errors.Is(err, fs.ErrNotExist) {
		return keep.Output{}, nil
	}
	return out, err
}

// judge has the programs of a process judged as long as we manage it.
func (w *Watcher) judge(ctx context.Context, one *watched) {
	if one.judging != nil || w.Judge == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	one.judging = func() { cancel(); <-done }
	p := one.process
	go func() {
		defer close(done)
		judge, err := w.Judge(ctx, p)
		if err == nil {
			err = keep.Judge(ctx, w.Folder(p.ID), judge)
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("the programs that a process starts cannot be judged: "+err.Error(), "component", "processes", "event", "process_not_judged", "process", p.ID)
		}
	}()
}

// sweep removes the output of processes that ended long ago.
func (w *Watcher) sweep(ctx context.Context) {
	entries, _ := os.ReadDir(w.Dir)
	for _, e := range entries {
		p, err := w.Store.Process(ctx, e.Name())
		if err == nil && p.Over() && w.Now().Sub(p.Ended) > keepFor {
			_ = os.RemoveAll(w.Folder(e.Name()))
		}
	}
}
