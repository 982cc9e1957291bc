package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
)

const askedThread = chat.ThreadID("cli:here:asked@helper")

// twoStores are two processes on one file, with an approval that waits.
func twoStores(t *testing.T, open func(Options) *DB, a approval.Approval) (one, two *DB) {
	t.Helper()
	one, two = open(Options{}), open(Options{})
	ctx := context.Background()
	if _, err := one.Commit(ctx, journal.Commit{Thread: askedThread, Create: &journal.Thread{ID: askedThread, Agent: "helper"}}); err != nil {
		t.Fatal(err)
	}
	row, err := one.Take(ctx, askedThread)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Commit(ctx, journal.Commit{Thread: askedThread, Epoch: row.Epoch, Status: chat.Waiting,
		Events: []chat.Event{{Body: chat.ApprovalAsked{ID: a.ID, Call: "c"}}}, Approvals: []approval.Change{{New: &a}}}); err != nil {
		t.Fatal(err)
	}
	return one, two
}

func answerOf(id, by string, state approval.State, before int) journal.Commit {
	who := chat.Principal{Kind: chat.LocalUser, ID: by}
	ch := approval.Change{Vote: &approval.Ballot{ID: id, Vote: approval.Vote{By: who, OK: state != approval.Refused, Note: "n"}, Before: before}}
	var body chat.Body = chat.ApprovalNoted{ID: id, Call: "c", What: chat.FirstYes, By: by}
	if state != approval.Open {
		ch.Answer = &approval.Answer{ID: id, State: state, By: who.String()}
		body = chat.ApprovalAnswered{ID: id, Call: "c", By: who.String(), OK: state == approval.Approved}
	}
	return journal.Commit{Thread: askedThread, Events: []chat.Event{{Body: body}}, Approvals: []approval.Change{ch}}
}

// Many answers at once from two processes: exactly one wins, and only its event is there.
func TestAnswersFromTwoProcesses(t *testing.T) {
	t.Parallel()
	both(t, testAnswersFromTwoProcesses)
}

func testAnswersFromTwoProcesses(t *testing.T, open func(Options) *DB) {
	one, two := twoStores(t, open, approval.Approval{ID: "a", Run: "r"})
	const each = 4
	errs := make([]error, 2*each)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			db, state := []*DB{one, two}[i%2], []approval.State{approval.Approved, approval.Refused}[i/2%2]
			_, errs[i] = db.Commit(context.Background(), answerOf("a", fmt.Sprint("p", i), state, 0))
		})
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Fatalf("answers %d and %d both won", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, journal.ErrSettled):
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	a, err := two.Approval(context.Background(), "a")
	if err != nil || won < 0 || a.AnsweredBy != fmt.Sprint("local:p", won) || len(a.Votes) != 1 || a.AnsweredAt.IsZero() {
		t.Fatalf("%d won: %+v %v", won, a, err)
	}
	events, err := one.Events(context.Background(), askedThread, 0, 100)
	if err != nil || len(events) != 2 {
		t.Fatalf("%d events, %v", len(events), err)
	}
}

// Two first yeses at once: one of them must look again, and is the second.
func TestTwoFirstYeses(t *testing.T) {
	t.Parallel()
	both(t, testTwoFirstYeses)
}

func testTwoFirstYeses(t *testing.T, open func(Options) *DB) {
	one, two := twoStores(t, open, approval.Approval{ID: "a", Run: "r", Who: "two"})
	ctx := context.Background()
	if _, err := one.Commit(ctx, answerOf("a", "ada", approval.Open, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Commit(ctx, answerOf("a", "bob", approval.Open, 0)); !errors.Is(err, journal.ErrMoved) {
		t.Fatalf("the second first yes: %v", err)
	}
	a, err := two.Approval(ctx, "a")
	if err != nil || a.State != approval.Open || len(a.Votes) != 1 || a.Votes[0].By.ID != "ada" || !a.Votes[0].OK || a.Votes[0].Note != "n" {
		t.Fatalf("%+v %v", a, err)
	}
	if _, err := two.Commit(ctx, answerOf("a", "bob", approval.Approved, 1)); err != nil {
		t.Fatal(err)
	}
	if a, err = one.Approval(ctx, "a"); err != nil || a.State != approval.Approved || len(a.Votes) != 2 {
		t.Fatalf("%+v %v", a, err)
	}
	if _, err := one.Commit(ctx, answerOf("none", "ada", approval.Approved, 0)); !errors.Is(err, journal.ErrUnknown) {
		t.Fatalf("an unknown one: %v", err)
	}
}

func TestRemindOnceAndFind(t *testing.T) {
	t.Parallel()
	both(t, testRemindOnceAndFind)
}

func testRemindOnceAndFind(t *testing.T, open func(Options) *DB) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	payer := chat.Principal{Kind: "discord", ID: "7"}
	want := approval.Approval{ID: "abc", Run: "r", Remind: now, Who: "role:admin", Reason: "why", Again: "a.sh has changed", Payer: payer}
	one, two := twoStores(t, open, want)
	ctx := context.Background()
	for f, n := range map[*approval.Filter]int{
		{Remind: now}: 1, {Remind: now.Add(-time.Second)}: 0, {Prefix: "ab"}: 1, {Prefix: "b"}: 0, {Prefix: "%"}: 0, {Newest: true}: 1,
	} {
		list, err := one.Approvals(ctx, *f)
		if err != nil || len(list) != n {
			t.Fatalf("%+v: %d, %v", *f, len(list), err)
		}
		if n == 1 && (list[0].Who != want.Who || list[0].Reason != want.Reason || list[0].Again != want.Again || list[0].Payer.ID != "7") {
			t.Fatalf("%+v", list[0])
		}
	}
	remind := func(db *DB) error {
		_, err := db.Commit(ctx, journal.Commit{Thread: askedThread, Events: []chat.Event{{Body: chat.ApprovalNoted{ID: "abc", What: chat.Reminder}}},
			Approvals: []approval.Change{{Remind: "abc"}}})
		return err
	}
	if err := remind(one); err != nil {
		t.Fatal(err)
	}
	if err := remind(two); !errors.Is(err, journal.ErrSettled) {
		t.Fatalf("reminded twice: %v", err)
	}
}
