package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// openTwice opens a file twice, as two processes would.
func openTwice(t fataler, path string, now func() time.Time) (dbs [2]*DB, closeAll func()) {
	for i := range dbs {
		db, err := Open(context.Background(), Options{Path: path, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		dbs[i] = db
	}
	return dbs, func() {
		for _, db := range dbs {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

type fataler interface{ Fatal(args ...any) }

// payingThread is a thread that somebody owns.
func payingThread(t fataler, db *DB, id chat.ThreadID) journal.Thread {
	_, err := db.Commit(context.Background(), journal.Commit{Thread: id, Create: &journal.Thread{}, Events: []chat.Event{
		{Body: chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	row, err := db.Take(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// purses is a life of money: runs that reserve, settle, lose attempts and end, in two
// processes and over days, with a plain list beside the ledger.
type purses struct {
	dbs    [2]*DB
	now    time.Time
	runs   []*purse
	lines  []*ledger.Entry
	at     map[*ledger.Entry]time.Time
	asked  map[string]bool
	budget ledger.Budget
}

type purse struct {
	id            string
	row           journal.Thread
	agent         string
	payer         chat.Principal
	step, attempt int
	open          *ledger.Entry
	over          bool
}

// TestSumsAreTheLedger: whatever happens in whatever order, a reservation is allowed
// exactly when the plain list says that every ceiling holds, and the kept sums are
// what the lines come to, also when counting begins in the middle.
func TestSumsAreTheLedger(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "chorus.db")
	if _, err := Migrate(t.Context(), made, database.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	empty, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	dir, life := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		life++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", life))
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		p := newPurses(t, path)
		defer func() {
			for _, db := range p.dbs {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"reserve": p.reserve, "reserve again": p.reserve, "settle": p.settle, "settle too": p.settle,
			"end": p.end, "wait": p.wait, "": p.check,
		})
	})
}

func newPurses(t *rapid.T, path string) *purses {
	p := &purses{now: time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC), at: map[*ledger.Entry]time.Time{}, asked: map[string]bool{}}
	p.dbs, _ = openTwice(t, path, func() time.Time { return p.now })
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	bob := chat.Principal{Kind: "discord", ID: "bob", Roles: []string{"guest"}}
	for i, id := range []chat.ThreadID{"cli:a:1@main", "cli:b:2@main", "discord:g/c:3@other", "discord:g/d:4@main", "discord:g/c/p:5@main"} {
		r := &purse{id: fmt.Sprint("r", i), row: payingThread(t, p.dbs[0], id), agent: id.Agent(), payer: ada}
		if i%2 == 1 {
			r.payer = bob
		}
		p.runs = append(p.runs, r)
	}
	most := rapid.Int64Range(100, 2000)
	p.budget.Soft = rapid.SampledFrom([]float64{0, 0.5, 0.8}).Draw(t, "soft")
	for _, c := range []ledger.Ceiling{{Scope: ledger.Guild, Period: ledger.Month}, {Scope: ledger.Channel, Period: ledger.Day}, {Scope: ledger.Agent, Period: ledger.Day},
		{Scope: ledger.Agent, Period: ledger.Month}, {Scope: ledger.Person, Period: ledger.Day}, {Scope: ledger.Role, Role: "guest", Period: ledger.Month}, {Scope: ledger.Task, Period: ledger.Once}} {
		if rapid.Bool().Draw(t, c.Key()) {
			c.Most = most.Draw(t, "most")
			p.budget.Ceilings = append(p.budget.Ceilings, c)
		}
	}
	return p
}

func (p *purses) draw(t *rapid.T) (*purse, *DB) {
	return rapid.SampledFrom(p.runs).Draw(t, "run"), p.dbs[rapid.IntRange(0, 1).Draw(t, "process")]
}

func (r *purse) commit(e ledger.Entry) journal.Commit {
	e.Run, e.Agent, e.Payer, e.Model, e.Thread = r.id, r.agent, r.payer, "m", r.row.ID
	return journal.Commit{Thread: r.row.ID, Epoch: r.row.Epoch, Money: []ledger.Entry{e}}
}

// reserve begins the next attempt or step; one that is open is lost thereby.
func (p *purses) reserve(t *rapid.T) {
	r, db := p.draw(t)
	if r.over {
		return
	}
	step, attempt := r.step+1, 1
	if r.open != nil {
		step, attempt = r.step, r.attempt+1
	}
	e := ledger.Entry{Step: step, Attempt: attempt, Reserved: rapid.Int64Range(0, 300).Draw(t, "worst")}
	c := r.commit(e)
	if rapid.IntRange(0, 3).Draw(t, "held") > 0 {
		c.Ceilings = p.budget.For(r.row.ID, r.agent, r.payer, r.id)
	}
	want := p.judge(c.Ceilings, r, e.Reserved)
	_, err := db.Commit(context.Background(), c)
	var got *ledger.Refusal
	errors.As(err, &got)
	switch {
	case err != nil && got == nil:
		t.Fatal(err)
	case (want == nil) != (got == nil) || want != nil && want.Error() != got.Error():
		t.Fatalf("the list says %v, the store %v", want, got)
	case got != nil && !errors.Is(err, journal.ErrBudget):
		t.Fatalf("%v is no ErrBudget", err)
	case got != nil && got.Soft:
		end := r.commit(e)
		end.Money, end.Warned = nil, []*ledger.Refusal{got}
		if _, err := db.Commit(context.Background(), end); err != nil {
			t.Fatal(err)
		}
		p.asked[askedKey(got.Stand, got.When)] = true
	case got == nil:
		p.lose(r)
		line := &c.Money[0]
		r.step, r.attempt, r.open = step, attempt, line
		p.lines, p.at[line] = append(p.lines, line), p.now
	}
}

func askedKey(s ledger.Stand, when string) string {
	return fmt.Sprint(s.Key(), s.Subject, when)
}

// judge is the rule on the plain list.
func (p *purses) judge(c *ledger.Ceilings, r *purse, want ledger.Nanos) *ledger.Refusal {
	if c == nil {
		return nil
	}
	var stands []ledger.Stand
	for _, l := range c.Limits {
		s := ledger.Stand{Limit: l}
		for _, line := range p.lines {
			if !counts(l, line) || l.Period.Name(p.at[line]) != l.Period.Name(p.now) {
				continue
			}
			switch {
			case line.How != ledger.Open:
				s.Settled += line.Settled
			case line.Run == r.id: // lost by the reservation that is asked for
				s.Settled += line.Reserved
			default:
				s.Open += line.Reserved
			}
		}
		s.Asked = p.asked[askedKey(s, l.Period.Name(p.now))]
		stands = append(stands, s)
	}
	return ledger.Judge(stands, c.Soft, want, p.now)
}

func counts(l ledger.Limit, e *ledger.Entry) bool {
	switch l.Scope {
	case ledger.Guild:
		return ledger.GuildOf(e.Thread) == l.Subject
	case ledger.Channel:
		return ledger.ChannelOf(e.Thread) == l.Subject
	case ledger.Agent:
		return e.Agent == l.Subject
	case ledger.Task:
		return e.Run == l.Subject
	default:
		return e.Payer.String() == l.Subject
	}
}

func (p *purses) lose(r *purse) {
	if r.open != nil {
		r.open.Settled, r.open.How = r.open.Reserved, ledger.Assumed
		r.open = nil
	}
}

func (p *purses) settle(t *rapid.T) {
	r, db := p.draw(t)
	if r.open == nil {
		return
	}
	line := r.open
	line.Settled, line.How = rapid.Int64Range(0, 2*line.Reserved).Draw(t, "cost"), ledger.ByUsage
	r.open = nil
	if _, err := db.Commit(context.Background(), r.commit(*line)); err != nil {
		t.Fatal(err)
	}
}

func (p *purses) end(t *rapid.T) {
	r, db := p.draw(t)
	if r.over || r.step < 3 {
		return
	}
	c := r.commit(ledger.Entry{})
	c.Money, c.Events = nil, []chat.Event{{Run: r.id, Body: chat.RunEnded{Run: r.id, Reason: chat.EndDone}}}
	if _, err := db.Commit(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	p.lose(r)
	r.over = true
}

func (p *purses) wait(t *rapid.T) {
	p.now = p.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
}

// check holds the kept sums of the periods that are on against the list.
func (p *purses) check(t *rapid.T) {
	type sum struct{ open, settled ledger.Nanos }
	var kinds []ledger.Limit
	kept, want := map[string]sum{}, map[string]sum{}
	err := p.dbs[0].Query(context.Background(), `SELECT c.scope, c.unit, coalesce(s.whose, ''), coalesce(s.open, 0), coalesce(s.settled, 0) FROM counted c
		LEFT JOIN spent s ON s.scope = c.scope AND s.period = CASE c.unit WHEN 'day' THEN ? ELSE ? END`,
		[]any{ledger.Day.Name(p.now), ledger.Month.Name(p.now)}, func(rows *sql.Rows) error {
			var l ledger.Limit
			var s sum
			if err := rows.Scan(&l.Scope, &l.Period, &l.Subject, &s.open, &s.settled); err != nil {
				return err
			}
			if s != (sum{}) {
				kept[l.Key()+" "+l.Subject] = s
			}
			l.Subject = ""
			if !slices.Contains(kinds, l) {
				kinds = append(kinds, l)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range p.lines {
		for _, k := range kinds {
			if k.Period.Name(p.at[line]) != k.Period.Name(p.now) {
				continue
			}
			l := ledger.Budget{Ceilings: []ledger.Ceiling{k.Ceiling}}.For(line.Thread, line.Agent, line.Payer, line.Run).Limits[0]
			s := want[l.Key()+" "+l.Subject]
			if s.settled += line.Settled; line.How == ledger.Open {
				s.open += line.Reserved
			}
			if want[l.Key()+" "+l.Subject] = s; s == (sum{}) {
				delete(want, l.Key()+" "+l.Subject)
			}
		}
	}
	if !maps.Equal(kept, want) {
		t.Fatalf("kept %v\nlist %v", kept, want)
	}
}

// TestNobodyOverspends: threads of two processes reserve at the same moment, as much
// as they can get, and no ceiling is ever passed, though nothing is left lying either.
func TestNobodyOverspends(t *testing.T) {
	t.Parallel()
	both(t, testNobodyOverspends)
}

func testNobodyOverspends(t *testing.T, open func(Options) *DB) {
	const threads, each, most = 8, 12, 1000
	dbs := [2]*DB{open(Options{}), open(Options{})}
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	budget := ledger.Budget{Ceilings: []ledger.Ceiling{{Scope: ledger.Person, Period: ledger.Month, Most: most}, {Scope: ledger.Agent, Period: ledger.Day, Most: 10 * most}}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted, refused := ledger.Nanos(0), 0
	start := make(chan struct{})
	for i := range threads {
		id := chat.ThreadID(fmt.Sprintf("cli:home:%d@main", i))
		r := &purse{id: fmt.Sprint("r", i), row: payingThread(t, dbs[i%2], id), agent: "main", payer: ada}
		wg.Go(func() {
			<-start
			for step := range each {
				c := r.commit(ledger.Entry{Step: step + 1, Attempt: 1, Reserved: 30})
				c.Ceilings = budget.For(id, "main", ada, r.id)
				c.Events = []chat.Event{{Body: chat.Asked{Step: step + 1, Attempt: 1}}}
				_, err := dbs[i%2].Commit(context.Background(), c)
				mu.Lock()
				switch {
				case err == nil:
					granted += 30
				case errors.Is(err, journal.ErrBudget):
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	if granted != most/30*30 || refused != threads*each-most/30 {
		t.Errorf("granted %d of %d, refused %d", granted, most, refused)
	}
	got, err := dbs[0].Spend(t.Context(), SpendFilter{})
	if err != nil || got[0].Open != granted {
		t.Errorf("the ledger has %+v (%v)", got, err)
	}
}

// A refused commit leaves nothing behind: no event, no number, no line.
func TestRefusedCommitsWriteNothing(t *testing.T) {
	t.Parallel()
	both(t, testRefusedCommitsWriteNothing)
}

func testRefusedCommitsWriteNothing(t *testing.T, open func(Options) *DB) {
	dbs := [2]*DB{open(Options{}), open(Options{})}
	db, ada := dbs[0], chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	r := &purse{id: "r", row: payingThread(t, db, "cli:home:x@main"), agent: "main", payer: ada}
	before, err := db.Thread(t.Context(), r.row.ID)
	if err != nil {
		t.Fatal(err)
	}
	c := r.commit(ledger.Entry{Step: 1, Attempt: 1, Reserved: 30})
	c.Ceilings = ledger.Budget{Ceilings: []ledger.Ceiling{{Scope: ledger.Agent, Period: ledger.Day, Most: 29}}}.For(r.row.ID, "main", ada, "r")
	c.Events = []chat.Event{{Body: chat.Asked{Step: 1, Attempt: 1}}}
	if _, err := db.Commit(t.Context(), c); !errors.Is(err, journal.ErrBudget) || !strings.Contains(err.Error(), "budgets.agent.day") {
		t.Fatal(err)
	}
	after, err := db.Thread(t.Context(), r.row.ID)
	if err != nil || after.Next != before.Next {
		t.Errorf("next is %d, was %d (%v)", after.Next, before.Next, err)
	}
	if lines, err := db.LedgerEntries(t.Context(), "r"); err != nil || len(lines) != 0 {
		t.Errorf("lines: %v (%v)", lines, err)
	}
	c.Ceilings.Limits[0].Most = 30 // and the thread goes on
	if _, err := db.Commit(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// A process that dies between reserving and settling leaves its reservation: another
// one cannot spend it before it is settled, and it counts as spent from then on.
func TestCrashBetweenReserveAndSettle(t *testing.T) {
	t.Parallel()
	both(t, testCrashBetweenReserveAndSettle)
}

func testCrashBetweenReserveAndSettle(t *testing.T, open func(Options) *DB) {
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	budget := ledger.Budget{Ceilings: []ledger.Ceiling{{Scope: ledger.Agent, Period: ledger.Month, Most: 100}}}
	reserve := func(db *DB, r *purse, attempt int) error {
		c := r.commit(ledger.Entry{Step: 1, Attempt: attempt, Reserved: 40})
		c.Ceilings = budget.For(r.row.ID, "main", ada, r.id)
		_, err := db.Commit(context.Background(), c)
		return err
	}
	dbs := [2]*DB{open(Options{}), open(Options{})}
	dead := &purse{id: "dead", row: payingThread(t, dbs[0], "cli:home:a@main"), agent: "main", payer: ada}
	other := &purse{id: "other", row: payingThread(t, dbs[0], "cli:home:b@main"), agent: "main", payer: ada}
	if err := reserve(dbs[0], dead, 1); err != nil {
		t.Fatal(err)
	}
	for i := range dbs { // nothing of what is kept is in memory
		if err := dbs[i].Close(); err != nil {
			t.Fatal(err)
		}
		dbs[i] = open(Options{})
	}
	if err := reserve(dbs[0], other, 1); err != nil {
		t.Fatal("80 of 100:", err)
	}
	if err := reserve(dbs[1], dead, 2); !errors.Is(err, journal.ErrBudget) {
		t.Fatal("a second attempt beside a lost one fits nowhere:", err)
	}
	c := other.commit(ledger.Entry{Step: 1, Attempt: 1, Reserved: 40, How: ledger.ByUsage, Settled: 5})
	if _, err := dbs[0].Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := reserve(dbs[1], dead, 2); err != nil {
		t.Fatal("40 lost, 5 spent, 40 wanted:", err)
	}
	lines, err := dbs[0].LedgerEntries(t.Context(), "dead")
	if err != nil || len(lines) != 2 || lines[0].How != ledger.Assumed || lines[0].Settled != 40 || lines[1].How != ledger.Open {
		t.Errorf("lines: %+v (%v)", lines, err)
	}
}

// The cost of a run left out a call that was lost in a crash, and the ledger did not.
func TestRunAndLedgerAgreeAfterACrash(t *testing.T) {
	t.Parallel()
	both(t, testRunAndLedgerAgreeAfterACrash)
}

func testRunAndLedgerAgreeAfterACrash(t *testing.T, open func(Options) *DB) {
	db := open(Options{})
	const thread = chat.ThreadID("cli:home:one@main")
	say(t, db, "hi")
	row, err := db.Take(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(c journal.Commit) {
		t.Helper()
		c.Thread, c.Epoch = thread, row.Epoch
		if _, err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(step int, how ledger.How, reserved, settled ledger.Nanos) ledger.Entry {
		return ledger.Entry{Run: "r", Step: step, Attempt: 1, Model: "m", Reserved: reserved, Settled: settled, How: how}
	}
	commit(journal.Commit{Events: []chat.Event{{Run: "r", Body: chat.RunStarted{Run: "r"}}}, Money: []ledger.Entry{entry(1, ledger.ByUsage, 50, 24)}})
	commit(journal.Commit{Events: []chat.Event{{Run: "r", Body: chat.Asked{Step: 2, Attempt: 1}}}, Money: []ledger.Entry{entry(2, ledger.Open, 26, 0)}})
	cost, err := db.RunCost(t.Context(), "r") // as it is asked for right before the run ends
	if err != nil {
		t.Fatal(err)
	}
	commit(journal.Commit{Events: []chat.Event{{Run: "r", Body: chat.RunEnded{Run: "r", Cost: int64(cost)}}}})
	entries, err := db.LedgerEntries(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var sum ledger.Nanos
	for _, e := range entries {
		sum += e.Settled
	}
	if sum != 50 || cost != sum {
		t.Errorf("the run says %d, the ledger %d", cost, sum)
	}
}
