package audit

import (
	"database/sql"

	"chorus/internal/approval"
)

// What tests need to change lines behind the log's back, as somebody would who wants to hide something.
const (
	PageLines   = pageLines
	Sealed      = sealed
	Columns     = auditColumns
	InsertAudit = insertAudit
)

// Row is a line as it is stored.
type Row struct{ auditRow }

// NewRow is a line that is on no chain yet.
func NewRow(a approval.Audit, now int64) (Row, error) {
	r, err := newAuditRow(a, now)
	return Row{r}, err
}

// Beginning is what the first line of a chain follows.
func Beginning(chain string) Row { return Row{beginning(chain)} }

// Scan reads a row of Columns.
func (r *Row) Scan(rows *sql.Rows) error { return r.scan(rows) }

// Text is one of its texts.
func (r *Row) Text(i int) *string { return &r.texts[i] }

// Prev is the hash of the line before it, and Hash its own.
func (r *Row) Prev() *string { return &r.prev }
func (r *Row) Hash() *string { return &r.hash }

// After is the hash that it has behind another, and Values are its columns.
func (r *Row) After(prev string) string { return r.after(prev) }
func (r *Row) Values() []any            { return r.values() }

// Follow makes it the one behind another.
func (r *Row) Follow(end Row) { r.follow(end.auditRow) }
