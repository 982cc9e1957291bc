package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// SearchReader is the name of the full-text index among the durable readers.
const SearchReader = "search"

// How much of one event is indexed: results of tools repeat what is on the disk,
// so their beginning is enough to find them by.
const (
	maxIndexedResult  = 8 << 10
	maxIndexedMessage = 64 << 10
)

// searchIndex is a full-text index: where it stands in a thread, what it adds, and what it finds.
type searchIndex interface {
	reached(ctx context.Context, thread chat.ThreadID) (int64, error)
	add(ctx context.Context, agent string, from int64, page []chat.Event) (int64, error)
	find(ctx context.Context, terms []searchTerm, o SearchOptions) ([]Hit, error)
}

// index is SQLite's full-text index, in a file of its own that may be thrown away: a
// new one is filled from the journal again. Indexing inside the append would
// double its cost, so the index is a reader like any other.
type index struct {
	db *sql.DB
}

const indexSchema = `
CREATE TABLE IF NOT EXISTS places (thread TEXT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS docs (
	id INTEGER PRIMARY KEY, thread TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL,
	agent TEXT NOT NULL, who TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (thread, seq));
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
PRAGMA user_version = 1;`

func (ix *index) close() error { return ix.db.Close() }

// openIndex opens the index once; a damaged one is thrown away and made anew.
func (db *DB) openIndex(ctx context.Context) (searchIndex, error) {
	if db.pg != nil {
		return postgresIndex{db}, nil
	}
	db.searchMu.Lock()
	defer db.searchMu.Unlock()
	if db.closed {
		return nil, ErrClosed
	}
	if db.search != nil {
		return db.search, nil
	}
	path := filepath.Join(filepath.Dir(db.path), "search.db")
	var ix *index
	try := func() (err error) {
		ix, err = db.tryIndex(ctx, path)
		return err
	}
	err := meet(ctx, try)
	if code := resultCode(err) & 0xff; code == codeCorrupt || code == codeNotADB {
		for _, tail := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + tail); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("open search index: %w", err)
			}
		}
		err = meet(ctx, try)
	}
	if err != nil {
		return nil, fmt.Errorf("open search index: %w", explain(path, err))
	}
	db.search = ix
	return ix, nil
}

func (db *DB) tryIndex(ctx context.Context, path string) (_ *index, err error) {
	if err := makeFile(path); err != nil {
		return nil, err
	}
	// Losing the last moments of the index to a power cut costs nothing, and the
	// place it has reached is in the same file.
	pool, err := sql.Open(driverName, dsn(path, []string{busyPragma, "synchronous(1)", "cache_size(-1000)", "temp_store(2)"}, "_txlock=immediate"))
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
	if version == 0 {
		if _, err := pool.ExecContext(ctx, setJournalMode); err != nil {
			return nil, err
		}
		if _, err := pool.ExecContext(ctx, indexSchema); err != nil {
			return nil, err
		}
		err := db.write(ctx, func(tx *transaction) error { return tx.exec(`DELETE FROM readers WHERE reader = ?`, SearchReader) })
		if err != nil {
			return nil, err
		}
	}
	return &index{db: pool}, nil
}

// IndexNew brings the full-text index up to date and gives the number of events
// it read. It may be called by several processes at the same time.
func (db *DB) IndexNew(ctx context.Context) (int, error) {
	ix, err := db.openIndex(ctx)
	if err != nil {
		return 0, err
	}
	total := 0
	for {
		behind, err := db.Behind(ctx, SearchReader, 100)
		if err != nil || len(behind) == 0 {
			return total, err
		}
		for _, lag := range behind {
			n, err := db.indexThread(ctx, ix, lag.Thread)
			total += n
			if err != nil {
				return total, fmt.Errorf("index thread %s: %w", lag.Thread, err)
			}
		}
	}
}

// indexThread indexes a thread page by page, from the place that the index
// itself has noted: what it holds and where it stands are one transaction.
func (db *DB) indexThread(ctx context.Context, ix searchIndex, thread chat.ThreadID) (int, error) {
	row, err := db.Thread(ctx, thread)
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
		page, more, err = db.page(ctx, thread, at, maxPage, pageBytes)
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
		if err := db.MoveReader(ctx, SearchReader, thread, at); err != nil {
			return total, err
		}
	}
	return total, nil
}

