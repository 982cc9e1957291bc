package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
)

// File returns the file with the newest records.
func (l *Logs) File() string { return filepath.Join(l.Home.Logs(), LogName) }

// forPeople writes warnings and errors as sentences for people who watch a terminal: the time, the
// severity, what happened and, if known, why. The rest of a record is only in the log file.
type forPeople struct {
	out  io.Writer
	why  string // an error attribute added before the record
	name string // the thread, likewise
}

var _ slog.Handler = forPeople{}

func (h forPeople) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (h forPeople) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		h = h.with(a)
		return true
	})
	degree := "warning"
	if record.Level >= slog.LevelError {
		degree = "error"
	}
	line := record.Time.Format("15:04:05") + "  " + degree + ": " + record.Message
	if h.why != "" {
		line += ": " + h.why
	}
	if h.name != "" {
		line += " (in " + h.name + ")"
	}
	_, err := fmt.Fprintln(h.out, strings.ReplaceAll(line, "\n", " "))
	return err
}

func (h forPeople) with(a slog.Attr) forPeople {
	switch a.Key {
	case "error", "reason":
		h.why = a.Value.Resolve().String()
	case "thread":
		h.name = a.Value.Resolve().String()
	}
	return h
}

func (h forPeople) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h = h.with(a)
	}
	return h
}

func (h forPeople) WithGroup(string) slog.Handler { return h }
