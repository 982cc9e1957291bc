package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"chorus/internal/await"
)

const (
	// The maximum number of connections per node. Commits leave some for reads, so that a long
	// queue of commits is visible and does not block. Urgent jobs, such as signalling that the node
	// is alive, have some of their own and never wait for slow reads.
	maxConns   = 9
	maxCommits = 8
	maxHurried = 2
	// A transaction that is open while its process is frozen keeps its rows locked for everybody.
	idleInTransaction = 2 * time.Second
	// statementLimit ends statements that would wait for a lock, or read, forever. answerLimit,
	// which is longer, ends those whose answer was lost in the network.
	statementLimit = 30 * time.Second
	answerLimit    = 40 * time.Second
	// maxCollisions is how often a transaction that was rolled back because of others is retried.
	maxCollisions = 10
	// defaultMaxWait is how long to wait for an unavailable server. A restart takes less.
	defaultMaxWait = 10 * time.Second
)

// postgres is a database on a server that several nodes use. Each job is a transaction on
// a connection of its own. Rows that are read in order to be written are locked in a fixed
// order: threads by id, then what they own, then sums.
type postgres struct {
	name    string // its URL without the password
	schema  Schema
	pool    *sql.DB
	hurry   *sql.DB // for urgent jobs
	texts   numbered
	maxWait time.Duration
	health  *health
	made    atomic.Int64  // transactions that were committed, or may have been
	commits chan struct{} // holds a value for each running job
	trouble trouble
	groups  groups

	mu     sync.Mutex
	closed bool
	on     sync.WaitGroup // running jobs

	fault func(after bool) error // lets tests break a COMMIT, like that of writer
}

func openPostgres(ctx context.Context, o Options, h *health) (*postgres, error) {
	config, err := postgresConfig(o.URL)
	if err != nil {
		return nil, err
	}
	p := &postgres{name: RedactURL(o.URL), schema: o.Schema, maxWait: o.MaxWait, health: h, commits: make(chan struct{}, maxCommits)}
	if p.maxWait <= 0 {
		p.maxWait = defaultMaxWait
	}
	p.pool, p.hurry = p.openPool(config, maxConns), p.openPool(config, maxHurried)
	err = p.again(ctx, func() error { return p.ready(ctx, config) })
	if err != nil {
		return nil, errors.Join(p.explain(err), p.closePools())
	}
	return p, nil
}

// ready checks that the database is ours and migrates it.
func (p *postgres) ready(ctx context.Context, config *pgx.ConnConfig) error {
	version, err := p.identify(ctx, p.pool)
	if err == nil && version < p.schema.Version {
		err = migratePostgres(ctx, p, config, p.schema.Version)
	}
	if err == nil {
		_, err = p.pool.ExecContext(ctx, forgetXacts)
	}
	return err
}

// explain turns an error caused by the database into a Problem.
func (p *postgres) explain(err error) error {
	var known *Problem
	if err == nil || errors.As(err, &known) {
		return err
	}
	if what := postgresProblem(err); what != nil {
		return &Problem{What: what, Path: p.name, Cause: err}
	}
	return err
}

// again retries something until the server is available, while there is time.
func (p *postgres) again(ctx context.Context, try func() error) error {
	end := time.Now().Add(p.maxWait)
	for {
		err := try()
		if !unreachable(err) || time.Now().After(end) || p.isClosed() {
			return err
		}
		if !pause(ctx, 50, 150) {
			return err
		}
	}
}

// pause waits a random number of milliseconds between least and most. It returns false if ctx ended.
func pause(ctx context.Context, least, most int) bool {
	return await.For(ctx, time.Duration(least+rand.IntN(most-least+1))*time.Millisecond)
}

func (p *postgres) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// close waits for the running jobs.
func (p *postgres) close() error {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	p.mu.Unlock()
	p.on.Wait()
	if was {
		return nil
	}
	return p.closePools()
}

func (p *postgres) closePools() error { return errors.Join(p.pool.Close(), p.hurry.Close()) }

// begin registers a job, unless the store is closed.
func (p *postgres) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.on.Add(1)
	}
	return !p.closed
}

