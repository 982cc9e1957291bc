package dbcopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/digest"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
)

// rewrite lets write fill a database in one transaction with triggers
// disabled, so that nothing is counted or refused.
func rewrite(ctx context.Context, db *store.DB, write func(database.Writer) error) error {
	return db.WriteAll(ctx, func(w database.Writer) error {
		if db.OnServer() {
			return withoutServersTriggers(w, write)
		}
		return withoutTriggers(ctx, w, write)
	})
}

// withoutTriggers is rewrite for a file.
func withoutTriggers(ctx context.Context, w database.Writer, write func(database.Writer) error) error {
	triggers := map[string]string{}
	err := database.ScanAll(database.Pairs(triggers))(w.QueryContext(ctx, `SELECT name, sql FROM sqlite_master WHERE type = 'trigger'`))
	if err != nil {
		return err
	}
	for name := range triggers {
		if err := w.Exec(`DROP TRIGGER ` + name); err != nil {
			return err
		}
	}
	if err := write(w); err != nil {
		return err
	}
	for _, text := range triggers {
		if err := w.Exec(text); err != nil {
			return err
		}
	}
	return nil
}

// withoutServersTriggers is rewrite for a server, whose own numbers continue after those that were written.
func withoutServersTriggers(w database.Writer, write func(database.Writer) error) error {
	triggered := []string{"audit", "audit_seals", "audit_sealed", "ledger", "spent_days"}
	for _, name := range triggered {
		if err := w.Exec(`ALTER TABLE ` + name + ` DISABLE TRIGGER USER`); err != nil {
			return err
		}
	}
	if err := write(w); err != nil {
		return err
	}
	for _, name := range triggered {
		if err := w.Exec(`ALTER TABLE ` + name + ` ENABLE TRIGGER USER`); err != nil {
			return err
		}
	}
	for _, name := range []string{"audit", "work_events"} {
		if err := w.Exec(`SELECT setval(pg_get_serial_sequence('` + name + `', 'id'), greatest((SELECT max(id) FROM ` + name + `), 1), EXISTS (SELECT 1 FROM ` + name + `))`); err != nil {
			return err
		}
	}
	return nil
}

// inserter writes the rows of a table, many at a time.
type inserter struct {
	t      table
	w      database.Writer
	most   int // rows per statement
	values []any
	bytes  int
}

// Limits of a statement: the number of values, and roughly the number of bytes.
const (
	maxValues     = 2000
	maxValueBytes = 1 << 20
)

func newInserter(t table, w database.Writer) *inserter {
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
	err := in.w.Exec(text, in.values...)
	in.values, in.bytes = in.values[:0], 0
	return err
}

// fetch puts the bytes of a blob from outside the database into its row. It fails if
// they do not match the row. In a copy the row stays without them.
func (m *move) fetch(ctx context.Context, of *store.DB, t table, values []any) error {
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
		bytes, err := of.BytesAt(ctx, name, place)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, chat.ErrLost) {
			return fmt.Errorf("the bytes of an attachment are missing; `chorus doctor --thorough --fix` records this; then move again: %w", err)
		}
		if err != nil {
			return err
		}
		values[data] = bytes
	}
	bytes, _ := values[data].([]byte)
	if digest.Of(bytes) != name {
		return fmt.Errorf("the bytes of the attachment %s are damaged; `chorus doctor --thorough --fix` records this; then move again", name)
	}
	return nil
}

// lay puts a large blob where the new database keeps it. Bytes read from a
// storage that the new one also uses are already there.
func (m *move) lay(ctx context.Context, t table, values []any) error {
	at, data := t.at("place"), t.at("data")
	was, hash := values[at], values[t.at("hash")].(string)
	values[at] = ""
	bytes, _ := values[data].([]byte)
	switch {
	case m.copying:
		return nil
	case m.to.KeptApart(len(bytes)):
		values[data], values[at] = nil, m.to.BlobStorage().Name()
		if was == m.to.BlobStorage().Name() {
			return nil
		}
		return m.to.StorageProblem(m.to.BlobStorage().Put(ctx, hash, bytes))
	case m.to.OnServer() || len(bytes) <= blobs.MaxInline:
		return nil
	}
	values[data] = nil
	return m.to.WriteBlobFile(hash, bytes)
}

// same returns a row as it is in both databases, since blobs may be in different places.
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
