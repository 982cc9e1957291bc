package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

// FollowOptions is what a follower needs to know.
type FollowOptions struct {
	Bus     *bus.Bus
	Log     *slog.Logger
	Version string
	Env     func(string) string // whose OTEL_* variables count
	// Began finds where a run began: the last start of a run in front of an event. It is
	// asked for runs that began in another process; nil: nobody knows.
	Began func(context.Context, chat.Event) (chat.Event, error)
}

// Follower writes one line for each run that ends in this process, and sends spans if
// the environment asks for them. Without that it wakes for the beginning and the end of
// a run and for nothing between them.
type Follower struct {
	o      FollowOptions
	ear    *bus.Listener
	runs   map[string]chat.Event // the starts of those that are on; the reading goroutine's
	tracer *tracer               // nil: no spans
	export *exporter
	gaps   atomic.Int64
	stop   chan struct{}
	once   sync.Once
	done   sync.WaitGroup
}

// Follow begins to listen.
func Follow(o FollowOptions) *Follower {
	f := &Follower{o: o, runs: map[string]chat.Event{}, stop: make(chan struct{})}
	kinds := []chat.Kind{chat.KindRunStarted, chat.KindRunEnded}
	if Wanted(o.Env) {
		warn := func(text string) { o.Log.Warn(text, "component", "otel", "event", "otel_settings") }
		if s := read(o.Env, o.Version, warn); s.endpoint != "" {
			f.export = newExporter(s, o.Version, o.Log)
			f.tracer = &tracer{runs: map[string]*traced{}, sample: s.sample, put: f.export.put, began: f.began}
			kinds = nil // spans are made of everything
		}
	}
	f.ear = o.Bus.Hear(kinds...)
	f.done.Go(func() {
		defer f.ear.Close()
		hear(f.ear, f.stop, f.take, func() { f.gaps.Add(1) })
	})
	return f
}

// Close takes what was rung before it and sends the spans that wait, at most until ctx
// ends. It may be called twice.
func (f *Follower) Close(ctx context.Context) {
	f.once.Do(func() { close(f.stop) })
	f.done.Wait()
	if f.export != nil {
		f.export.close(ctx)
	}
	if n := f.gaps.Swap(0); n > 0 {
		f.o.Log.Warn("events came faster than they could be told", "component", "telemetry", "event", "events_missed", "gaps", n)
	}
}

func (f *Follower) take(events []chat.Event) {
	for _, ev := range events {
		if f.tracer != nil {
			f.tracer.one(ev)
		}
		switch body := ev.Body.(type) {
		case chat.RunStarted:
			if len(f.runs) >= maxTraced {
				clear(f.runs)
			}
			f.runs[body.Run] = ev
		case chat.RunEnded:
			f.tell(ev, body)
			delete(f.runs, body.Run)
		}
	}
}

// lookTime bounds a look into the journal.
const lookTime = 2 * time.Second

// began finds the start of a run that is not known here.
func (f *Follower) began(ev chat.Event) (chat.Event, bool) {
	if first, ok := f.runs[ev.Run]; ok {
		return first, true
	}
	if f.o.Began == nil {
		return chat.Event{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	first, err := f.o.Began(ctx, ev)
	body, ok := first.Body.(chat.RunStarted)
	return first, err == nil && ok && body.Run == ev.Run
}

// tell writes the line of a run.
func (f *Follower) tell(ev chat.Event, end chat.RunEnded) {
	level := slog.LevelInfo
	if end.Reason == chat.EndFailed {
		level = slog.LevelWarn
	}
	ctx := context.Background()
	if !f.o.Log.Enabled(ctx, level) {
		return
	}
	line := []slog.Attr{slog.String("component", "run"), slog.String("event", "run_ended"), slog.Any("thread", ev.Thread), slog.String("run", end.Run),
		slog.String("outcome", string(end.Reason)), slog.Int("steps", end.Steps),
		slog.Int("input", end.Usage.Input+end.Usage.CacheRead+end.Usage.CacheWrite), slog.Int("output", end.Usage.Output), slog.Int("cached", end.Usage.CacheRead),
		slog.Float64("cost", float64(end.Cost)/float64(dollar))}
	if first, ok := f.began(ev); ok {
		line = append(line, slog.Float64("seconds", between(first.At, ev.At)), slog.String("model", first.Body.(chat.RunStarted).Model))
	}
	if end.Error != nil {
		line = append(line, slog.String("error", end.Error.Kind+": "+clip(end.Error.Message, 500)))
	}
	f.o.Log.LogAttrs(ctx, level, "run ended", line...)
}

// clip cuts a text, for a line that people read.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
