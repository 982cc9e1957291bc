package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/store/audit"
	"chorus/internal/store/pgtest"
)

// owners are threads that a node has taken and committed to, so that it knows their rows.
func owners(t *testing.T, db *DB, n int) []journal.Thread {
	t.Helper()
	out := make([]journal.Thread, n)
	for i := range out {
		id := chat.ThreadID(fmt.Sprintf("cli:home:t%02d@main", i))
		if _, err := db.Commit(t.Context(), journal.Commit{Thread: id, Create: &journal.Thread{}}); err != nil {
			t.Fatal(err)
		}
		row, err := db.Take(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Commit(t.Context(), ownersStep(row, 1)); err != nil {
			t.Fatal(err)
		}
		out[i] = row
	}
	return out
}

// ownersStep is a commit of an answer, what it cost, and a line in the audit log.
func ownersStep(row journal.Thread, step int) journal.Commit {
	run := "run of " + string(row.ID)
	return journal.Commit{Thread: row.ID, Epoch: row.Epoch, Status: chat.Running,
		Events: []chat.Event{{Run: run, Body: chat.Said{Step: step, Blocks: chat.TextBlocks("an answer")}}, {Run: run, Body: chat.ToolBegan{Call: fmt.Sprint(step), Name: "shell"}}},
		Money:  []ledger.Entry{{Run: run, Step: step, Attempt: 1, Agent: "main", Payer: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Model: "m", Settled: 5, How: ledger.ByUsage}},
		Audit:  []approval.Audit{{Agent: "main", Run: run, Call: fmt.Sprint(step), Action: "shell", Decision: "allow"}}}
}

// atOnce has commits wait for each other, so that they are sent together, and gives their errors.
func atOnce(t *testing.T, db *DB, commits []journal.Commit, meanwhile func()) []error {
	t.Helper()
	goOn := db.HoldCommits()
	errs := make([]error, len(commits))
	var wg sync.WaitGroup
	for i, c := range commits {
		wg.Go(func() { _, errs[i] = db.Commit(context.Background(), c) })
	}
	await(func() bool { return db.Waiting() == len(commits) })
	meanwhile()
	goOn()
	wg.Wait()
	return errs
}

// whole fails unless threads have so many steps each, numbered without gaps, with as many lines in the ledger and the audit log, which may
// have some more.
func whole(t *testing.T, db *DB, rows []journal.Thread, steps []int, more int) {
	t.Helper()
	lines := 0
	for i, row := range rows {
		seq, said := int64(0), 0
		for e, err := range db.AllEvents(t.Context(), row.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if seq++; e.Seq != seq {
				t.Fatalf("%s: event %d where %d should be", row.ID, e.Seq, seq)
			}
			if _, ok := e.Body.(chat.Said); ok {
				said++
			}
		}
		money, err := db.LedgerEntries(t.Context(), "run of "+string(row.ID))
		if err != nil || said != steps[i] || len(money) != steps[i] {
			t.Errorf("%s: %d steps and %d lines of the ledger, not %d: %v", row.ID, said, len(money), steps[i], err)
		}
		if now, err := db.Thread(t.Context(), row.ID); err != nil || now.Next != seq+1 {
			t.Errorf("%s: next is %d and not %d: %v", row.ID, now.Next, seq+1, err)
		}
		lines += steps[i]
	}
	if c, err := db.VerifyAudit(t.Context(), "", nil); err != nil || c.Break != nil || c.Lines != int64(lines+more) {
		t.Errorf("the audit log: %+v, %+v, %v; it should have %d lines", c, c.Break, err, lines+more)
	}
	sums, err := db.Spend(t.Context(), SpendFilter{Since: db.Now().AddDate(0, 0, -1)})
	if err != nil || len(sums) != 1 || sums[0].Calls != lines || sums[0].Settled != ledger.Nanos(5*lines) {
		t.Errorf("spent: %+v, %v; want %d calls", sums, err, lines)
	}
}

// Owners that commit at the same time share a transaction.
func TestCommitsAreGathered(t *testing.T) {
	t.Parallel()
	db := openURL(t, Options{URL: pgtest.Database(t)})
	rows := owners(t, db, 20)
	var commits []journal.Commit
	for _, row := range rows {
		commits = append(commits, ownersStep(row, 2))
	}
	before := db.Made()
	for i, err := range atOnce(t, db, commits, func() {}) {
		if err != nil {
			t.Errorf("%s: %v", rows[i].ID, err)
		}
	}
	if made := db.Made() - before; made > 3 {
		t.Errorf("%d commits were %d transactions", len(rows), made)
	}
	steps := make([]int, len(rows))
	for i := range steps {
		steps[i] = 2
	}
	whole(t, db, rows, steps, 0)
}

// One commit of a group is refused, because another node has taken its thread; one finds that somebody has written to its thread, and
// one that a line of its thread's audit chain is there already. The others do not notice.
func TestOneOfAGroupFails(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db, other := openURL(t, Options{URL: url}), openURL(t, Options{URL: url})
	rows := owners(t, db, 8)
	var commits []journal.Commit
	steps := make([]int, len(rows))
	for i, row := range rows {
		commits = append(commits, ownersStep(row, 2))
		steps[i] = 2
	}
	const fenced, moved, chained = 3, 5, 6
	errs := atOnce(t, db, commits, func() {
		if _, err := other.Take(t.Context(), rows[fenced].ID); err != nil {
			t.Error(err)
		}
		if _, err := other.Commit(t.Context(), journal.Commit{Thread: rows[moved].ID, Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("meanwhile"), Prompt: true}}}}); err != nil {
			t.Error(err)
		}
		if err := other.Write(t.Context(), func(tx database.Tx) error {
			return audit.Append(tx, rows[chained].ID, approval.Audit{Action: "meanwhile", Decision: "allow"}, 1)
		}); err != nil {
			t.Error(err)
		}
	})
	for i, err := range errs {
		if i == fenced && !errors.Is(err, journal.ErrFenced) || i != fenced && err != nil {
			t.Errorf("%s: %v", rows[i].ID, err)
		}
	}
	steps[fenced] = 1
	whole(t, db, rows, steps, 1)
	if row, err := db.Thread(t.Context(), rows[moved].ID); err != nil || row.Waiting != 1 {
		t.Errorf("what came meanwhile: %d wait, %v", row.Waiting, err)
	}
}

