package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"chorus/internal/database"
)

// rankedAmong is how many events are ranked together. Ranking all events with a word, among
// the millions that a home may have, would cost more the older the home is. So the newest
// come first, best match on top, followed by the next newest.
const rankedAmong = 500

// part is a range of a list.
type part struct{ skip, limit int }

func (ix *index) find(ctx context.Context, terms []term, o Options, from int, part part) ([]Hit, error) {
	found, err := ix.newest(ctx, terms, o, from)
	if err != nil {
		return nil, err
	}
	rank(found)
	var hits []Hit
	for _, c := range found[min(part.skip, len(found)):min(part.skip+part.limit, len(found))] {
		var words string
		err := ix.db.QueryRowContext(ctx, `SELECT text FROM words WHERE rowid = ?`, c.id).Scan(&words)
		if errors.Is(err, sql.ErrNoRows) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		c.hit.Snippet = excerpt(words, terms, o.MarkStart, o.MarkEnd)
		hits = append(hits, c.hit)
	}
	return hits, nil
}

// candidate is an event with the words: how often they occur, and how long it is.
type candidate struct {
	id            int64
	hit           Hit
	times, length float64
	score         float64
}

// newest returns candidates among the newest events with the words, skipping the first from.
func (ix *index) newest(ctx context.Context, terms []term, o Options, from int) ([]candidate, error) {
	match, err := ix.match(ctx, terms)
	if err != nil {
		return nil, err
	}
	var where database.Where
	where.Add("words MATCH ?", match)
	where.Equal("d.thread", string(o.Thread))
	where.Equal("d.agent", o.Agent)
	where.Begins("d.thread", o.Prefix)
	rest, args := where.On(` FROM words CROSS JOIN docs d ON d.id = words.rowid`) // in this order, so that the index of words is read backwards in time
	var out []candidate
	err = database.ScanAll(database.Fill(&out, func(rows *sql.Rows, c *candidate) error {
		var at int64
		err := rows.Scan(&c.id, &c.hit.Thread, &c.hit.Seq, &at, &c.hit.Who, &c.hit.Kind, &c.length, &c.times)
		c.hit.At = database.Instant(at)
		c.times -= c.length // a mark is one character long
		return err
	}))(ix.db.QueryContext(ctx, `SELECT d.id, d.thread, d.seq, d.at, d.who, d.kind, length(words.text), length(highlight(words, 0, '', char(1)))`+
		rest+` ORDER BY words.rowid DESC LIMIT ?+0 OFFSET ?+0`, append(args, rankedAmong, from)...))
	return out, err
}

// rank sorts the best first, like BM25 but without the rarity of each
// word, which would have to be counted over everything.
func rank(found []candidate) {
	all := 0.0
	for _, c := range found {
		all += c.length
	}
	const saturation, byLength = 1.2, 0.75
	for i, c := range found {
		long := c.length * float64(len(found)) / max(all, 1)
		found[i].score = c.times / (c.times + saturation*(1-byLength+byLength*long))
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.hit.At.Compare(a.hit.At))
	})
}

// maxEndings is how many words with the same beginning are searched for one by one.
const maxEndings = 64

// match returns the FTS5 expression for terms. If a term may be the beginning of a word, the words
// are named one by one, so that the index is read from its end only as far as needed. With a prefix
// it would be read completely; that is done only if there are too many words.
func (ix *index) match(ctx context.Context, terms []term) (string, error) {
	last := terms[len(terms)-1]
	words := tokens(last.text)
	if !last.begins || len(words) == 0 {
		return matchFor(terms, nil), nil
	}
	begin := words[len(words)-1]
	var endings []string
	for from := begin.folded; len(endings) <= maxEndings; {
		var word string
		err := ix.db.QueryRowContext(ctx, `SELECT term FROM vocabulary WHERE term >= ? LIMIT 1`, from).Scan(&word)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
		if err != nil || !strings.HasPrefix(word, begin.folded) {
			break
		}
		endings = append(endings, last.text[:begin.from]+word)
		from = word + "\x01" // no word has that
	}
	if len(endings) > maxEndings {
		endings = nil
	}
	return matchFor(terms, endings), nil
}

// idsAtOnce is how many numbers a millisecond has.
const idsAtOnce = 1 << 10

// newDocID returns a free number for an event of that time. Numbers grow with time, so that the
// index returns the newest first without reading everything, even after it was rebuilt thread by
// thread. Numbers from older indexes are small and count as the oldest.
func newDocID(ctx context.Context, tx *sql.Tx, at time.Time) (id int64, err error) {
	first := at.UnixMilli() * idsAtOnce
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(id) + 1, ?1) FROM docs WHERE id BETWEEN ?1 AND ?1 + ?2`, first, idsAtOnce-1).Scan(&id)
	if err != nil || id < first+idsAtOnce {
		return id, err
	}
	// All are taken; a number of a later moment is just as good.
	err = tx.QueryRowContext(ctx, `SELECT id + 1 FROM docs d WHERE id >= ? AND NOT EXISTS (SELECT 1 FROM docs WHERE id = d.id + 1) ORDER BY id LIMIT 1`, id-1).Scan(&id)
	return id, err
}
