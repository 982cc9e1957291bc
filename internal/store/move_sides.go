package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"chorus/internal/chat"
)

// snapshot lets read see the database as it is at one moment.
func (db *DB) snapshot(ctx context.Context, read func(rowReader) error) error {
	if db.pg != nil {
		tx, err := db.pg.pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return db.pg.explain(err)
		}
		defer func() { _ = tx.Rollback() }() // it wrote nothing
		if err := unhurried(ctx, tx); err != nil {
			return err
		}
		return db.pg.explain(read(tx))
	}
	conn, err := db.readers.Conn(ctx)
	if err != nil {
		return explain(db.path, err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return explain(db.path, err)
	}
	err = read(conn)
	_, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	return explain(db.path, errors.Join(err, end))
}

// unhurried lifts the limits that keep a node's transactions short.
func unhurried(ctx context.Context, tx *sql.Tx) error {
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if _, err := tx.ExecContext(ctx, "SET LOCAL "+limit+" = 0"); err != nil {
			return err
		}
	}
	return nil
}

// rewrite lets write fill the database in one transaction, in which nothing is counted or refused because of what it writes.
func (db *DB) rewrite(ctx context.Context, write func(rowWriter) error) error {
	if db.pg != nil {
		return db.pg.explain(db.rewriteServer(ctx, write))
	}
	return db.write(ctx, func(tx *transaction) error {
		triggers := map[string]string{}
		err := tx.rows(`SELECT name, sql FROM sqlite_master WHERE type = 'trigger'`, nil, func(rows *sql.Rows) error {
			var name, text string
			err := rows.Scan(&name, &text)
			triggers[name] = text
			return err
		})
		if err != nil {
			return err
		}
		for name := range triggers {
			if err := tx.exec(`DROP TRIGGER ` + name); err != nil {
				return err
			}
		}
		if err := write(fileWriter{tx}); err != nil {
			return err
		}
		for _, text := range triggers {
			if err := tx.exec(text); err != nil {
				return err
			}
		}
		return nil
	})
}

// fileWriter writes through the file's one writer.
type fileWriter struct{ tx *transaction }

func (w fileWriter) exec(query string, args ...any) error { return w.tx.exec(query, args...) }

func (w fileWriter) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := w.tx.w.stmt(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (db *DB) rewriteServer(ctx context.Context, write func(rowWriter) error) error {
	tx, err := db.pg.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it is committed
	if err := unhurried(ctx, tx); err != nil {
		return err
	}
	w := serverWriter{ctx, tx}
	triggered := []string{"audit", "audit_seals", "audit_sealed", "ledger", "spent_days"}
	for _, name := range triggered {
		if err := w.exec(`ALTER TABLE ` + name + ` DISABLE TRIGGER USER`); err != nil {
			return err
		}
	}
	if err := write(w); err != nil {
		return err
	}
	for _, name := range triggered {
		if err := w.exec(`ALTER TABLE ` + name + ` ENABLE TRIGGER USER`); err != nil {
			return err
		}
	}
	for _, name := range []string{"audit", "work_events"} {
		if err := w.exec(`SELECT setval(pg_get_serial_sequence('` + name + `', 'id'), greatest((SELECT max(id) FROM ` + name + `), 1), EXISTS (SELECT 1 FROM ` + name + `))`); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// serverWriter writes on a connection of its own.
type serverWriter struct {
	ctx context.Context
	tx  *sql.Tx
}

func (w serverWriter) exec(query string, args ...any) error {
	_, err := w.tx.ExecContext(w.ctx, numberArguments(query), args...)
	return err
}

func (w serverWriter) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return w.tx.QueryContext(ctx, query, args...)
}

// inserter writes the rows of a table, many at once.
type inserter struct {
	t      table
	w      rowWriter
	most   int // rows at once
	values []any
	bytes  int
}

// A statement has so many values and about so many bytes at most.
const (
	maxValues     = 2000
	maxValueBytes = 1 << 20
)

func newInserter(t table, w rowWriter) *inserter {
	return &inserter{t: t, w: w, most: max(1, maxValues/len(t.columns))}
}

func (in *inserter) add(row []any) error {
	in.values = append(in.values, row...)
	for _, v := range row {
		switch v := v.(type) {
		case string:
			in.bytes += len(v)
		case []byte:
			in.bytes += len(v)
		}
	}
	if in.rows() >= in.most || in.bytes >= maxValueBytes {
		return in.flush()
	}
	return nil
}

func (in *inserter) rows() int { return len(in.values) / len(in.t.columns) }

func (in *inserter) flush() error {
	if len(in.values) == 0 {
		return nil
	}
	row := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(in.t.columns)), ", ") + ")"
	text := `INSERT INTO ` + in.t.name + ` (` + strings.Join(in.t.names(), ", ") + `) VALUES ` + strings.TrimSuffix(strings.Repeat(row+", ", in.rows()), ", ")
	err := in.w.exec(text, in.values...)
	in.values, in.bytes = in.values[:0], 0
	return err
}

// fetch puts the bytes of a blob that is outside of the database into its row, and fails where they are not what the row says. A copy
// is without them.
func (m *move) fetch(ctx context.Context, of *DB, t table, values []any) error {
	hash, data, at := t.at("hash"), t.at("data"), t.at("place")
	name, ok := values[hash].(string)
	if !ok {
		return errors.New("a blob has no hash")
	}
	place, _ := values[at].(string)
	if values[data] == nil && m.copying {
		return nil
	}
	if values[data] == nil {
		bytes, err := of.bytesOutside(ctx, name, place)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, chat.ErrLost) {
			return fmt.Errorf("the bytes of an attachment are missing; `chorus doctor --thorough --fix` takes note of it, then move again: %w", err)
		}
		if err != nil {
			return err
		}
		values[data] = bytes
	}
	bytes, _ := values[data].([]byte)
	if sum := sha256.Sum256(bytes); hex.EncodeToString(sum[:]) != name {
		return fmt.Errorf("the bytes of the attachment %s are damaged; `chorus doctor --thorough --fix` takes note of it, then move again", name)
	}
	return nil
}

// bytesOutside reads the bytes of a blob from its file or from the storage.
func (db *DB) bytesOutside(ctx context.Context, hash, place string) ([]byte, error) {
	if place != "" {
		return db.getApart(ctx, hash, place)
	}
	return os.ReadFile(db.blobPath(hash))
}

// lay puts a large blob where the new database keeps it. Bytes that were read from the storage that the new one has, too, are there.
func (m *move) lay(ctx context.Context, t table, values []any) error {
	at, data := t.at("place"), t.at("data")
	was, hash := values[at], values[t.at("hash")].(string)
	values[at] = ""
	bytes, _ := values[data].([]byte)
	switch {
	case m.copying:
		return nil
	case m.to.apart(len(bytes)):
		values[data], values[at] = nil, m.to.storage.Name()
		if was == m.to.storage.Name() {
			return nil
		}
		return m.to.storageProblem(m.to.storage.Put(ctx, hash, bytes))
	case m.to.OnServer() || len(bytes) <= maxInline:
		return nil
	}
	values[data] = nil
	return m.to.writeBlobFile(hash, bytes)
}

// same is a row as it is in both databases: blobs may be in another place.
func (t table) same(values []any) []any {
	if t.name != "blobs" {
		return values
	}
	out := slices.Clone(values)
	out[t.at("place")] = ""
	return out
}

func (t table) at(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}
