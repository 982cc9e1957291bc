// Package documents implements the tables of documents: named texts with versions.
package documents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/database"
	"chorus/internal/digest"
	"chorus/internal/documents"
	"chorus/internal/store"
)

// Documents keeps documents in the store's file. It is safe for concurrent use.
type Documents struct{ db *store.DB }

var _ documents.Store = (*Documents)(nil)

// New keeps documents in a store.
func New(db *store.DB) *Documents { return &Documents{db} }

// keptVersions is for how many versions of a document the author is kept.
const keptVersions = 50

const headColumns = `name, version, seq, digest, deleted`

func scanHead(rows *sql.Rows, h *documents.Head, more ...any) error {
	var deleted int64
	err := rows.Scan(append([]any{&h.Name, &h.Version, &h.Seq, &h.Digest, &deleted}, more...)...)
	h.Deleted = deleted != 0
	return err
}

// Head implements documents.Store.
func (d *Documents) Head(ctx context.Context, name string) (documents.Head, error) {
	h := documents.Head{Name: name}
	err := d.db.Query(ctx, `SELECT `+headColumns+` FROM documents WHERE name = ?`, []any{name}, func(rows *sql.Rows) error { return scanHead(rows, &h) })
	if err != nil {
		return documents.Head{}, fmt.Errorf("look up document %s: %w", name, err)
	}
	return h, nil
}

// Get implements documents.Store.
func (d *Documents) Get(ctx context.Context, name string) (documents.Document, error) {
	out := documents.Document{Head: documents.Head{Name: name}}
	err := d.db.Query(ctx, `SELECT `+headColumns+`, body FROM documents WHERE name = ?`, []any{name}, func(rows *sql.Rows) error { return scanHead(rows, &out.Head, &out.Body) })
	if err != nil {
		return documents.Document{}, fmt.Errorf("read document %s: %w", name, err)
	}
	return out, nil
}

// Put implements documents.Store.
func (d *Documents) Put(ctx context.Context, name string, body []byte, onVersion int64, by string) (documents.Head, error) {
	h, err := d.change(ctx, documents.Head{Name: name, Version: onVersion + 1, Digest: digest.Of(body)}, body, by)
	if err != nil {
		return documents.Head{}, fmt.Errorf("write document %s: %w", name, err)
	}
	return h, nil
}

// Delete implements documents.Store. The text is removed but the row
// stays, to tell other machines to remove their copies.
func (d *Documents) Delete(ctx context.Context, name string, onVersion int64, by string) (documents.Head, error) {
	h, err := d.change(ctx, documents.Head{Name: name, Version: onVersion + 1, Deleted: true}, nil, by)
	if err != nil {
		return documents.Head{}, fmt.Errorf("remove document %s: %w", name, err)
	}
	return h, nil
}

// change writes the next version. It increments the counter first: its row is locked
// until the commit, so no two changes are numbered out of order.
func (d *Documents) change(ctx context.Context, to documents.Head, body []byte, by string) (documents.Head, error) {
	if to.Name == "" {
		return to, errors.New("it has no name")
	}
	if body == nil {
		body = []byte{}
	}
	deleted := int64(0)
	if to.Deleted {
		deleted = 1
	}
	err := d.db.Write(ctx, func(tx database.Tx) error {
		if err := tx.Row(`UPDATE document_changes SET seq = seq + 1 WHERE one = 1 RETURNING seq`, nil, &to.Seq); err != nil {
			return err
		}
		query, args := `UPDATE documents SET version = ?, seq = ?, digest = ?, deleted = ?, body = ? WHERE name = ? AND version = ?`,
			[]any{to.Version, to.Seq, to.Digest, deleted, body, to.Name, to.Version - 1}
		if to.Version == 1 {
			query, args = `INSERT INTO documents (version, seq, digest, deleted, body, name) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`, args[:6]
		}
		switch n, err := tx.Change(query, args...); {
		case err != nil:
			return err
		case n == 0:
			return documents.ErrMoved
		}
		if err := tx.Exec(`INSERT INTO document_versions (name, version, digest, changed_by, changed_at) VALUES (?, ?, ?, ?, ?)`,
			to.Name, to.Version, to.Digest, by, tx.Now().UnixMicro()); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM document_versions WHERE name = ? AND version <= ?`, to.Name, to.Version-keptVersions)
	})
	return to, err
}

// List implements documents.Store.
func (d *Documents) List(ctx context.Context, prefix string) ([]documents.Head, error) {
	out, err := d.heads(ctx, `SELECT `+headColumns+` FROM documents WHERE substr(name, 1, ?) = ? ORDER BY name`, len([]rune(prefix)), prefix)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	return out, nil
}

// Changed implements documents.Store.
func (d *Documents) Changed(ctx context.Context, after int64) ([]documents.Head, error) {
	out, err := d.heads(ctx, `SELECT `+headColumns+` FROM documents WHERE seq > ? ORDER BY seq`, after)
	if err != nil {
		return nil, fmt.Errorf("list changed documents: %w", err)
	}
	return out, nil
}

func (d *Documents) heads(ctx context.Context, query string, args ...any) ([]documents.Head, error) {
	var out []documents.Head
	err := d.db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, h *documents.Head) error { return scanHead(rows, h) }))
	return out, err
}

// Last implements documents.Store.
func (d *Documents) Last(ctx context.Context) (int64, error) {
	var seq int64
	err := d.db.Query(ctx, `SELECT seq FROM document_changes WHERE one = 1`, nil, func(rows *sql.Rows) error { return rows.Scan(&seq) })
	if err != nil {
		return 0, fmt.Errorf("number of the last change of a document: %w", err)
	}
	return seq, nil
}

// Identity implements documents.Store.
func (d *Documents) Identity(ctx context.Context) (string, error) {
	value, err := d.db.Recall(ctx, "store", "identity")
	return strings.TrimSpace(string(value)), err
}
