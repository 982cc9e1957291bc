// Package search finds what was said in any thread, by words. The full-text index is an ordinary
// reader of the journal: it is brought up to date before a search, and can be deleted at any time.
package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/text"
)

// Reader is the name of the full-text index among the durable readers.
const Reader = "search"

// How much of one event is indexed. Results of tools repeat what is on
// disk, so their beginning is enough to find them.
const (
	maxIndexedResult  = 8 << 10
	maxIndexedMessage = 64 << 10
)

// fullText is a full-text index: how far it has read a thread, what it adds, and what it finds.
type fullText interface {
	reached(ctx context.Context, thread chat.ThreadID) (int64, error)
	add(ctx context.Context, agent string, from int64, page []chat.Event) (int64, error)
	// find ranks the newest events that hold the terms, after the first
	// from of them, and returns a part of these.
	find(ctx context.Context, terms []term, o Options, from int, part part) ([]Hit, error)
	erase(ctx context.Context, thread chat.ThreadID) error
}

// Journal is the journal to index.
type Journal interface {
	Thread(ctx context.Context, id chat.ThreadID) (journal.Thread, error)
	// Page reads events after a number, and reports whether there may be more.
	Page(ctx context.Context, thread chat.ThreadID, after int64) ([]chat.Event, bool, error)
	// LaggingThreads returns some threads in which a reader is behind. MoveReader records how far it has come.
	LaggingThreads(ctx context.Context, reader string) ([]chat.ThreadID, error)
	MoveReader(ctx context.Context, reader string, thread chat.ThreadID, seq int64) error
}

// Index is the full-text index of a journal.
type Index struct {
	db      *database.DB
	journal Journal

	mu     sync.Mutex
	file   *index // SQLite's; opened by the first search or indexing
	closed bool
}

// New returns an index over a journal in the database.
func New(db *database.DB, journal Journal) *Index { return &Index{db: db, journal: journal} }

// CloseIndex closes the file after the database was closed. It may be called twice.
func (x *Index) CloseIndex() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.file == nil {
		return nil
	}
	file := x.file
	x.file = nil
	return file.close()
}

// index is SQLite's full-text index, in a file of its own that can be deleted: a new
// one is filled from the journal again. Indexing inside the append would double its
// cost, so the index is a reader like any other.
type index struct {
	db *sql.DB
}

const indexSchema = `
CREATE TABLE IF NOT EXISTS places (thread TEXT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS docs (
	id INTEGER PRIMARY KEY, thread TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL,
	agent TEXT NOT NULL, who TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (thread, seq));
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab (words, instance);
PRAGMA user_version = 2;`

func (ix *index) close() error { return ix.db.Close() }

// openIndex opens the index once. It replaces a damaged one.
func (x *Index) openIndex(ctx context.Context) (fullText, error) {
	if x.db.OnServer() {
		return postgresIndex{x.db}, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, database.ErrClosed
	}
	if x.file != nil {
		return x.file, nil
	}
	path := filepath.Join(filepath.Dir(x.db.Path()), "search.db")
	var ix *index
	try := func() (err error) {
		ix, err = x.tryIndex(ctx, path)
		return err
	}
	err := database.Meet(ctx, try)
	if database.IsDamaged(err) {
		for _, tail := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + tail); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("open search index: %w", err)
			}
		}
		err = database.Meet(ctx, try)
	}
	if err != nil {
		return nil, fmt.Errorf("open search index: %w", database.Explain(path, err))
	}
	x.file = ix
	return ix, nil
}

func (x *Index) tryIndex(ctx context.Context, path string) (_ *index, err error) {
	if err := database.MakeFile(path); err != nil {
		return nil, err
	}
	// Losing the last moments of the index in a power cut costs nothing, since
	// the position it has reached is in the same file.
	pool, err := database.OpenFile(path, []string{database.BusyTimeout, "secure_delete(1)", "synchronous(1)", "cache_size(-1000)", "temp_store(2)"}, "_txlock=immediate")
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	defer func() {
		if err != nil {
			err = errors.Join(err, pool.Close())
		}
	}()
	var version int
	if err := pool.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return nil, err
	}
	if version == 1 { // has no vocabulary table
		if _, err := pool.ExecContext(ctx, indexSchema); err != nil {
			return nil, err
		}
	}
	if version == 0 {
		if _, err := pool.ExecContext(ctx, `PRAGMA journal_mode = WAL`); err != nil {
			return nil, err
		}
		if _, err := pool.ExecContext(ctx, indexSchema); err != nil {
			return nil, err
		}
		err := x.db.Write(ctx, func(tx database.Tx) error { return tx.Exec(`DELETE FROM readers WHERE reader = ?`, Reader) })
		if err != nil {
			return nil, err
		}
	}
	return &index{db: pool}, nil
}

