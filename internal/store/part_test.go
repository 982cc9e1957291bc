package store

import (
	"errors"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// What a run may spend holds for everything that it starts, however deep; what others in the same task spend does not count.
func TestARunSpendsWithWhatItStarts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func(Options) *DB) {
		db := open(Options{})
		const top, middle, low, beside = chat.ThreadID("web:ada:top@main"), chat.ThreadID("web:ada:middle@main"), chat.ThreadID("web:ada:low@main"), chat.ThreadID("web:ada:beside@main")
		charge := func(run string, thread chat.ThreadID, step int, cost ledger.Nanos, limits ...ledger.Limit) error {
			e := ledger.Entry{Run: run, Step: step, Attempt: 1, Thread: thread, Agent: "main", Model: "m", Payer: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Reserved: cost}
			if run != "top" {
				e.Root = "top"
			}
			return db.Charge(t.Context(), thread, e, &ledger.Ceilings{Limits: limits})
		}
		begin := func(thread chat.ThreadID, parent journal.Parent) {
			t.Helper()
			_, err := db.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{Parent: parent}, Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("go"), Prompt: true}}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		begin(top, journal.Parent{})
		whole, part := ledger.Within("top", chat.Terms{MaxCost: 1000})[0], ledger.Within("middle", chat.Terms{MaxCost: 100})[0]
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, ledger.ErrRefused) {
				t.Errorf("%s: %v", what, err)
			}
		}
		must(charge("top", top, 1, 100, whole))
		begin(middle, journal.Parent{Thread: top, Run: "top", Root: "top"})
		must(charge("middle", middle, 1, 60, whole, part))
		begin(low, journal.Parent{Thread: middle, Run: "middle", Root: "top"})
		begin(beside, journal.Parent{Thread: top, Run: "top", Root: "top"})
		must(charge("beside", beside, 1, 700, whole))
		must(charge("low", low, 1, 30, whole, part))
		refused("what the middle one started", charge("low", low, 2, 11, whole, part))
		refused("the middle one itself", charge("middle", middle, 2, 11, whole, part))
		must(charge("middle", middle, 2, 10, whole, part))
		must(charge("beside", beside, 2, 100, whole))
		refused("one beside it, within the whole", charge("beside", beside, 3, 1, whole))
		refused("the topmost", charge("top", top, 2, 1, whole))
		// A conversation of an earlier run of the same parent is no part of a later one.
		must(charge("later", middle, 1, 100, ledger.Within("later", chat.Terms{MaxCost: 100})[0]))
	})
}
