// Package dbcopy copies databases, in use or not: a whole one into a file for backups, from a
// file to a server and back, and large blobs from one storage to another.
package dbcopy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
)

// Move copies everything in a database into another one, which must be new: from a file
// to a server, or back. Before it commits, it reads back what was written and compares
// it with what was read first, table by table. A move that fails leaves the new
// database empty and never changes the old one.
//
// It does not copy what is generated again (the search index, sums that only budgets need) or what
// is only valid while nodes run. progress, which may be nil, is called for each completed table.
func Move(ctx context.Context, from, to store.Options, progress func(MovedTable)) ([]MovedTable, error) {
	return MoveOnce(ctx, "", from, to, progress)
}

// MoveOnce is a move with a name, which is written together with everything else. If the
// name is already in the new database, an earlier call completed the move and died
// before it could report so; MoveOnce then does nothing.
func MoveOnce(ctx context.Context, name string, from, to store.Options, progress func(MovedTable)) (tables []MovedTable, err error) {
	if (from.URL != "") == (to.URL != "") {
		return nil, errors.New("move: one of the databases must be a file and the other one on a server; files are copied by `chorus backup`, servers by pg_dump")
	}
	if from.URL == "" {
		if _, err := os.Stat(from.Path); err != nil {
			return nil, fmt.Errorf("move: %w", err) // opening it would create one
		}
	}
	old, err := store.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	made, err := store.Open(ctx, to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	m := &move{from: old, to: made, name: name, progress: progress}
	server := made
	if old.OnServer() {
		server = old
	}
	if m.tables, err = movable(ctx, server); err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	if err := m.nobody(ctx); err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	if name != "" {
		if before, err := made.Recall(ctx, movedKind, movedKey); err != nil || string(before) == name {
			return nil, err
		}
	}
	if err := m.run(ctx); err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	return m.done, nil
}

// movedKind and movedKey are where a database records which move created it. Rows of this kind are not moved.
const movedKind, movedKey = "store", "moved"

// MovedTable is a table whose rows are in the new database.
type MovedTable struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	Sum  string `json:"sum"` // of all its rows, the same in both databases
}

// ErrNotEmpty means that the target database is not empty.
var ErrNotEmpty = errors.New("the database that is moved to is not empty")

// notMoved are the tables that are generated again or that belong to running nodes.
var notMoved = []string{"counted", "spent", "nodes", "owned", "search_places", "search_docs"}

// firstMoved are tables that rows of other tables refer to.
var firstMoved = []string{"threads", "approvals"}

// movedRows excludes what a database says about itself.
var movedRows = map[string]string{"memos": " WHERE kind NOT IN ('store', '" + blobs.LeavingKind + "')"}

// table is a table to move, with its columns in a fixed order.
type table struct {
	name    string
	columns []column
	key     []string
}

type column struct{ name, kind string }

