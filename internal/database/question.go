package database

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Question asks whether one table has rows: SELECT 1 FROM …, using an index, so that it is fast.
type Question struct {
	Query string
	Args  []any
}

// answerAge is how long an answer is valid although another process may have written to the table. What this process
// writes counts at once.
const answerAge = time.Second

// maxAnswers is more than the conversations of one process ask.
const maxAnswers = 4096

// answers remembers answers to questions. Each request of each run asks the same few, whose tables hardly ever
// change, and a query in between commits has to read pages again that the commits have changed.
type answers struct {
	mu     sync.Mutex
	writes map[string]uint64 // how often this process has written to a table
	given  map[string]answer
	tables sync.Map // of statements: the table that a question reads, or that another statement writes to
	now    func() time.Time
}

type answer struct {
	yes    bool
	at     time.Time
	writes uint64
}

func newAnswers() *answers {
	return &answers{writes: map[string]uint64{}, given: map[string]answer{}, now: time.Now}
}

// Any answers several questions, in one query. An answer may be as old as answerAge if another process wrote.
func (db *DB) Any(ctx context.Context, questions ...Question) ([]bool, error) {
	out, open := make([]bool, len(questions)), []int(nil)
	was := make([]answer, len(questions)) // before the query, since somebody may write meanwhile
	for i, q := range questions {
		var valid bool
		if was[i], valid = db.answers.recall(q); valid {
			out[i] = was[i].yes
		} else {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return out, nil
	}
	texts, args, into := make([]string, len(open)), []any(nil), make([]any, len(open))
	for n, i := range open {
		texts[n], args, into[n] = "EXISTS ("+questions[i].Query+")", append(args, questions[i].Args...), &out[i]
	}
	err := db.Query(ctx, "SELECT "+strings.Join(texts, ", "), args, func(rows *sql.Rows) error { return rows.Scan(into...) })
	if err != nil {
		return nil, err
	}
	for _, i := range open {
		was[i].yes = out[i]
		db.answers.keep(questions[i], was[i])
	}
	return out, nil
}

func (q Question) key() string { return fmt.Sprintln(append([]any{q.Query}, q.Args...)...) }

// recall returns the last answer, and whether it is still valid. If not, it is to be replaced by one
// with the same number of writes.
func (a *answers) recall(q Question) (last answer, valid bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, writes := a.now(), a.writes[a.table(q.Query, tableAsked)]
	last, known := a.given[q.key()]
	valid = known && last.writes == writes && now.Sub(last.at) < answerAge
	if !valid {
		last = answer{at: now, writes: writes}
	}
	return last, valid
}

func (a *answers) keep(q Question, given answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.given) >= maxAnswers {
		clear(a.given)
	}
	a.given[q.key()] = given
}

// written are the tables to which a transaction has written.
type written struct {
	answers *answers
	mu      sync.Mutex // a transaction may still run when its caller has left
	tables  []string
}

func (w *written) note(query string) {
	if name := w.answers.table(query, tableWritten); name != "" {
		w.mu.Lock()
		w.tables = append(w.tables, name)
		w.mu.Unlock()
	}
}

// over is called after a transaction, whatever has become of it.
func (w *written) over() {
	w.mu.Lock()
	tables := w.tables
	w.mu.Unlock()
	w.answers.mu.Lock()
	defer w.answers.mu.Unlock()
	for _, name := range tables {
		w.answers.writes[name]++
	}
}

// table finds the table of a statement once.
func (a *answers) table(query string, find func(string) string) string {
	table, known := a.tables.Load(query)
	if !known {
		table = find(query)
		a.tables.Store(query, table)
	}
	return table.(string)
}

func wordsOf(query string) []string {
	return strings.FieldsFunc(query, func(r rune) bool { return strings.ContainsRune(" \t\r\n(),;", r) })
}

// tableAsked returns the table that a question reads.
func tableAsked(query string) string {
	words := wordsOf(query)
	if i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, "FROM") }); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}

// tableWritten returns the table that a statement writes to; "" if it only reads.
func tableWritten(query string) string {
	words := wordsOf(query)
	for i, word := range words[:max(len(words)-1, 0)] {
		switch strings.ToUpper(word) {
		case "INTO":
			return words[i+1]
		case "UPDATE":
			if strings.EqualFold(words[i+1], "OR") && i+3 < len(words) { // UPDATE OR IGNORE table
				return words[i+3]
			}
			return words[i+1]
		case "FROM":
			if i > 0 && strings.EqualFold(words[i-1], "DELETE") {
				return words[i+1]
			}
		}
	}
	return ""
}
