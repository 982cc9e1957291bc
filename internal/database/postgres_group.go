package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxGroups is how many groups may be in progress: while the server
	// writes one to disk, it can work on another.
	maxGroups = 3
	// A group that cannot lock a row at once gives way, because the
	// holder may wait for one of the group's rows.
	limitLocks = `SET LOCAL lock_timeout = '100ms'`
)

// Gathered is a statement that may be sent to PostgreSQL with those of
// other transactions. Nobody needs its answer.
type Gathered struct {
	Query string
	// Rows says that it is an INSERT with VALUES of texts and numbers. Those of a group become one statement.
	Rows bool
	// By are the indexes of text arguments by which such rows are sorted, so
	// that all groups lock shared rows in the same order.
	By []int
}

// errAlone says that a transaction cannot share: it needs an answer before
// its end, or uses a statement that may not be gathered.
var errAlone = errors.New("it cannot be sent with others")

// Together says how a transaction may be sent with others.
type Together struct {
	// Order is the key by which the members of a group are sorted. No two running transactions have the same.
	Order string
	// Happened reports whether the transaction was already committed. It is called if
	// the answer to a group was lost, in the transaction that would otherwise repeat the
	// work. It must first lock what the work changes.
	Happened func(Tx) (bool, error)
}

// TryTogether is TryWrite for a transaction that may be combined with others that wait at the same
// time. On PostgreSQL, work first runs without access to the server (Tx.Blind); the statements it
// queues there must fail if their assumptions are wrong. If they fail, need an answer, or are not
// among the schema's Gathered, work runs again in a transaction of its own.
func (db *DB) TryTogether(ctx context.Context, how Together, work func(Tx) error) (lost bool, err error) {
	j, wrote := db.job(work)
	defer wrote.over()
	if db.pg != nil {
		j.order = how.Order
		j.happened = func(tx *transaction) (bool, error) { return how.Happened(db.tx(tx, wrote)) }
	}
	err = db.do(ctx, j)
	return j.lost, err
}

// Blind reports whether the transaction has no access to the server: see TryTogether.
func (tx Tx) Blind() bool { return tx.in.pg != nil && tx.in.pg.conn == nil }

// groups are transactions waiting to be sent together.
type groups struct {
	mu      sync.Mutex
	waiting []*member
	on      int // goroutines that send groups
}

// member is a transaction waiting to be sent with others.
type member struct {
	job     *job
	queue   []queued
	done    chan struct{}
	settled bool // its outcome is known; otherwise it must try alone
}

// gathered returns how a statement is gathered. ok is false if it is not.
func (s Schema) gathered(query string) (at int, ok bool) {
	at = slices.IndexFunc(s.Gathered, func(g Gathered) bool { return g.Query == query })
	return at, at >= 0
}

// together runs a job with others. It returns false if the job must try alone.
func (p *postgres) together(ctx context.Context, j *job) bool {
	blind := &pgTx{p: p}
	if err := j.work(&transaction{pg: blind, memory: p.schema.memory()}); err != nil {
		return false // an error of its own will occur again
	}
	m := &member{job: j, queue: blind.queue, done: make(chan struct{})}
	for i := range m.queue {
		m.queue[i].of = m
	}
	p.groups.mu.Lock()
	p.groups.waiting = append(p.groups.waiting, m)
	if p.groups.on < maxGroups {
		p.groups.on++
		go p.sendGroups()
	}
	p.groups.mu.Unlock()
	limit := time.NewTimer(maxQueued)
	defer limit.Stop()
	var why error
	select {
	case <-m.done:
		return m.settled
	case <-ctx.Done():
		why = ctx.Err()
	case <-limit.C:
		why = &Problem{What: ErrBusy, Path: p.name}
	}
	if j.state.CompareAndSwap(jobWaits, jobDropped) {
		j.err = why
		return true
	}
	<-m.done
	return m.settled
}

// sendGroups sends waiting members until there are none.
func (p *postgres) sendGroups() {
	for {
		p.commits <- struct{}{}
		group := p.groups.next()
		if group == nil {
			<-p.commits
			return
		}
		p.sendGroup(group)
		<-p.commits
		for _, m := range group {
			close(m.done)
		}
	}
}

// next returns the waiting members, or nil if there are none; the calling goroutine then ends.
func (g *groups) next() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), maxGroup)
	if n == 0 {
		g.on--
		return nil
	}
	group := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	return group
}

