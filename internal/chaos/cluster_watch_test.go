package chaos

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// watchSchema has the database itself write down, within the transactions that are watched, who wrote which event, who raised the epoch of which thread, and
// which nodes were given up. Nodes are known by the names of their connections.
const watchSchema = `
CREATE SCHEMA watch;
CREATE SEQUENCE watch.n;
CREATE TABLE watch.events (n BIGINT, thread TEXT, seq BIGINT, kind TEXT, node TEXT, at TIMESTAMPTZ);
CREATE TABLE watch.epochs (n BIGINT, thread TEXT, node TEXT);
CREATE TABLE watch.deaths (name TEXT, at TIMESTAMPTZ);
CREATE FUNCTION watch.event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO watch.events VALUES (nextval('watch.n'), NEW.thread_id, NEW.seq, NEW.kind, current_setting('application_name'), clock_timestamp());
	RETURN NULL; END $$;
CREATE FUNCTION watch.epoch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO watch.epochs VALUES (nextval('watch.n'), NEW.id, current_setting('application_name'));
	RETURN NULL; END $$;
CREATE FUNCTION watch.death() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO watch.deaths VALUES (NEW.name, clock_timestamp());
	RETURN NULL; END $$;
CREATE TRIGGER watch AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION watch.event();
CREATE TRIGGER watch AFTER UPDATE OF epoch ON threads FOR EACH ROW WHEN (NEW.epoch > OLD.epoch) EXECUTE FUNCTION watch.epoch();
CREATE TRIGGER watch AFTER UPDATE OF dead ON nodes FOR EACH ROW WHEN (NEW.dead = 1 AND OLD.dead = 0) EXECUTE FUNCTION watch.death();`

// ownerKinds are the events that only the owner of a thread writes.
const ownerKinds = `('run_started', 'took', 'asked', 'said', 'tool_began', 'tool_ran', 'run_ended')`