// movable lists the tables according to the server. Both dialects have the same ones.
func movable(ctx context.Context, server *store.DB) ([]table, error) {
	found := map[string]*table{}
	err := server.Query(ctx, `SELECT table_name, column_name, data_type FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name NOT LIKE 'goose\_%' AND column_name <> 'xact' ORDER BY table_name, ordinal_position`, nil, func(rows *sql.Rows) error {
		var name string
		var c column
		if err := rows.Scan(&name, &c.name, &c.kind); err != nil || slices.Contains(notMoved, name) {
			return err
		}
		found[name] = cmp.Or(found[name], &table{name: name})
		found[name].columns = append(found[name].columns, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = server.Query(ctx, `SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
		WHERE i.indisprimary AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, array_position(i.indkey::int2[], a.attnum)`, nil, func(rows *sql.Rows) error {
		var name, key string
		err := rows.Scan(&name, &key)
		if t := found[name]; t != nil {
			t.key = append(t.key, key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]table, 0, len(found))
	for _, t := range found {
		if len(t.key) == 0 {
			return nil, fmt.Errorf("the table %s has no key", t.name)
		}
		out = append(out, *t)
	}
	rank := func(t table) int {
		if i := slices.Index(firstMoved, t.name); i >= 0 {
			return i
		}
		return len(firstMoved)
	}
	slices.SortFunc(out, func(a, b table) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	return out, nil
}

// selects returns the query for all rows in the order of their keys.
func (t table) selects() string {
	return `SELECT ` + strings.Join(t.names(), ", ") + ` FROM ` + t.name + movedRows[t.name] + ` ORDER BY ` + strings.Join(t.key, ", ")
}

func (t table) names() []string {
	out := make([]string, len(t.columns))
	for i, c := range t.columns {
		out[i] = c.name
	}
	return out
}

// move is a move in progress.
type move struct {
	from, to *store.DB
	name     string // "" if it has none
	tables   []table
	copying  bool // to a file that will have the bytes of files and of the storage next to it
	progress func(MovedTable)
	done     []MovedTable
}

// beatPause is longer than a living node needs for a beat.
const beatPause = 3 * time.Second

// nobody fails if a node uses either database: what it wrote to a table that was already read would be lost.
func (m *move) nobody(ctx context.Context) error {
	server := m.to
	if m.from.OnServer() {
		server = m.from
	}
	beats := func() (map[string]int64, error) {
		out := map[string]int64{}
		err := server.Query(ctx, `SELECT name, beat FROM nodes WHERE dead = 0`, nil, func(rows *sql.Rows) error {
			var name string
			var beat int64
			err := rows.Scan(&name, &beat)
			out[name] += beat
			return err
		})
		return out, err
	}
	before, err := beats()
	if err != nil || len(before) == 0 {
		return err
	}
	if !await.For(ctx, beatPause) {
		return ctx.Err()
	}
	after, err := beats()
	if err != nil {
		return err
	}
	for name, beat := range after {
		if before[name] != beat {
			return fmt.Errorf("node %s works with %s: stop it first", name, server.Path())
		}
	}
	return nil
}

func (m *move) run(ctx context.Context) error {
	return m.from.ReadAsOfNow(ctx, func(r database.Reader) error {
		return rewrite(ctx, m.to, func(w database.Writer) error {
			for _, t := range m.tables {
				done, err := m.one(ctx, t, r, w)
				if err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
				m.done = append(m.done, done)
				if m.progress != nil {
					m.progress(done)
				}
			}
			if m.name == "" {
				return nil
			}
			return w.Exec(`INSERT INTO memos (kind, key, value, at) VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value`,
				movedKind, movedKey, m.name, database.Micros(m.to.Now()))
		})
	})
}

// one moves a table and reads it back.
func (m *move) one(ctx context.Context, t table, r database.Reader, w database.Writer) (MovedTable, error) {
	var there int64
	if err := database.ScanAll(func(rows *sql.Rows) error { return rows.Scan(&there) })(w.QueryContext(ctx, `SELECT count(*) FROM `+t.name+movedRows[t.name])); err != nil {
		return MovedTable{}, err
	}
	if there > 0 && t.name != "document_changes" {
		return MovedTable{}, ErrNotEmpty
	}
	if err := w.Exec(`DELETE FROM ` + t.name + movedRows[t.name]); err != nil {
		return MovedTable{}, err
	}
	insert := newInserter(t, w)
	read, err := m.rows(ctx, t, r, m.from, func(values []any) error {
		if t.name == "blobs" {
			if err := m.lay(ctx, t, values); err != nil {
				return err
			}
		}
		return insert.add(values)
	})
	if err == nil {
		err = insert.flush()
	}
	if err != nil {
		return MovedTable{}, err
	}
	written, err := m.rows(ctx, t, w, m.to, nil)
	if err != nil {
		return MovedTable{}, err
	}
	if read != written {
		return MovedTable{}, fmt.Errorf("%d rows with the sum %.12s were read, and %d with %.12s are there", read.Rows, read.Sum, written.Rows, written.Sum)
	}
	return read, nil
}

// rows reads a table in the order of its keys and computes its sum.
// each, which may be nil, is called with every row.
func (m *move) rows(ctx context.Context, t table, r database.Reader, of *store.DB, each func([]any) error) (MovedTable, error) {
	out := MovedTable{Name: t.name}
	sum := sha256.New()
	values, into := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range values {
		into[i] = &values[i]
	}
	err := database.ScanAll(func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, c := range t.columns {
			var err error
			if values[i], err = c.value(values[i]); err != nil {
				return err
			}
		}
		if t.name == "blobs" {
			if err := m.fetch(ctx, of, t, values); err != nil {
				return err
			}
		}
		out.Rows++
		addRow(sum, t.same(values))
		if each == nil {
			return nil
		}
		return each(slices.Clone(values))
	})(r.QueryContext(ctx, t.selects()))
	out.Sum = fmt.Sprintf("%x", sum.Sum(nil))
	return out, err
}

// value returns a column's value in the single form that is written and summed.
func (c column) value(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		if c.kind != "bytea" {
			return database.CleanText(string(v)), nil
		}
		return slices.Clone(v), nil
	case string:
		if c.kind == "bytea" {
			return []byte(v), nil
		}
		return database.CleanText(v), nil
	case bool:
		return database.Flag(v), nil
	case int64:
		if c.kind == "double precision" {
			return float64(v), nil
		}
		return v, nil
	case float64:
		return v, nil
	}
	return nil, fmt.Errorf("the column %s holds a %T", c.name, v)
}

// addRow adds a row to a sum. Each value follows its kind and its length, so no two rows are encoded the same.
func addRow(h hash.Hash, values []any) {
	buf := make([]byte, 0, 256)
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			buf = append(buf, 'n')
		case int64:
			buf = binary.BigEndian.AppendUint64(append(buf, 'i'), uint64(v))
		case float64:
			buf = binary.BigEndian.AppendUint64(append(buf, 'f'), math.Float64bits(v))
		case string:
			buf = append(binary.BigEndian.AppendUint64(append(buf, 't'), uint64(len(v))), v...)
		case []byte:
			buf = append(binary.BigEndian.AppendUint64(append(buf, 'b'), uint64(len(v))), v...)
		}
	}
	_, _ = h.Write(append(buf, '.'))
}