// The connection breaks while a group is sent: the server has not heard of it, or its answer is lost. Each commit is true once.
func TestTheAnswerToAGroupIsLost(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]int32{"before the server hears": cutBefore, "before its answer is heard": loseThis} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, l := linkTo(t, pgtest.Database(t))
			db := openURL(t, Options{URL: address})
			rows := owners(t, db, 5)
			steps := make([]int, len(rows))
			for step := 2; step <= 5; step++ {
				var commits []journal.Commit
				for i, row := range rows {
					commits = append(commits, ownersStep(row, step))
					steps[i] = step
				}
				errs := atOnce(t, db, commits, func() {
					if step > 3 { // the first ones also prepare
						l.cut.Store(how)
					}
				})
				for i, err := range errs {
					if err != nil {
						t.Errorf("step %d of %s: %v", step, rows[i].ID, err)
					}
				}
				if l.cut.Load() != 0 {
					t.Error("nothing was cut")
				}
				whole(t, db, rows, steps, 0)
			}
		})
	}
}

// Somebody holds a sum that a group needs, and waits for a row of the group's: the group gives way, and everything comes true.
func TestAGroupGivesWay(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db, other := openURL(t, Options{URL: url}), openURL(t, Options{URL: url})
	rows := owners(t, db, 6)
	var commits []journal.Commit
	steps := make([]int, len(rows))
	for i, row := range rows {
		commits = append(commits, ownersStep(row, 2))
		steps[i] = 2
	}
	holds, ended := make(chan struct{}), make(chan error)
	var once sync.Once
	go func() {
		ended <- other.Write(context.Background(), func(tx database.Tx) error {
			if _, err := tx.Change(`UPDATE spent_days SET open = open`); err != nil {
				return err
			}
			before := db.Made()
			once.Do(func() { close(holds) })
			await(func() bool { return db.Made() > before })
			_, err := tx.Change(`UPDATE threads SET dir = 'elsewhere' WHERE id = ?`, string(rows[len(rows)-1].ID))
			return err
		})
	}()
	errs := atOnce(t, db, commits, func() { <-holds })
	if err := errors.Join(append(errs, <-ended)...); err != nil {
		t.Error(err)
	}
	whole(t, db, rows, steps, 0)
}

// The server is killed again and again while the owners of threads on two nodes commit. What was acknowledged is there once, and nothing is
// there twice or half, although the answer to a whole group is lost each time.
func TestPostgresIsKilledWhileOwnersCommit(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	url := cluster.Database(t)
	nodes := []*DB{openURL(t, Options{URL: url}), openURL(t, Options{URL: url})}
	rows := owners(t, nodes[0], 12)
	acknowledged := make([][]int, len(rows))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i, row := range rows {
		wg.Go(func() {
			db := nodes[i%2]
			for step := 2; ; step++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := db.Commit(context.Background(), ownersStep(row, step))
				var known *database.Problem
				switch {
				case err == nil:
					acknowledged[i] = append(acknowledged[i], step)
				case !errors.As(err, &known) || known.What != database.ErrAway && known.What != database.ErrBusy:
					t.Errorf("step %d of %s: %v", step, row.ID, err)
					return
				}
			}
		})
	}
	goOn := func(db *DB) {
		before := db.Made()
		await(func() bool { return db.Made() > before+20 })
	}
	for range 3 {
		goOn(nodes[0])
		cluster.Kill()
		if err := cluster.Start(); err != nil {
			t.Fatal(err)
		}
	}
	goOn(nodes[1])
	close(stop)
	wg.Wait()
	steps := make([]int, len(rows))
	for i, row := range rows {
		there, began := map[int]int{}, 0
		for e, err := range nodes[0].AllEvents(t.Context(), row.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case chat.Said:
				there[b.Step]++
				steps[i]++
			case chat.ToolBegan:
				began++
			}
		}
		for _, step := range acknowledged[i] {
			if there[step] != 1 {
				t.Errorf("step %d of %s was acknowledged and is there %d times", step, row.ID, there[step])
			}
		}
		if len(there) != steps[i] || began != steps[i] {
			t.Errorf("%s: %d steps, %d different ones, %d calls", row.ID, steps[i], len(there), began)
		}
		t.Logf("%s: %d acknowledged, %d there", row.ID, len(acknowledged[i]), steps[i]-1)
	}
	whole(t, nodes[1], rows, steps, 0)
}
