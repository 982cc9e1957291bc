package store

import (
	"strconv"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// BenchmarkCall is what the money of one model call costs: reserved, then settled.
// Without ceilings it must stay what it was before there were any.
func BenchmarkCall(b *testing.B) {
	db := benchDB(b)
	t := benchThread(b, db, "cli:home:bench@main")
	benchCalls(b, db, t, nil)
}

func benchCalls(b *testing.B, db *DB, t journal.Thread, ceilings *ledger.Ceilings) {
	b.Helper()
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		e := ledger.Entry{Run: "r" + strconv.Itoa(i/10), Step: i%10 + 1, Attempt: 1, Agent: "main", Payer: ada, Model: "m", Reserved: 1000}
		_, err := db.Commit(b.Context(), journal.Commit{Thread: t.ID, Epoch: t.Epoch, Money: []ledger.Entry{e}, Ceilings: ceilings,
			Events: []chat.Event{{Body: chat.Asked{Step: e.Step, Attempt: 1, Model: "m"}}}})
		if err != nil {
			b.Fatal(err)
		}
		e.How, e.Settled, e.Usage = ledger.ByUsage, 400, chat.Usage{Input: 3, Output: 1}
		_, err = db.Commit(b.Context(), journal.Commit{Thread: t.ID, Epoch: t.Epoch, Money: []ledger.Entry{e},
			Events: []chat.Event{{Body: chat.Said{Step: e.Step, Attempt: 1, Blocks: chat.TextBlocks("yes")}}}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCallUnderBudget is the same under five ceilings.
func BenchmarkCallUnderBudget(b *testing.B) {
	db := benchDB(b)
	t := benchThread(b, db, "cli:home:bench@main")
	const most = 1 << 60
	budget := ledger.Budget{Soft: 0.8, Ceilings: []ledger.Ceiling{
		{Scope: ledger.Guild, Period: ledger.Month, Most: most}, {Scope: ledger.Channel, Period: ledger.Day, Most: most},
		{Scope: ledger.Agent, Period: ledger.Day, Most: most}, {Scope: ledger.Agent, Period: ledger.Month, Most: most},
		{Scope: ledger.Person, Period: ledger.Day, Most: most}}}
	benchCalls(b, db, t, budget.For(t.ID, "main", chat.Principal{Kind: chat.LocalUser, ID: "ada"}, ""))
}
