package service

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
)

// Export implements the operation of that name. The file is written while it is read.
func (o *Handler) Export(ctx context.Context, by operation.Caller, in operations.ExportRequest) (operation.File, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operation.File{}, err
	}
	as := cmp.Or(in.Format, operations.Markdown)
	media, suffix := as.MediaType()
	return operation.File{Name: in.ID + suffix, MediaType: media + "; charset=utf-8", ReadCloser: operation.Generated(func(to io.Writer) error {
		return o.ToError(o.app.Export(ctx, to, row, operations.ExportRequest{Format: as, Kind: in.Kind, Run: in.Run}))
	})}, nil
}

// exported reports whether an event has the kind and the run that an export is filtered by.
func exported(in operations.ExportRequest, ev chat.Event) bool {
	return (in.Kind == "" || in.Kind == string(ev.Body.Kind())) && (in.Run == "" || in.Run == ev.Run)
}

// exportCSV writes the journal as a table.
func (s *Service) exportCSV(ctx context.Context, to io.Writer, row journal.Thread, in operations.ExportRequest) error {
	hide := s.Logs.Redactor()
	w := csv.NewWriter(to)
	_ = w.Write([]string{"seq", "at", "kind", "who", "run", "platform", "body"}) // an error is kept for w.Error
	for ev, err := range s.DB.AllEvents(ctx, row.ID, 0) {
		if err != nil {
			return err
		}
		if !exported(in, ev) {
			continue
		}
		body, err := chat.EncodeBody(ev.Body)
		if err != nil {
			return err
		}
		if err := w.Write(cells(strconv.FormatInt(ev.Seq, 10), ev.At.UTC().Format(time.RFC3339Nano), string(ev.Body.Kind()), ev.Who, ev.Run, ev.Platform, string(hide.JSON(body)))); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// cells returns the cells of a row without formulas, because others wrote their contents.
func cells(values ...string) []string {
	for i, v := range values {
		if v != "" && strings.ContainsRune("=+-@\t\r", rune(v[0])) {
			values[i] = "'" + v
		}
	}
	return values
}

// Limits and formats of an export of the audit log.
const (
	maxExported = 100_000 // lines
	exportPage  = 500
	cutExport   = "there are more lines: an export has at most 100,000; narrow it by time"
)

// ExportAudit implements the operation of that name.
func (o *Handler) ExportAudit(ctx context.Context, by operation.Caller, in operations.AuditExport) (operation.File, error) {
	q := operations.AuditQuery{Session: in.Session, Agent: in.Agent, Who: in.Who, Decision: in.Decision, Run: in.Run, Since: in.Since, Until: in.Until, Limit: exportPage}
	first, err := o.Audit(ctx, by, q) // errors of access and input are reported before the file begins
	if err != nil {
		return operation.File{}, err
	}
	as := cmp.Or(in.Format, operations.CSV)
	media, suffix := as.MediaType()
	return operation.File{Name: "audit" + suffix, MediaType: media + "; charset=utf-8", ReadCloser: operation.Generated(func(to io.Writer) error {
		put, end := auditLines(to)
		if as == operations.CSV {
			put, end = auditRows(to)
		}
		for written, page := 0, first; ; {
			for i := range page.Items {
				if err := put(page.Items[i]); err != nil {
					return err
				}
			}
			if written += len(page.Items); page.Next == "" {
				return end("")
			}
			if written >= maxExported {
				return end(cutExport)
			}
			q.Cursor = page.Next
			var err error
			if page, err = o.Audit(ctx, by, q); err != nil {
				return o.ToError(err)
			}
		}
	})}, nil
}

// auditLines writes lines of the audit log as JSON; end says why not all of them are included.
func auditLines(to io.Writer) (put func(operations.AuditLine) error, end func(cut string) error) {
	w := json.NewEncoder(to)
	return func(l operations.AuditLine) error { return w.Encode(l) }, func(cut string) error {
		if cut == "" {
			return nil
		}
		return w.Encode(map[string]string{"cut": cut})
	}
}

// auditRows writes them as a table, with the names of rules next to their expressions.
func auditRows(to io.Writer) (put func(operations.AuditLine) error, end func(cut string) error) {
	w := csv.NewWriter(to)
	_ = w.Write([]string{"seq", "at", "who", "agent", "session", "run", "action", "decision", "rule name", "rule", "detail"}) // an error is kept for w.Error
	put = func(l operations.AuditLine) error {
		return w.Write(cells(strconv.FormatInt(l.Seq, 10), l.At.UTC().Format(time.RFC3339Nano), l.Who, l.Agent, l.Session, l.Run, l.Action, l.Decision, permit.RuleName(l.Rule), l.Rule, l.Detail))
	}
	return put, func(cut string) error {
		if cut != "" {
			_ = w.Write([]string{cut})
		}
		w.Flush()
		return w.Error()
	}
}

// Replay implements the operation of that name.
func (o *Handler) Replay(ctx context.Context, by operation.Caller, in operations.SessionRef) iter.Seq2[operations.ReplayLine, error] {
	return operations.ReplayLines(func(yield func(operations.Replayed, error) bool) {
		row, err := o.Find(ctx, by, in.ID)
		if err != nil {
			yield(operations.Replayed{}, err)
			return
		}
		for one, err := range o.app.Replay(ctx, row.ID) {
			if !yield(one, o.ToError(err)) {
				return
			}
		}
	})
}
