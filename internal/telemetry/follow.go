package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/text"
)

// FollowOptions configures a Follower.
type FollowOptions struct {
	Bus     *bus.Bus
	Log     *slog.Logger
	Version string
	// Env decides whether traces are wanted and where they go. The rest of the OTEL_* variables is
	// read by the SDK from the environment of the process.
	Env func(string) string
	// RunStart finds the last start of a run before an event. It is called for runs that another process
	// started; nil: those have no start.
	RunStart func(context.Context, chat.Event) (chat.Event, error)
}

// Follower logs one line for each run that ends in this process, and sends spans if the
// environment asks for them. Without that it wakes for the start and the end of a run and
// for nothing in between.
type Follower struct {
	opts   FollowOptions
	events *bus.Subscription
	runs   map[string]chat.Event // the starts of runs in progress; only the receiving goroutine uses it
	tracer *tracer               // nil: no spans
	export *traceExport          // nil: no spans
	gaps   int                   // written by the receiving goroutine, read after it has ended
	ctx    context.Context       // over reads of the journal
	cancel context.CancelFunc
	stop   chan struct{}
	once   sync.Once
	done   sync.WaitGroup
}

// Follow starts a Follower; Close ends it.
func Follow(o FollowOptions) *Follower {
	f := &Follower{opts: o, runs: map[string]chat.Event{}, stop: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	kinds := []chat.Kind{chat.KindRunStarted, chat.KindRunEnded}
	if wantsTraces(o.Env) && f.trace() {
		kinds = nil // spans are made from all events
	}
	f.events = o.Bus.SubscribeAll(kinds...)
	f.done.Go(func() {
		defer f.events.Close()
		receive(f.events, f.stop, f.take, func() { f.gaps++ })
	})
	return f
}

// trace sets up the making of spans, if the settings allow it.
func (f *Follower) trace() bool {
	endpoint, err := tracesEndpoint(f.opts.Env)
	if err == nil {
		f.export, err = newTraceExport(endpoint, f.opts.Version, f.opts.Log)
	}
	if err != nil {
		f.opts.Log.Warn("no traces are sent: "+err.Error(), "component", "otel", "event", "otel_settings")
		return false
	}
	f.tracer = &tracer{runs: map[string]*tracedRun{}, spans: f.export.tracer, ended: &f.export.ended, runStart: f.runStart}
	return true
}

// Close takes what was published before it and sends the spans that wait, at most until ctx
// ends. It may be called twice.
func (f *Follower) Close(ctx context.Context) {
	f.once.Do(func() {
		defer f.cancel()
		defer context.AfterFunc(ctx, f.cancel)() // so that the receiving goroutine does not outlast ctx
		close(f.stop)
		f.done.Wait()
		if f.export != nil {
			f.export.close(ctx)
		}
		if f.gaps > 0 {
			f.opts.Log.Warn("events came faster than they could be reported", "component", "telemetry", "event", "events_missed", "gaps", f.gaps)
		}
	})
}

func (f *Follower) take(events []chat.Event) {
	for _, ev := range events {
		if f.tracer != nil {
			f.tracer.event(ev)
		}
		switch body := ev.Body.(type) {
		case chat.RunStarted:
			if len(f.runs) >= maxTraced {
				clear(f.runs)
			}
			f.runs[body.Run] = ev
		case chat.RunEnded:
			f.logRun(ev, body)
			delete(f.runs, body.Run)
		}
	}
}

// lookupTime bounds a read of the journal.
const lookupTime = 2 * time.Second

// runStart finds the start of the run of an event.
func (f *Follower) runStart(ev chat.Event) (chat.Event, bool) {
	if first, ok := f.runs[ev.Run]; ok {
		return first, true
	}
	if f.opts.RunStart == nil {
		return chat.Event{}, false
	}
	ctx, cancel := context.WithTimeout(f.ctx, lookupTime)
	defer cancel()
	first, err := f.opts.RunStart(ctx, ev)
	body, ok := first.Body.(chat.RunStarted)
	return first, err == nil && ok && body.Run == ev.Run
}

// maxErrorText is how many characters of an error message a log line has.
const maxErrorText = 500

// logRun writes the line of a run.
func (f *Follower) logRun(ev chat.Event, end chat.RunEnded) {
	level := slog.LevelInfo
	if end.Reason == chat.EndFailed {
		level = slog.LevelWarn
	}
	if !f.opts.Log.Enabled(f.ctx, level) {
		return
	}
	line := []slog.Attr{slog.String("component", "run"), slog.String("event", "run_ended"), slog.Any("thread", ev.Thread), slog.String("run", end.Run),
		slog.String("outcome", string(end.Reason)), slog.Int("steps", end.Steps),
		slog.Int("input", end.Usage.Input+end.Usage.CacheRead+end.Usage.CacheWrite), slog.Int("output", end.Usage.Output), slog.Int("cached", end.Usage.CacheRead),
		slog.Float64("cost", float64(end.Cost)/float64(dollar))}
	if first, ok := f.runStart(ev); ok {
		line = append(line, slog.Float64("seconds", seconds(first.At, ev.At)), slog.String("model", first.Body.(chat.RunStarted).Model))
	}
	if end.Error != nil {
		line = append(line, slog.String("error", end.Error.Kind+": "+text.Clip(end.Error.Message, maxErrorText)))
	}
	f.opts.Log.LogAttrs(f.ctx, level, "run ended", line...)
}
