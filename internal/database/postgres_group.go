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
	// maxGroups is how many groups are on at a time: while the server writes one to its disk, it can work on another.
	maxGroups = 3
	// A group that cannot have a row at once gives way: whoever holds it may wait for a row of the group's.
	limitLocks = `SET LOCAL lock_timeout = '100ms'`
)

// Gathered is a statement that may be sent to PostgreSQL with those of other transactions. Its answer is of no use to anybody.
type Gathered struct {
	Query string
	// Rows says that it is an INSERT with VALUES of texts and numbers: those of a group become one statement.
	Rows bool
	// By are the arguments, which are texts, that such rows are ordered by, so that all groups lock what they have in common in one order.
	By []int
}

// errAlone says that a transaction must be one of its own: it needs an answer before its end, or says what may not be gathered.
var errAlone = errors.New("it cannot be sent with others")

// Together says how a transaction may be sent with others.
type Together struct {
	// Order is what those of a group are ordered by; no two that are on have the same.
	Order string
	// Happened reports whether the transaction is true already. It is asked where the answer to a group was lost, in the transaction that
	// else does the work again, and must first lock what the work changes.
	Happened func(Tx) (bool, error)
}

// TryTogether is TryWrite for a transaction that may be one with others that wait at the same time. PostgreSQL's work runs first where it
// cannot ask the server (Tx.Blind); what it says there must fail by itself if it is not as it supposes. Where it does, or needs an
// answer, or says something that is not among the schema's Gathered, it runs again in a transaction of its own.
func (db *DB) TryTogether(ctx context.Context, how Together, work func(Tx) error) (lost bool, err error) {
	j := &job{work: func(tx *transaction) error { return work(db.tx(tx)) }}
	if db.pg != nil {
		j.order = how.Order
		j.happened = func(tx *transaction) (bool, error) { return how.Happened(db.tx(tx)) }
	}
	err = db.do(ctx, j)
	return j.lost, err
}

// Blind reports whether the transaction cannot ask the server: see TryTogether.
func (tx Tx) Blind() bool { return tx.in.pg != nil && tx.in.pg.conn == nil }

// groups are transactions that wait for each other.
type groups struct {
	mu      sync.Mutex
	waiting []*member
	on      int // goroutines that send groups
}

// member is a transaction that waits to be sent with others.
type member struct {
	job     *job
	queue   []queued
	done    chan struct{}
	settled bool // what became of it is known; else it must try alone
}

// gathered is how a statement is gathered; ok: it is.
func (s Schema) gathered(query string) (at int, ok bool) {
	at = slices.IndexFunc(s.Gathered, func(g Gathered) bool { return g.Query == query })
	return at, at >= 0
}

// together has a job done with others. false: it must try alone.
func (p *postgres) together(ctx context.Context, j *job) bool {
	blind := &pgTx{p: p}
	if err := j.work(&transaction{pg: blind, memory: p.schema.memory()}); err != nil {
		return false // and if it is an error of its own, it comes again
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

// sendGroups sends whoever waits, until nobody does.
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

// next is whoever waits; nil: nobody, and the goroutine that asked is over.
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

// sendGroup sends members in one transaction. One that fails tries alone, and the others are sent again without it; when it cannot be
// said which one it was, or whether it happened, all of them do.
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

// tryGroup sends members in one transaction, in one round trip. lost: it may have happened all the same. The number that would tell is
// lost with the answer, so it is not asked for.
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

// unlessHappened is the job's work, unless it was done by a group whose answer was lost.
func (j *job) unlessHappened() func(*transaction) error {
	work := j.work
	return func(tx *transaction) error {
		if there, err := j.happened(tx); there || err != nil {
			return err
		}
		return work(tx)
	}
}

// queueGroup queues the statements of a group: those that are not rows by the order of its members, then rows, table by table.
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

// severalRows is the statement that inserts the rows of several.
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

// columnOf is what rows have in one of their columns; nil: nothing.
func columnOf[T any](rows []queued, i int) []*T {
	out := make([]*T, len(rows))
	for n, q := range rows {
		if v, ok := q.args[i].(T); ok {
			out[n] = &v
		}
	}
	return out
}

// memberError is an error of a statement that came from one member of a group.
type memberError struct {
	of  *member
	err error
}

func (e *memberError) Error() string { return e.err.Error() }
func (e *memberError) Unwrap() error { return e.err }

// Waiting is how many transactions wait to be sent to PostgreSQL together.
func (db *DB) Waiting() int {
	db.pg.groups.mu.Lock()
	defer db.pg.groups.mu.Unlock()
	return len(db.pg.groups.waiting)
}

// HoldCommits lets tests keep transactions from PostgreSQL until the function that it returns is called.
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
