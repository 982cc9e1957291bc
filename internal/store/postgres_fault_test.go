package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store/pgtest"
)

// openURL opens a node on a server's database.
func openURL(t *testing.T, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// The server is killed again and again while two nodes commit. What was acknowledged is there, once; what was refused is not
// there, or nobody knows; nothing is half there; and everybody goes on when the server is back.
func TestPostgresIsKilled(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	url := cluster.Database(t)
	nodes := []*DB{openURL(t, Options{URL: url}), openURL(t, Options{URL: url})}
	ctx := context.Background()
	const writers = 6
	var wg sync.WaitGroup
	stop := make(chan struct{})
	acknowledged := make([][]string, writers)
	for i := range writers {
		wg.Go(func() {
			thread := chat.ThreadID(fmt.Sprintf("cli:home:t%d@main", i))
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", i, n)
				_, err := nodes[i%2].Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{}, Events: []chat.Event{
					{Platform: "test", PlatformID: id, Body: chat.Received{Blocks: chat.TextBlocks("first " + id), Prompt: true}},
					{Platform: "test", PlatformID: id + "b", Body: chat.Received{Blocks: chat.TextBlocks("second " + id)}}},
					Audit: []approval.Audit{{Action: id, Decision: "allow"}}})
				var known *database.Problem
				switch {
				case err == nil:
					acknowledged[i] = append(acknowledged[i], id)
				case !errors.As(err, &known) || known.What != database.ErrAway && known.What != database.ErrBusy:
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	for range 3 {
		before := nodes[0].Made()
		await(func() bool { return nodes[0].Made() > before+20 })
		cluster.Kill()
		if err := cluster.Start(); err != nil {
			t.Fatal(err)
		}
	}
	before := nodes[1].Made()
	await(func() bool { return nodes[1].Made() > before+20 })
	close(stop)
	wg.Wait()
	for i := range writers {
		thread := chat.ThreadID(fmt.Sprintf("cli:home:t%d@main", i))
		there := map[string]int{}
		prompts, seq := 0, int64(0)
		for e, err := range nodes[0].AllEvents(ctx, thread, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if seq++; e.Seq != seq {
				t.Fatalf("%s: event %d where %d should be", thread, e.Seq, seq)
			}
			there[e.PlatformID]++
			if journal.IsPrompt(e.Body) {
				prompts++
			}
		}
		for _, id := range acknowledged[i] {
			if there[id] != 1 {
				t.Errorf("%s was acknowledged and is there %d times", id, there[id])
			}
		}
		for id, n := range there {
			whole := strings.TrimSuffix(id, "b")
			if n != 1 || there[whole] != 1 || there[whole+"b"] != 1 {
				t.Errorf("%s is there %d times, its commit %d and %d", id, n, there[whole], there[whole+"b"])
			}
		}
		if row, err := nodes[1].Thread(ctx, thread); err != nil || row.Next != seq+1 || row.Waiting != prompts {
			t.Errorf("%s: next %d, waiting %d; want %d and %d (%v)", thread, row.Next, row.Waiting, seq+1, prompts, err)
		}
		t.Logf("%s: %d acknowledged, %d events", thread, len(acknowledged[i]), seq)
	}
	if check, err := nodes[0].VerifyAudit(ctx, "", nil); err != nil || check.Break != nil {
		t.Errorf("the audit log: %+v, %v", check, err)
	}
}

// While the server is away a caller gets an error that says so, in time; the next try works when it is back.
func TestPostgresIsAway(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	url := strings.Replace(cluster.Database(t), "postgres@", "postgres:s3cr3t@", 1)
	var mu sync.Mutex
	var told []error
	db := openURL(t, Options{URL: url, MaxWait: 50 * time.Millisecond, Notify: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err)
	}})
	say(t, db, "before")
	cluster.Stop()
	c := journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("meanwhile"), Prompt: true}}}}
	_, err := db.Commit(t.Context(), c)
	if !errors.Is(err, database.ErrAway) || !strings.Contains(err.Error(), "databaseUrl") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("commit: %v", err)
	}
	if _, err := db.Thread(t.Context(), c.Thread); !errors.Is(err, database.ErrAway) {
		t.Errorf("read: %v", err)
	}
	if db.Ready(t.Context()) == nil || db.Health() == nil {
		t.Error("it calls itself ready")
	}
	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Commit(t.Context(), c); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if err := db.Health(); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	row, err := db.Thread(t.Context(), c.Thread)
	if err != nil || row.Next != 3 {
		t.Errorf("next %d, %v", row.Next, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 2 || !errors.Is(told[0], database.ErrAway) || told[1] != nil {
		t.Errorf("told %v", told)
	}
}

// Transactions that take rows in opposite orders are taken back by the server, and tried again here.
func TestDeadlocksAreTriedAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	nodes := []*DB{openURL(t, Options{URL: url}), openURL(t, Options{URL: url})}
	for _, name := range []string{"a", "b"} {
		if err := nodes[0].SetSetting(t.Context(), "count", name, "0"); err != nil {
			t.Fatal(err)
		}
	}
	met := make(chan struct{}, 2)
	both := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	tries := make([]int, 2)
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		wg.Go(func() {
			err := nodes[i].Write(context.Background(), func(tx database.Tx) error {
				tries[i]++
				for j, name := range order {
					if _, err := tx.Change(`UPDATE settings SET value = value || 'x' WHERE scope = 'count' AND key = ?`, name); err != nil {
						return err
					}
					if j == 0 && tries[i] == 1 { // each has its first row before either asks for its second
						met <- struct{}{}
						if len(met) == 2 {
							once.Do(func() { close(both) })
						}
						<-both
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"a", "b"} {
		if value, err := nodes[0].Setting(t.Context(), "count", name); err != nil || value != "0xx" {
			t.Errorf("%s is %q, %v", name, value, err)
		}
	}
	if tries[0]+tries[1] < 3 {
		t.Errorf("tried %v times: there was no deadlock", tries)
	}
}

// A connection that breaks in COMMIT leaves it open whether that happened: a guest with an id is read back, as with SQLite.
func TestPostgresLosesACommit(t *testing.T) {
	t.Parallel()
	lost := errors.New("the line is dead")
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after %v", after), func(t *testing.T) {
			t.Parallel()
			db := openURL(t, Options{URL: pgtest.Database(t)})
			say(t, db, "one")
			db.BreakCommits(func(now bool) error {
				if now == after {
					return lost
				}
				return nil
			})
			_, err := db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{
				{Platform: "test", PlatformID: "x", Body: chat.Received{Blocks: chat.TextBlocks("two"), Prompt: true}}}})
			db.BreakCommits(nil)
			if (err == nil) != after || err != nil && !errors.Is(err, lost) {
				t.Errorf("%v", err)
			}
			if row, err := db.Thread(t.Context(), "cli:home:one@main"); err != nil || (row.Next == 3) != after {
				t.Errorf("next %d, %v", row.Next, err)
			}
		})
	}
}