func (ix *index) reached(ctx context.Context, thread chat.ThreadID) (at int64, err error) {
	err = ix.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM places WHERE thread = ?`, string(thread)).Scan(&at)
	return at, err
}

// add indexes a page that begins behind from, unless somebody else has moved on
// from there meanwhile. It gives the place the index has reached.
func (ix *index) add(ctx context.Context, agent string, from int64, page []chat.Event) (int64, error) {
	tx, err := ix.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
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
	res, err := tx.ExecContext(ctx, `INSERT INTO docs (thread, seq, at, agent, who, kind) VALUES (?, ?, ?, ?, ?, ?)`,
		thread, e.Seq, micros(e.At), agent, who, string(e.Body.Kind()))
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO words (rowid, text) VALUES (?, ?)`, id, text)
	return err
}

// said is what can be searched of an event, and whose words they are.
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

// SearchOptions narrow a search; zero fields do not.
type SearchOptions struct {
	Thread chat.ThreadID
	Agent  string
	Prefix string // how the thread's id begins
	Limit  int    // 0: 20
	Skip   int    // so many of the best are left out
	// MarkStart and MarkEnd stand around the words that were found.
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

// Search finds events that hold every word of the query (the last may be the
// beginning of a word), the best first. Words in double quotes stand together;
// nothing else in a query has a meaning. It searches what IndexNew has indexed.
func (db *DB) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	terms := searchTerms(query)
	if len(terms) == 0 {
		return nil, nil
	}
	ix, err := db.openIndex(ctx)
	if err != nil {
		return nil, err
	}
	hits, err := ix.find(ctx, terms, o)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return hits, nil
}

func (ix *index) find(ctx context.Context, terms []searchTerm, o SearchOptions) ([]Hit, error) {
	var where filter
	where.add("words MATCH ?", matchFor(terms))
	where.equal("d.thread", string(o.Thread))
	where.equal("d.agent", o.Agent)
	where.begins("d.thread", o.Prefix)
	rest, args := where.on(` FROM words JOIN docs d ON d.id = words.rowid`)
	args = append([]any{o.MarkStart, o.MarkEnd}, args...)
	var hits []Hit
	err := scanAll(func(rows *sql.Rows) error {
		h, err := scanHit(rows)
		hits = append(hits, h)
		return err
	})(ix.db.QueryContext(ctx, `SELECT d.thread, d.seq, d.at, d.who, d.kind, snippet(words, 0, ?, ?, '…', 24)`+
		rest+` ORDER BY rank, d.at DESC, d.id LIMIT ?+0 OFFSET ?`, append(args, orDefault(o.Limit, 20), o.Skip)...))
	return hits, err
}

func scanHit(rows *sql.Rows) (h Hit, err error) {
	var at int64
	err = rows.Scan(&h.Thread, &h.Seq, &at, &h.Who, &h.Kind, &h.Snippet)
	h.At = instant(at)
	return h, err
}

// maxTerms bounds how much work one query can ask for.
const maxTerms = 32

// searchTerm is a word of a query, or several that stand together; begins: it may be the beginning of a word.
type searchTerm struct {
	text   string
	begins bool
}

// searchTerms are those of whatever somebody typed. None if there is no word.
func searchTerms(query string) []searchTerm {
	var terms []searchTerm
	for i, part := range strings.Split(strings.ToValidUTF8(query, " "), `"`) {
		if i%2 == 1 { // between quotes
			terms = appendTerm(terms, part)
			continue
		}
		for _, word := range strings.Fields(part) {
			terms = appendTerm(terms, word)
		}
	}
	if len(terms) > 0 && !strings.HasSuffix(strings.TrimSpace(query), `"`) {
		terms[len(terms)-1].begins = true
	}
	return terms
}

// matchFor makes an FTS5 expression of terms: each quoted, so that no character of it is an operator.
func matchFor(terms []searchTerm) string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = `"` + t.text + `"`
		if t.begins {
			out[i] += "*"
		}
	}
	return strings.Join(out, " ")
}

func appendTerm(terms []searchTerm, text string) []searchTerm {
	text = strings.ReplaceAll(text, "\x00", " ")
	wordy := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	if !wordy || len(terms) == maxTerms {
		return terms
	}
	return append(terms, searchTerm{text: text})
}