// IndexNew brings the full-text index up to date and returns the number of events
// it read. Several processes may call it at the same time.
func (x *Index) IndexNew(ctx context.Context) (int, error) {
	ix, err := x.openIndex(ctx)
	if err != nil {
		return 0, err
	}
	total := 0
	for {
		behind, err := x.journal.LaggingThreads(ctx, Reader)
		if err != nil || len(behind) == 0 {
			return total, err
		}
		for _, thread := range behind {
			n, err := x.indexThread(ctx, ix, thread)
			total += n
			if err != nil {
				return total, fmt.Errorf("index thread %s: %w", thread, err)
			}
		}
	}
}

// EraseIndexed removes the words of a thread whose events are empty. A process that read them
// before and indexes them only now finds that the index has moved on.
func (x *Index) EraseIndexed(ctx context.Context, thread chat.ThreadID) error {
	ix, err := x.openIndex(ctx)
	if err != nil {
		return err
	}
	if _, err := x.indexThread(ctx, ix, thread); err != nil {
		return err
	}
	return ix.erase(ctx, thread)
}

// indexThread indexes a thread page by page, from the position stored in the index
// itself. The position and the words are written in one transaction.
func (x *Index) indexThread(ctx context.Context, ix fullText, thread chat.ThreadID) (int, error) {
	row, err := x.journal.Thread(ctx, thread)
	if err != nil {
		return 0, err
	}
	total := 0
	for more := true; more; {
		at, err := ix.reached(ctx, thread)
		if err != nil {
			return total, err
		}
		var page []chat.Event
		page, more, err = x.journal.Page(ctx, thread, at)
		if err != nil {
			return total, err
		}
		if len(page) > 0 {
			reached, err := ix.add(ctx, row.Agent, at, page)
			if err != nil {
				return total, err
			}
			if reached == page[len(page)-1].Seq {
				total += len(page)
			}
			at = reached
		}
		if err := x.journal.MoveReader(ctx, Reader, thread, at); err != nil {
			return total, err
		}
	}
	return total, nil
}

func (ix *index) reached(ctx context.Context, thread chat.ThreadID) (at int64, err error) {
	err = ix.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM places WHERE thread = ?`, string(thread)).Scan(&at)
	return at, err
}

// add indexes a page that begins after from, unless somebody else has moved on from there
// meanwhile. It returns the position that the index has reached.
func (ix *index) add(ctx context.Context, agent string, from int64, page []chat.Event) (int64, error) {
	tx, err := ix.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	thread := string(page[0].Thread)
	var at int64
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM places WHERE thread = ?`, thread).Scan(&at); err != nil {
		return 0, err
	}
	if at != from {
		return at, nil
	}
	for _, e := range page {
		if err := indexEvent(ctx, tx, agent, e); err != nil {
			return 0, err
		}
	}
	last := page[len(page)-1].Seq
	_, err = tx.ExecContext(ctx, `INSERT INTO places (thread, seq) VALUES (?, ?) ON CONFLICT (thread) DO UPDATE SET seq = excluded.seq`,
		thread, last)
	if err != nil {
		return 0, err
	}
	return last, tx.Commit()
}

// erase removes a thread's words, including those that the index has not
// merged yet. The position that was reached stays.
func (ix *index) erase(ctx context.Context, thread chat.ThreadID) error {
	conn, err := ix.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{`INSERT INTO words (words, rank) VALUES ('secure-delete', 1)`,
		`DELETE FROM words WHERE rowid IN (SELECT id FROM docs WHERE thread = ?)`, `DELETE FROM docs WHERE thread = ?`} {
		var args []any
		if strings.Contains(statement, "?") {
			args = append(args, string(thread))
		}
		if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
	}
	return database.Checkpoint(ctx, conn, "TRUNCATE")
}

func indexEvent(ctx context.Context, tx *sql.Tx, agent string, e chat.Event) error {
	thread := string(e.Thread)
	const byPlace = `(SELECT id FROM docs WHERE thread = ? AND seq = ?)`
	switch b := e.Body.(type) {
	case chat.Edited:
		if b.Files {
			return nil // the words are the same
		}
		_, err := tx.ExecContext(ctx, `UPDATE words SET text = ? WHERE rowid = `+byPlace, text.Prefix(b.Blocks.Text(), maxIndexedMessage), thread, b.Seq)
		return err
	case chat.Deleted:
		if _, err := tx.ExecContext(ctx, `DELETE FROM words WHERE rowid = `+byPlace, thread, b.Seq); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM docs WHERE thread = ? AND seq = ?`, thread, b.Seq)
		return err
	}
	who, text := said(agent, e)
	if strings.TrimSpace(text) == "" {
		return nil
	}
	id, err := newDocID(ctx, tx, e.At)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO docs (id, thread, seq, at, agent, who, kind) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		id, thread, e.Seq, database.Micros(e.At), agent, who, string(e.Body.Kind()))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO words (rowid, text) VALUES (?, ?)`, id, text)
	return err
}