// do runs a job in a transaction of its own. A caller that gives up before its turn
// has written nothing; after that, do waits for the outcome.
func (p *postgres) do(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil && !p.isClosed() {
		return err
	}
	if !p.begin() {
		return ErrClosed
	}
	defer p.on.Done()
	if j.happened != nil && p.fault == nil && p.together(ctx, j) {
		j.err = p.explain(j.err)
		p.health.saw(j.err)
		return j.err
	}
	if !j.hurried {
		select {
		case p.commits <- struct{}{}:
			defer func() { <-p.commits }()
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(maxQueued):
			return &Problem{What: ErrBusy, Path: p.name}
		}
	}
	j.err = p.explain(p.transact(ctx, j))
	p.health.saw(j.err)
	return j.err
}

// transact tries a job until it is committed, refused, or collided with others too often.
func (p *postgres) transact(ctx context.Context, j *job) (err error) {
	for collisions := 0; ; {
		err = p.again(ctx, func() error {
			if j.lost {
				return nil // only reading tells whether it happened
			}
			j.err = p.try(ctx, j)
			return j.err
		})
		if j.lost {
			return j.err
		}
		if collisions++; !collided(err) || collisions > maxCollisions || !pause(ctx, 0, 5*collisions) {
			return err
		}
	}
}

// try runs a job in one transaction.
func (p *postgres) try(ctx context.Context, j *job) error {
	pool := p.hurry
	if !j.hurried {
		ctx, pool = context.WithoutCancel(ctx), p.pool
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	open, err := p.open(ctx, pool)
	if err != nil {
		p.trouble.endSilent() // silent connections may be what takes up the room
		return err
	}
	defer open.close()
	open.askNumber()
	tx := &transaction{pg: open, memory: p.schema.memory()}
	err = j.work(tx)
	if err == nil && p.fault != nil {
		err = open.flush() // only COMMIT should break
	}
	if err == nil {
		p.made.Add(1)
		if err = p.faulty(false); err != nil {
			j.lost = true
		}
	}
	if err != nil {
		p.trouble.saw(err)
		open.rollback()
		if ctx.Err() != nil {
			err = &Problem{What: ErrAway, Path: p.name, Cause: err}
		}
		return err
	}
	if j.lost, err = open.commit(); j.lost {
		p.trouble.saw(err)
		open.close()
		if !j.hurried {
			j.lost, err = p.outcome(ctx, open.number, err)
		}
	} else if err == nil {
		if err = p.faulty(true); err != nil {
			j.lost = true
		}
	}
	if err == nil {
		p.health.wrote()
		return nil
	}
	return fmt.Errorf("commit: %w", err)
}

func (p *postgres) faulty(after bool) error {
	if p.fault == nil {
		return nil
	}
	return p.fault(after)
}

// read runs a read and passes each row to scan. It retries only if no row was passed yet.
func (p *postgres) read(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	return p.readFrom(ctx, p.pool, query, args, scan)
}

func (p *postgres) readFrom(ctx context.Context, pool *sql.DB, query string, args []any, scan func(*sql.Rows) error) error {
	if !p.begin() {
		return ErrClosed
	}
	defer p.on.Done()
	values, err := postgresArgs(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var scanned error
	err = p.again(ctx, func() error {
		seen := false
		rows, err := pool.QueryContext(ctx, p.texts.of(query), values...)
		err = ScanAll(func(rows *sql.Rows) error {
			seen = true
			return scan(rows)
		})(rows, err)
		p.trouble.saw(err)
		if seen && err != nil {
			scanned = err
			return nil
		}
		return err
	})
	err = p.explain(cmp.Or(err, scanned))
	p.health.saw(err)
	return err
}

// version returns a number that changes when anybody has written to the server.
func (p *postgres) version(ctx context.Context) (int64, error) {
	h := fnv.New64a()
	err := p.read(ctx, querySnapshot, nil, func(rows *sql.Rows) error {
		var snapshot string
		err := rows.Scan(&snapshot)
		_, _ = h.Write([]byte(snapshot))
		return err
	})
	return int64(h.Sum64() & math.MaxInt64), err
}
