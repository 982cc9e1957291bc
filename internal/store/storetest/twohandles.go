package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store/search"
)

// testTwoHandles uses one home like two processes.
func testTwoHandles(t *testing.T, f *fixture) {
	second := f.open()
	f.guest(thread, prompt("a"))
	writes := func(s Store) [2]int64 {
		own, others, err := s.Writes(f.ctx())
		f.wants(err, nil)
		return [2]int64{own, others}
	}
	quiet := [2][2]int64{writes(f.s), writes(second)}
	if !f.s.Noisy {
		f.equal("writes while nobody writes", [2][2]int64{writes(f.s), writes(second)}, quiet)
	}
	before := must[int64](t)(second.DataVersion(f.ctx()))
	mine := must[int64](t)(f.s.DataVersion(f.ctx()))
	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	f.owns(row, took(1))
	if must[int64](t)(second.DataVersion(f.ctx())) == before {
		t.Error("the second handle did not notice the first one's commit")
	}
	if !f.s.Noisy {
		f.equal("own commits", must[int64](t)(f.s.DataVersion(f.ctx())), mine)
	}
	if writes(f.s) == quiet[0] || writes(second) == quiet[1] {
		t.Error("a commit changed no number of its own handle, or of the other")
	}
	now := must[journal.Thread](t)(second.Take(f.ctx(), thread))
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{noted("late")}})
	f.wants(err, journal.ErrFenced)
	must[journal.Committed](t)(second.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: now.Epoch, Events: []chat.Event{noted("mine")}}))
	f.equal("seen by the first", len(f.events(thread)), 3)

	var wg sync.WaitGroup
	for i, s := range []Store{f.s, second} {
		for j := range 5 {
			wg.Go(func() {
				for k := range 10 {
					e := prompt("x")
					e.Platform, e.PlatformID = "local", fmt.Sprintf("%d-%d", j, k) // both handles write the same ones
					_, err := s.Commit(context.Background(), journal.Commit{Thread: other, Create: &journal.Thread{}, Events: []chat.Event{e}})
					if err != nil && !errors.Is(err, journal.ErrDuplicate) {
						t.Errorf("handle %d: %v", i, err)
					}
				}
			})
		}
	}
	wg.Wait()
	f.equal("each once", len(f.events(other)), 50)
	f.equal("waiting", f.row(other).Waiting, 50)
}

func testTwoHandlesIndex(t *testing.T, f *fixture) {
	second := f.open()
	for i := range 20 {
		f.guest(chat.ThreadID(fmt.Sprintf("cli:home:t%d@main", i)), heard("needle"), heard("hay"))
	}
	var wg sync.WaitGroup
	for _, s := range []Store{f.s, second} {
		wg.Go(func() {
			if _, err := s.IndexNew(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.equal("each once", len(f.finds("needle", search.Options{Limit: 100})), 20)
}

// testCrowd runs fifty owners and guests at once. Every number is assigned once.
func testCrowd(t *testing.T, f *fixture) {
	const crowd, each = 50, 6
	var wg sync.WaitGroup
	rows := make([]journal.Thread, 10)
	for i := range rows {
		rows[i] = f.owner(chat.ThreadID(fmt.Sprintf("cli:home:t%d@main", i)))
	}
	for i := range crowd {
		row := rows[i%len(rows)]
		wg.Go(func() {
			for range each {
				c := journal.Commit{Thread: row.ID, Epoch: row.Epoch, Events: []chat.Event{noted("x"), noted("y")}}
				if i >= crowd/2 {
					c.Epoch, c.Events = 0, []chat.Event{prompt("x"), heard("y")}
				}
				got, err := f.s.Commit(context.Background(), c)
				if err != nil {
					t.Error(err)
					return
				}
				if got.Events[1].Seq != got.Events[0].Seq+1 {
					t.Errorf("torn: %d, %d", got.Events[0].Seq, got.Events[1].Seq)
				}
			}
		})
	}
	wg.Wait()
	for _, row := range rows {
		events := f.events(row.ID)
		f.equal("events", len(events), crowd/len(rows)*each*2)
		waiting := 0
		for i, e := range events {
			f.equal("number", e.Seq, int64(i+1))
			if journal.IsPrompt(e.Body) {
				waiting++
			}
		}
		f.equal("waiting", f.row(row.ID).Waiting, waiting)
		f.equal("next", f.row(row.ID).Next, int64(len(events)+1))
	}
}

// testCrowdIsolation checks that a failure in a shared transaction affects only its caller.
func testCrowdIsolation(t *testing.T, f *fixture) {
	stale := f.owner(thread)
	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	const crowd = 60
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range crowd {
		wg.Go(func() {
			<-start
			c := journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{noted(fmt.Sprint(i))}}
			var want error
			switch i % 3 {
			case 1:
				c.Epoch, want = stale.Epoch, journal.ErrFenced
			case 2:
				c.Events, want = append(c.Events, took(9999)), journal.ErrMoved
			}
			_, err := f.s.Commit(context.Background(), c)
			if !errors.Is(err, want) {
				t.Errorf("caller %d: got %v, want %v", i, err, want)
			}
		})
	}
	close(start)
	wg.Wait()
	f.equal("events", len(f.events(thread)), crowd/3)
	f.equal("next", f.row(thread).Next, int64(crowd/3+1))
}

// testCancelled checks that a guest that gave up has written nothing or is told that it has,
// and that the caller's cancellation does not affect an owner's commit.
func testCancelled(t *testing.T, f *fixture) {
	row := f.owner(thread)
	gone, cancel := context.WithCancel(f.ctx())
	cancel()
	must[journal.Committed](t)(f.s.Commit(gone, journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{noted("carried through")}}))

	var wg sync.WaitGroup
	var mu sync.Mutex
	written := 1
	for i := range 50 {
		ctx, cancel := context.WithCancel(f.ctx())
		wg.Go(func() {
			_, err := f.s.Commit(ctx, journal.Commit{Thread: thread, Events: []chat.Event{heard(fmt.Sprint(i))}})
			switch {
			case err == nil:
				mu.Lock()
				written++
				mu.Unlock()
			case !errors.Is(err, context.Canceled):
				t.Error(err)
			}
		})
		wg.Go(cancel)
	}
	wg.Wait()
	f.equal("events", len(f.events(thread)), written)
}

func testClosed(t *testing.T, f *fixture) {
	f.guest(thread, heard("a"))
	f.ok(f.s.Close())
	f.ok(f.s.Close())
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Events: []chat.Event{heard("b")}})
	f.wants(err, database.ErrClosed)
	_, err = f.s.Thread(f.ctx(), thread)
	f.wants(err, database.ErrClosed)
	_, err = f.s.Search(f.ctx(), "a", search.Options{})
	f.wants(err, database.ErrClosed)
	f.s = f.open()
	f.equal("after opening again", len(f.events(thread)), 1)
}
