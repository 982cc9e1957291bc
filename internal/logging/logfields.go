package logging

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"

	"chorus/internal/chat"
)

// logFields adds the agent and the channel to records that name a thread, so that one can search for each.
type logFields struct{ slog.Handler }

var _ slog.Handler = logFields{}

func (h logFields) Handle(ctx context.Context, record slog.Record) error {
	var thread chat.ThreadID
	var agent, channel bool
	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "thread":
			thread = chat.ThreadID(a.Value.Resolve().String())
		case "agent":
			agent = true
		case "channel":
			channel = true
		}
		return true
	})
	if _, err := chat.ParseThreadID(string(thread)); err == nil {
		record = record.Clone()
		if !agent {
			record.AddAttrs(slog.String("agent", agentOf(thread)))
		}
		if !channel {
			record.AddAttrs(slog.String("channel", thread.Transport()+":"+thread.Place()))
		}
	}
	return h.Handler.Handle(ctx, record)
}

// agentOf returns the agent that answers in a thread.
func agentOf(thread chat.ThreadID) string {
	return cmp.Or(thread.Agent(), chat.DefaultAgent)
}

func (h logFields) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logFields{h.Handler.WithAttrs(attrs)}
}

func (h logFields) WithGroup(name string) slog.Handler { return logFields{h.Handler.WithGroup(name)} }

// logSpeaker passes records to a listener, once there is one.
type logSpeaker struct {
	hidden func() []string

	mu sync.Mutex
	to io.Writer // nil if there is none
}

func (s *logSpeaker) heard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to != nil
}

func (s *logSpeaker) Write(record []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to != nil {
		_, _ = s.to.Write(hide(record, s.hidden())) // a listener that has left gets nothing
	}
	return len(record), nil
}

// whenSpoken is a handler that costs nothing while nobody listens.
type whenSpoken struct {
	slog.Handler
	speaker *logSpeaker
}

var _ slog.Handler = whenSpoken{}

func (h whenSpoken) Enabled(ctx context.Context, level slog.Level) bool {
	return h.speaker.heard() && h.Handler.Enabled(ctx, level)
}

func (h whenSpoken) WithAttrs(attrs []slog.Attr) slog.Handler {
	return whenSpoken{h.Handler.WithAttrs(attrs), h.speaker}
}

func (h whenSpoken) WithGroup(name string) slog.Handler {
	return whenSpoken{h.Handler.WithGroup(name), h.speaker}
}

// SpeakLog also writes the log to w from now on, as a server does under systemd.
// CHORUS_LOG_STDERR can turn this off or on; otherwise is the default.
func (l *Logs) SpeakLog(w io.Writer, otherwise bool) {
	if l.files != nil && l.wanted(otherwise) { // without files, somebody else owns the log
		l.files.spoken.begin(w)
	}
}

// ShowLog writes warnings and errors to w from now on, in words for people at a terminal. With
// CHORUS_LOG_STDERR=on it writes the whole log as in the file, with off nothing.
func (l *Logs) ShowLog(w io.Writer) {
	switch {
	case l.files == nil || !l.wanted(true):
	case l.wanted(false):
		l.files.spoken.begin(w)
	default:
		l.files.shown.begin(w)
	}
}

// wanted returns what CHORUS_LOG_STDERR says, or otherwise.
func (l *Logs) wanted(otherwise bool) bool {
	switch l.Env("CHORUS_LOG_STDERR") {
	case "on", "1", "true", "yes":
		return true
	case "off", "0", "false", "no":
		return false
	}
	return otherwise
}

func (s *logSpeaker) begin(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = w
}