// query reads from the database of the cluster, on a way of its own.
func (c *cluster) query(statement string, args []any, scan func(pgx.Rows) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.database)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, statement, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) watch() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.database)
	if err == nil {
		_, err = conn.Exec(ctx, watchSchema)
		_ = conn.Close(ctx)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// owned are the threads of a node.
func (c *cluster) owned(node string) (threads []string) {
	c.t.Helper()
	c.query(`SELECT substr(owned.name, 8) FROM owned JOIN nodes ON nodes.id = owned.node WHERE nodes.name = $1 AND nodes.dead = 0 AND owned.name LIKE 'thread:%'`, []any{node}, func(rows pgx.Rows) error {
		var thread string
		err := rows.Scan(&thread)
		threads = append(threads, thread)
		return err
	})
	return threads
}

type death struct {
	node string
	at   time.Time
}

func (c *cluster) deaths() (all []death) {
	c.t.Helper()
	c.query(`SELECT name, at FROM watch.deaths ORDER BY at`, nil, func(rows pgx.Rows) error {
		var d death
		err := rows.Scan(&d.node, &d.at)
		all = append(all, d)
		return err
	})
	return all
}

// goesOn is when the run of a thread that was on at a moment had its next event; false: none was on, or it never had one.
func (c *cluster) goesOn(thread string, at time.Time) (time.Time, bool) {
	c.t.Helper()
	var last string
	c.query(`SELECT kind FROM watch.events WHERE thread = $1 AND at <= $2 AND kind IN `+ownerKinds+` ORDER BY n DESC LIMIT 1`, []any{thread, at}, func(rows pgx.Rows) error { return rows.Scan(&last) })
	if last == "" || last == "run_ended" {
		return time.Time{}, false
	}
	var next time.Time
	c.query(`SELECT at FROM watch.events WHERE thread = $1 AND at > $2 AND kind IN `+ownerKinds+` ORDER BY n LIMIT 1`, []any{thread, at}, func(rows pgx.Rows) error { return rows.Scan(&next) })
	return next, !next.IsZero()
}

// written fails if an event that only a thread's owner may write was written by another node than the one that had taken the thread last: a zombie.
func (c *cluster) written() (events int) {
	c.t.Helper()
	c.query(`SELECT e.thread, e.seq, e.kind, e.node, coalesce(owner.node, '') FROM watch.events e
		LEFT JOIN LATERAL (SELECT node FROM watch.epochs o WHERE o.thread = e.thread AND o.n < e.n ORDER BY o.n DESC LIMIT 1) owner ON true
		WHERE e.kind IN `+ownerKinds, nil, func(rows pgx.Rows) error {
		var thread, kind, node, owner string
		var seq int64
		err := rows.Scan(&thread, &seq, &kind, &node, &owner)
		if events++; node != owner && owner != "" {
			c.t.Errorf("event %d of %s (%s) was written by %s, and the thread was %s's", seq, thread, kind, node, owner)
		}
		return err
	})
	return events
}

// machine knows whether this machine keeps up: what is measured while it does much else says nothing about Chorus.
type machine struct {
	mu    sync.Mutex
	late  []lateness
	queue []queued
}

// lateness is how late something was that was due.
type lateness struct {
	at time.Time
	by time.Duration
}

// queued is how many tasks of the whole machine wanted a processor.
type queued struct {
	at    time.Time
	tasks int
}

// A machine whose times count is never later than quiet with what is due, and has not more tasks for each of its processors than crowd, on average: what waits for
// a processor is three servers, PostgreSQL and commands, each of which needs several turns for what it does within a second.
const (
	quiet = 200 * time.Millisecond
	crowd = 4
)

func watchMachine(t testing.TB) *machine {
	m := &machine{}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		const every = 10 * time.Millisecond
		for n := 0; ; n++ {
			if n%10 == 0 {
				m.count()
			}
			before := time.Now()
			select {
			case <-stop:
				return
			case <-time.After(every):
			}
			if by := time.Since(before) - every; by > quiet/4 {
				m.mu.Lock()
				m.late = append(m.late, lateness{before, by})
				m.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return m
}

// count counts those that want a processor, where the system says it.
func (m *machine) count() {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return
	}
	running, _, _ := strings.Cut(fields[3], "/")
	if n, err := strconv.Atoi(running); err == nil {
		m.mu.Lock()
		m.queue = append(m.queue, queued{time.Now(), n})
		m.mu.Unlock()
	}
}

// busy is how late it was at worst between two moments, or how long it was crowded; 0: it was quiet.
func (m *machine) busy(from, to time.Time) (worst time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	looks, tasks := 0, 0
	for _, q := range m.queue {
		if q.at.After(from.Add(-time.Second)) && q.at.Before(to) {
			looks, tasks = looks+1, tasks+q.tasks
		}
	}
	if tasks > crowd*runtime.NumCPU()*looks {
		worst = to.Sub(from)
	}
	for _, l := range m.late {
		if l.at.Before(to) && l.at.Add(l.by).After(from) && l.by > quiet {
			worst = max(worst, l.by)
		}
	}
	return worst
}

// measured are times that have a bar: those of a busy machine are told of, and not held against it.
type measured struct {
	what       string
	bar        time.Duration
	all, quiet []time.Duration
}

func (m *measured) add(took, busy time.Duration) {
	m.all = append(m.all, took)
	if busy == 0 {
		m.quiet = append(m.quiet, took)
	}
}

// tell says what was measured, and fails beyond the bar. The short story has one or two of each, beside other tests: twice the bar is enough there.
func (m *measured) tell(t testing.TB) {
	t.Helper()
	bar := m.bar
	if os.Getenv("CHORUS_CLUSTER") == "" {
		bar *= 2
	}
	t.Logf("%s: %s; while the machine was quiet %s (bar: p99 %s)", m.what, spread(m.all), spread(m.quiet), m.bar)
	if len(m.quiet) > 0 && share(m.quiet, .99) > bar {
		t.Errorf("%s: p99 is %s, beyond %s", m.what, share(m.quiet, .99), bar)
	}
}

// share is the time within which so much of all is.
func share(of []time.Duration, part float64) time.Duration {
	slices.Sort(of)
	return of[int(part*float64(len(of)-1)+.5)].Round(time.Millisecond)
}

func spread(of []time.Duration) string {
	if len(of) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, longest %s of %d", share(of, .5), share(of, .9), share(of, .99), share(of, 1), len(of))
}
