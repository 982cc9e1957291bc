package documents

import (
	"chorus/internal/database"
	"chorus/internal/documents"
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Versions gives who changed a document, and when, the newest first.
func (d *Documents) Versions(ctx context.Context, name string) ([]documents.Version, error) {
	var out []documents.Version
	err := d.db.Query(ctx, `SELECT version, digest, changed_by, changed_at FROM document_versions WHERE name = ? ORDER BY version DESC`, []any{name}, database.Fill(&out, func(rows *sql.Rows, v *documents.Version) error {
		var at int64
		err := rows.Scan(&v.Version, &v.Digest, &v.By, &at)
		v.At = time.UnixMicro(at)
		return err
	}))
	if err != nil {
		return nil, fmt.Errorf("list versions of document %s: %w", name, err)
	}
	return out, nil
}
