package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler redacts records before next gets them: their message and every value. now returns the
// current redactor, because keys may change while a program runs; it must not log.
func Handler(next slog.Handler, now func() *Redactor) slog.Handler {
	return &handler{next, now}
}

type handler struct {
	next slog.Handler
	now  func() *Redactor
}

var _ slog.Handler = (*handler)(nil)

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	r := h.now()
	out := slog.NewRecord(rec.Time, rec.Level, r.Text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(r.attr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	r := h.now()
	hidden := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		hidden[i] = r.attr(a)
	}
	return &handler{h.next.WithAttrs(hidden), h.now}
}

func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.next.WithGroup(name), h.now} }

func (r *Redactor) attr(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.named(a.Key, value.String()))
	case slog.KindGroup:
		group := make([]slog.Attr, len(value.Group()))
		for i, inner := range value.Group() {
			group[i] = r.attr(inner)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	case slog.KindAny:
		text := fmt.Sprintf("%+v", value.Any())
		if err, ok := value.Any().(error); ok {
			text = err.Error()
		}
		if bytes, ok := value.Any().([]byte); ok {
			text = string(bytes)
		}
		if hidden := r.named(a.Key, text); hidden != text {
			return slog.String(a.Key, hidden)
		}
	}
	return a
}