// said returns what can be searched of an event, and whose words they are.
func said(agent string, e chat.Event) (who, words string) {
	switch b := e.Body.(type) {
	case chat.Received:
		return nameOf(b.From, e.Who), text.Prefix(b.Blocks.Text(), maxIndexedMessage)
	case chat.Steered:
		return nameOf(b.From, e.Who), text.Prefix(b.Blocks.Text(), maxIndexedMessage)
	case chat.Said:
		if b.Error == nil {
			return agent, text.Prefix(b.Blocks.Text(), maxIndexedMessage)
		}
	case chat.ToolRan:
		return b.Name, text.Prefix(b.Blocks.Text(), maxIndexedResult)
	}
	return "", ""
}

func nameOf(p chat.Participant, otherwise string) string {
	switch {
	case p.Name != "":
		return p.Name
	case p.ID != "":
		return p.ID
	default:
		return otherwise
	}
}

// Options narrow a search. Zero fields match everything.
type Options struct {
	Thread chat.ThreadID
	Agent  string
	Prefix string // prefix of the thread's id
	Limit  int    // 0: 20
	Skip   int    // how many of the best to leave out
	// MarkStart and MarkEnd surround the words that were found.
	MarkStart, MarkEnd string
}

// Hit is one event that was found.
type Hit struct {
	Thread  chat.ThreadID
	Seq     int64
	At      time.Time
	Who     string
	Kind    chat.Kind
	Snippet string
}

// Search finds events that hold every word of the query, best first. The last word may be the
// beginning of a word. Words in double quotes must be adjacent; nothing else in a query has a
// special meaning. It searches what IndexNew has indexed.
func (x *Index) Search(ctx context.Context, query string, o Options) ([]Hit, error) {
	terms := parse(query)
	if len(terms) == 0 {
		return nil, nil
	}
	ix, err := x.openIndex(ctx)
	if err != nil {
		return nil, err
	}
	var hits []Hit
	for skip, limit := o.Skip, database.Limit(o.Limit, 20); len(hits) < limit; {
		want := part{skip: skip % rankedAmong, limit: limit - len(hits)}
		want.limit = min(want.limit, rankedAmong-want.skip)
		found, err := ix.find(ctx, terms, o, skip-want.skip, want)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		hits = append(hits, found...)
		if len(found) < want.limit {
			break
		}
		skip += want.limit
	}
	return hits, nil
}

func scanHit(rows *sql.Rows) (h Hit, err error) {
	var at int64
	err = rows.Scan(&h.Thread, &h.Seq, &at, &h.Who, &h.Kind, &h.Snippet)
	h.At = database.Time(at)
	return h, err
}

// maxTerms limits how much work one query can cause.
const maxTerms = 32

// term is a word of a query, or several adjacent ones. begins means that it may be the beginning of a word.
type term struct {
	text   string
	begins bool
}

// parse returns the terms of what somebody typed; none if there is no word.
func parse(query string) []term {
	var terms []term
	for i, part := range strings.Split(strings.ToValidUTF8(query, " "), `"`) {
		if i%2 == 1 { // between quotes
			terms = appendTerm(terms, part)
			continue
		}
		for word := range strings.FieldsSeq(part) {
			terms = appendTerm(terms, word)
		}
	}
	if len(terms) > 0 && !strings.HasSuffix(strings.TrimSpace(query), `"`) {
		terms[len(terms)-1].begins = true
	}
	return terms
}

// matchFor makes an FTS5 expression of terms. Each is quoted, so that no character of it is an
// operator. endings are the words that the last term may stand for, if they are known.
func matchFor(terms []term, endings []string) string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = `"` + t.text + `"`
		if t.begins && len(endings) > 0 {
			out[i] = `("` + strings.Join(endings, `" OR "`) + `")`
		} else if t.begins {
			out[i] += "*"
		}
	}
	return strings.Join(out, " AND ")
}

func appendTerm(terms []term, text string) []term {
	text = strings.ReplaceAll(text, "\x00", " ")
	wordy := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	if !wordy || len(terms) == maxTerms {
		return terms
	}
	return append(terms, term{text: text})
}