// Nodes that open an empty database at the same time make it once.
func TestNodesMeetOnAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			db, err := Open(context.Background(), Options{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.SetSetting(context.Background(), "a", "b", "c"); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if i, err := InspectServer(t.Context(), url); err != nil || !i.Exists || i.Version != schemaVersion {
		t.Errorf("%+v, %v", i, err)
	}
}

// A node that is frozen in the middle of a transaction holds its rows for two seconds, and nobody longer; when it is back, its
// commit begins anew and is true once.
func TestAFrozenNodeHoldsNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	frozen, other := openURL(t, Options{URL: url}), openURL(t, Options{URL: url})
	say(t, frozen, "one")
	add := func(tx database.Tx) error { return tx.Exec(`UPDATE threads SET next_seq = next_seq + 1`) }
	begun, thaw := make(chan struct{}), make(chan struct{})
	var once sync.Once
	done := make(chan error)
	go func() {
		done <- frozen.Write(context.Background(), func(tx database.Tx) error {
			if err := add(tx); err != nil {
				return err
			}
			once.Do(func() {
				close(begun)
				<-thaw
			})
			return tx.Exec(`UPDATE threads SET title = 'thawed'`)
		})
	}()
	<-begun
	if err := other.Write(t.Context(), add); err != nil { // waits for the row until the server ends the frozen one
		t.Error(err)
	}
	close(thaw)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if row, err := other.Thread(t.Context(), "cli:home:one@main"); err != nil || row.Next != 4 || row.Title != "thawed" {
		t.Errorf("%+v, %v", row, err)
	}
}