// sendGroup sends members in one transaction. If one fails, it tries alone, and the
// others are sent again without it. If it is not clear which one failed, or whether
// the transaction happened, all of them try alone.
func (p *postgres) sendGroup(all []*member) {
	group := make([]*member, 0, len(all))
	for _, m := range all {
		if m.settled = !m.job.state.CompareAndSwap(jobWaits, jobRuns); !m.settled {
			group = append(group, m)
		}
	}
	slices.SortFunc(group, func(a, b *member) int { return cmp.Compare(a.job.order, b.job.order) })
	for len(group) > 0 {
		lost, err := p.tryGroup(group)
		var one *memberError
		switch {
		case err == nil:
			for _, m := range group {
				m.settled = true
			}
			return
		case lost:
			for _, m := range group {
				m.job.work = m.job.unlessHappened()
			}
			return
		case !errors.As(err, &one):
			return
		}
		group = slices.DeleteFunc(group, func(m *member) bool { return m == one.of })
	}
}

// tryGroup sends members in one transaction, in one round trip. lost means that it
// may have happened after all. The transaction number, which could tell, would be
// lost with the answer, so it is not requested.
func (p *postgres) tryGroup(group []*member) (lost bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	open, err := p.open(ctx, p.pool)
	if err != nil {
		p.trouble.endSilent()
		return false, err
	}
	defer open.close()
	open.queueGroup(group)
	p.made.Add(1)
	lost, err = open.commit()
	p.trouble.saw(err)
	if err == nil {
		p.health.wrote()
	}
	return lost, err
}

// unlessHappened returns the job's work, to be skipped if a group whose answer was lost has done it.
func (j *job) unlessHappened() func(*transaction) error {
	work := j.work
	return func(tx *transaction) error {
		if there, err := j.happened(tx); there || err != nil {
			return err
		}
		return work(tx)
	}
}

// queueGroup queues the statements of a group: those that are not rows in
// the order of its members, then rows, table by table.
func (t *pgTx) queueGroup(group []*member) {
	if len(group) == 1 {
		t.queue = append(t.queue, group[0].queue...)
		return
	}
	t.queue = append(t.queue, queued{query: limitLocks})
	tables := make([][]queued, len(t.p.schema.Gathered))
	for _, m := range group {
		for _, q := range m.queue {
			if t.p.schema.Gathered[q.kind].Rows {
				tables[q.kind] = append(tables[q.kind], q)
			} else {
				t.queue = append(t.queue, q)
			}
		}
	}
	for kind, rows := range tables {
		slices.SortStableFunc(rows, func(a, b queued) int {
			for _, i := range t.p.schema.Gathered[kind].By {
				if c := cmp.Compare(a.args[i].(string), b.args[i].(string)); c != 0 {
					return c
				}
			}
			return 0
		})
		if len(rows) > 1 {
			rows = []queued{severalRows(rows)}
		}
		t.queue = append(t.queue, rows...)
	}
}

// severalRows returns one statement that inserts several rows.
func severalRows(rows []queued) queued {
	before, values, _ := strings.Cut(rows[0].query, "VALUES (")
	_, behind, _ := strings.Cut(values, ")")
	var columns []string
	var args []any
	for i := range rows[0].args {
		if _, ok := rows[0].args[i].(string); ok {
			columns = append(columns, fmt.Sprintf("$%d::text[]", i+1))
			args = append(args, columnOf[string](rows, i))
		} else {
			columns = append(columns, fmt.Sprintf("$%d::bigint[]", i+1))
			args = append(args, columnOf[int64](rows, i))
		}
	}
	return queued{query: before + "SELECT * FROM unnest(" + strings.Join(columns, ", ") + ")" + behind, args: args}
}

// columnOf returns the values of one column; nil elements mean NULL.
func columnOf[T any](rows []queued, i int) []*T {
	out := make([]*T, len(rows))
	for n, q := range rows {
		if v, ok := q.args[i].(T); ok {
			out[n] = &v
		}
	}
	return out
}

// memberError is an error of a statement of one member of a group.
type memberError struct {
	of  *member
	err error
}

func (e *memberError) Error() string { return e.err.Error() }
func (e *memberError) Unwrap() error { return e.err }

// Waiting returns how many transactions wait to be sent to PostgreSQL together.
func (db *DB) Waiting() int {
	db.pg.groups.mu.Lock()
	defer db.pg.groups.mu.Unlock()
	return len(db.pg.groups.waiting)
}

// HoldCommits lets tests keep transactions from PostgreSQL until they call the returned function.
func (db *DB) HoldCommits() (goOn func()) {
	for range maxCommits {
		db.pg.commits <- struct{}{}
	}
	return func() {
		for range maxCommits {
			<-db.pg.commits
		}
	}
}
