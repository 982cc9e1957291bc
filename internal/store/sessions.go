package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// EventsBefore reads the newest events before number before (0: the newest of
// all), in order, at most limit and never more than 500.
func (db *DB) EventsBefore(ctx context.Context, thread chat.ThreadID, before int64, limit int) ([]chat.Event, error) {
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	var where database.Where
	where.Equal("thread_id", string(thread))
	if before > 0 {
		where.Add("seq < ?", before)
	}
	query, args := where.On(`SELECT ` + eventColumns + ` FROM events`)
	var out []chat.Event
	err := db.Query(ctx, query+` ORDER BY seq DESC LIMIT ?+0`, append(args, limit), func(rows *sql.Rows) error {
		e, _, err := scanEvent(rows, thread)
		out = append(out, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read events of thread %s: %w", thread, err)
	}
	slices.Reverse(out)
	return out, nil
}

// EventFilter narrows the events of a thread. Zero fields match everything.
type EventFilter struct {
	Kind          chat.Kind
	Run           string
	After, Before int64 // with Before, the newest of them
	Limit         int
}

// EventsFor reads events of a kind or of a run, in order.
func (db *DB) EventsFor(ctx context.Context, thread chat.ThreadID, f EventFilter) ([]chat.Event, error) {
	limit := f.Limit
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	var where database.Where
	where.Equal("thread_id", string(thread))
	where.Equal("kind", string(f.Kind))
	where.Equal("run_id", f.Run)
	where.Add("seq > ?", f.After)
	order := ` ORDER BY seq LIMIT ?+0`
	if f.Before > 0 {
		where.Add("seq < ?", f.Before)
		order = ` ORDER BY seq DESC LIMIT ?+0`
	}
	query, args := where.On(`SELECT ` + eventColumns + ` FROM events`)
	var out []chat.Event
	err := db.Query(ctx, query+order, append(args, limit), func(rows *sql.Rows) error {
		e, _, err := scanEvent(rows, thread)
		out = append(out, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read events of thread %s: %w", thread, err)
	}
	if f.Before > 0 {
		slices.Reverse(out)
	}
	return out, nil
}

// Seqs returns the numbers of the thread's events of one kind after after, in order. With before it
// returns the newest before that instead, also in order. It reads no bodies.
func (db *DB) Seqs(ctx context.Context, thread chat.ThreadID, kind chat.Kind, after, before int64, limit int) ([]int64, error) {
	var where database.Where
	where.Equal("thread_id", string(thread))
	where.Equal("kind", string(kind))
	where.Add("seq > ?", after)
	order := ` ORDER BY seq LIMIT ?+0`
	if before > 0 {
		where.Add("seq < ?", before)
		order = ` ORDER BY seq DESC LIMIT ?+0`
	}
	query, args := where.On(`SELECT seq FROM events`)
	var out []int64
	err := db.Query(ctx, query+order, append(args, database.Limit(limit, 100)), database.Column(&out))
	if err != nil {
		return nil, fmt.Errorf("numbers of %s in thread %s: %w", kind, thread, err)
	}
	if before > 0 {
		slices.Reverse(out)
	}
	return out, nil
}

// Event reads one event, or fails with ErrUnknown.
func (db *DB) Event(ctx context.Context, thread chat.ThreadID, seq int64) (chat.Event, error) {
	found, _, err := db.page(ctx, thread, seq-1, 1, 0)
	if err == nil && (len(found) == 0 || found[0].Seq != seq) {
		err = fmt.Errorf("event %d of thread %s: %w", seq, thread, journal.ErrUnknown)
	}
	if err != nil {
		return chat.Event{}, err
	}
	return found[0], nil
}

// Ends says how a thread's runs ended: the last one, and the totals of all.
type Ends struct {
	Runs  int
	Last  chat.RunEnded
	Usage chat.Usage
	Cost  int64
}

// maxAsked is how many threads one query may name.
const maxAsked = 100

// EndsOf sums up how the runs of threads ended. It reads only the ends, through
// their index, and for a thread that was asked about before only those since.
// Threads without an ended run are left out.
func (db *DB) EndsOf(ctx context.Context, threads []chat.ThreadID) (map[chat.ThreadID]Ends, error) {
	out := map[chat.ThreadID]Ends{}
	for part := range slices.Chunk(threads, maxAsked) {
		if err := db.endsOf(ctx, part, out); err != nil {
			return nil, fmt.Errorf("how runs ended: %w", err)
		}
	}
	return out, nil
}

func (db *DB) endsOf(ctx context.Context, threads []chat.ThreadID, out map[chat.ThreadID]Ends) error {
	known := db.ends.of(threads)
	var since []string
	var args []any
	for _, t := range threads {
		since, args = append(since, "thread_id = ? AND seq > ?"), append(args, string(t), known[t].seq)
	}
	err := db.Query(ctx, `SELECT thread_id, seq, body FROM events WHERE kind = 'run_ended' AND (`+strings.Join(since, " OR ")+`) ORDER BY thread_id, seq`,
		args, func(rows *sql.Rows) error {
			var thread chat.ThreadID
			var seq int64
			var text string
			if err := rows.Scan(&thread, &seq, &text); err != nil {
				return err
			}
			body, err := chat.DecodeBody(chat.KindRunEnded, []byte(text))
			if err != nil {
				return err
			}
			end, sum := body.(chat.RunEnded), known[thread]
			sum.Runs++
			sum.seq, sum.Last, sum.Usage, sum.Cost = seq, end, sum.Usage.Plus(end.Usage), sum.Cost+end.Cost
			known[thread] = sum
			return nil
		})
	if err != nil {
		return err
	}
	db.ends.keep(known)
	for thread, sum := range known {
		out[thread] = sum.Ends
	}
	return nil
}

// endsKept remembers how the runs of threads ended up to an event. Ends are
// written once and never change, so the sums stay valid. Without it, a list
// would cost more the longer its conversations are.
type endsKept struct {
	mu   sync.Mutex
	sums map[chat.ThreadID]endsUpTo
}

type endsUpTo struct {
	Ends
	seq int64
}

// maxEndsKept is how many threads are remembered.
const maxEndsKept = 4000

func (k *endsKept) of(threads []chat.ThreadID) map[chat.ThreadID]endsUpTo {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[chat.ThreadID]endsUpTo{}
	for _, t := range threads {
		if sum, ok := k.sums[t]; ok {
			out[t] = sum
		}
	}
	return out
}

func (k *endsKept) keep(sums map[chat.ThreadID]endsUpTo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sums == nil || len(k.sums)+len(sums) > maxEndsKept {
		k.sums = map[chat.ThreadID]endsUpTo{}
	}
	for t, sum := range sums {
		if sum.seq >= k.sums[t].seq {
			k.sums[t] = sum
		}
	}
}

// LastEnds returns how the last run of each thread ended. It reads one
// end of each thread, however many there are.
func (db *DB) LastEnds(ctx context.Context, threads []chat.ThreadID) (map[chat.ThreadID]chat.RunEnded, error) {
	out := map[chat.ThreadID]chat.RunEnded{}
	for part := range slices.Chunk(threads, maxAsked) {
		args := make([]any, len(part))
		for i, t := range part {
			args[i] = string(t)
		}
		in := strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ")
		err := db.Query(ctx, `SELECT id, (SELECT body FROM events WHERE thread_id = threads.id AND kind = 'run_ended' ORDER BY seq DESC LIMIT 1) FROM threads WHERE id IN (`+in+`)`,
			args, func(rows *sql.Rows) error {
				var thread chat.ThreadID
				var text sql.NullString
				if err := rows.Scan(&thread, &text); err != nil || !text.Valid {
					return err
				}
				body, err := chat.DecodeBody(chat.KindRunEnded, []byte(text.String))
				if err == nil {
					out[thread] = body.(chat.RunEnded)
				}
				return err
			})
		if err != nil {
			return nil, fmt.Errorf("how the last runs ended: %w", err)
		}
	}
	return out, nil
}

// RunEvents are the first and the last event of a run. The last is nil during the run.
type RunEvents struct {
	Start chat.Event
	End   *chat.Event
}

// RunsOf lists the thread's newest runs, newest first.
func (db *DB) RunsOf(ctx context.Context, thread chat.ThreadID, limit int) ([]RunEvents, error) {
	read := func(kind chat.Kind) ([]chat.Event, error) {
		var out []chat.Event
		err := db.Query(ctx, `SELECT `+eventColumns+` FROM events WHERE thread_id = ? AND kind = '`+string(kind)+`' ORDER BY seq DESC LIMIT ?+0`,
			[]any{string(thread), database.Limit(limit, 20)}, func(rows *sql.Rows) error {
				e, _, err := scanEvent(rows, thread)
				out = append(out, e)
				return err
			})
		return out, err
	}
	starts, err := read(chat.KindRunStarted)
	ends, err2 := read(chat.KindRunEnded)
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("runs of thread %s: %w", thread, err)
	}
	var out []RunEvents
	for _, s := range starts {
		run := RunEvents{Start: s}
		for i := range ends {
			if ends[i].Body.(chat.RunEnded).Run == s.Body.(chat.RunStarted).Run {
				run.End = &ends[i]
			}
		}
		out = append(out, run)
	}
	return out, nil
}

// HasBlob reports whether an event of the thread refers to the bytes.
func (db *DB) HasBlob(ctx context.Context, thread chat.ThreadID, hash string) (bool, error) {
	n, err := db.Count(ctx, `SELECT count(*) FROM event_blobs WHERE hash = ? AND thread_id = ?`, hash, string(thread))
	if err != nil {
		return false, fmt.Errorf("blob %s of thread %s: %w", hash, thread, err)
	}
	return n > 0, nil
}

// AgentCount says how many threads an agent has, and what they do.
type AgentCount struct {
	Threads, Running, Waiting int
}

// AgentCounts counts the threads of every agent.
func (db *DB) AgentCounts(ctx context.Context) (map[string]AgentCount, error) {
	out := map[string]AgentCount{}
	err := db.Query(ctx, `SELECT agent, count(*), sum(CASE WHEN status IN ('running', 'waiting_for_agents') THEN 1 ELSE 0 END),
		sum(CASE WHEN status = 'waiting_for_permission' THEN 1 ELSE 0 END) FROM threads GROUP BY agent`, nil, func(rows *sql.Rows) error {
		var name string
		var c AgentCount
		err := rows.Scan(&name, &c.Threads, &c.Running, &c.Waiting)
		out[name] = c
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count threads: %w", err)
	}
	return out, nil
}

// ApprovalList narrows a list of approvals for people. Zero fields match everything. The newest come first.
type ApprovalList struct {
	Thread chat.ThreadID
	Prefix string // prefix of the thread's id
	Call   string // the call it is about
	State  approval.State
	Before string // only those with a smaller id, which were asked earlier
	Limit  int
}

// ApprovalsFor lists approvals for people.
func (db *DB) ApprovalsFor(ctx context.Context, f ApprovalList) ([]approval.Approval, error) {
	var where database.Where
	where.Equal("thread_id", string(f.Thread))
	where.Equal("call_id", f.Call)
	where.Equal("state", string(f.State))
	where.Begins("thread_id", f.Prefix)
	if f.Before != "" {
		where.Add("id < ?", f.Before)
	}
	rest, args := where.On("")
	found, err := db.approvals(ctx, rest+` ORDER BY id DESC LIMIT ?+0`, append(args, database.Limit(f.Limit, 100))...)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return found, nil
}
