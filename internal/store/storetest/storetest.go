// Package storetest checks every implementation of a store against the journal's
// contract. The engine can use any dialect that passes Run.
package storetest

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/store"
	"chorus/internal/store/audit"
	"chorus/internal/store/search"
)

// Store is what the suite needs of a store, in parts.
type Store struct {
	Journal
	Copies
	Decisions
	Records
	Directory
	Outbox
	io.Closer
	// Noisy means that the numbers of DataVersion and Writes may also
	// change when nobody else has written to this store.
	Noisy bool
}

// Journal are threads and their events.
type Journal interface {
	Commit(context.Context, journal.Commit) (journal.Committed, error)
	Arrive(context.Context, journal.Arrival) (journal.Arrived, error)
	Take(context.Context, chat.ThreadID) (journal.Thread, error)
	Thread(context.Context, chat.ThreadID) (journal.Thread, error)
	Threads(context.Context, store.ThreadFilter) ([]journal.Thread, error)
	SetThread(context.Context, chat.ThreadID, store.ThreadChange) error
	ActiveThreads(context.Context) ([]journal.Thread, error)
	OtherWork(ctx context.Context, than journal.Thread, most int) ([]journal.Thread, int, error)
	ThreadsNamed(ctx context.Context, name string) ([]journal.Thread, error)
	Events(ctx context.Context, thread chat.ThreadID, after int64, limit int) ([]chat.Event, error)
	AllEvents(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[chat.Event, error]
	Find(ctx context.Context, thread chat.ThreadID, platform, platformID string, kind chat.Kind, version int) (chat.Event, error)
	LastRun(ctx context.Context, thread chat.ThreadID) (string, error)
	LastRunAt(ctx context.Context, thread chat.ThreadID) (int64, error)
	PendingPrompts(ctx context.Context, thread chat.ThreadID) ([]int64, error)
	DataVersion(context.Context) (int64, error)
	Writes(context.Context) (own, others int64, err error)
}

// Copies are what is stored besides the journal: snapshots, blobs and the positions of readers.
type Copies interface {
	Snapshot(ctx context.Context, thread chat.ThreadID, codec string) (journal.Snapshot, error)
	SaveSnapshot(context.Context, journal.Snapshot) error
	PutBlob(context.Context, []byte) (string, error)
	Blob(ctx context.Context, hash string) ([]byte, error)
	SweepBlobs(ctx context.Context, olderThan time.Duration) (int, error)
	Reader(ctx context.Context, name string, thread chat.ThreadID) (int64, error)
	MoveReader(ctx context.Context, name string, thread chat.ThreadID, seq int64) error
	Behind(ctx context.Context, reader string, limit int) ([]store.Lag, error)
	IndexNew(context.Context) (int, error)
	Search(ctx context.Context, query string, o search.Options) ([]search.Hit, error)
	EndsOf(ctx context.Context, threads []chat.ThreadID) (map[chat.ThreadID]store.Ends, error)
	LastEnds(ctx context.Context, threads []chat.ThreadID) (map[chat.ThreadID]chat.RunEnded, error)
}

// Decisions are approvals: asked, answered and overdue.
type Decisions interface {
	Approval(ctx context.Context, id string) (approval.Approval, error)
	Approvals(context.Context, store.ApprovalFilter) ([]approval.Approval, error)
	Overdue(ctx context.Context, now time.Time) ([]approval.Approval, error)
}

// Records are money and decisions.
type Records interface {
	RunCost(ctx context.Context, run string) (ledger.Nanos, error)
	LedgerEntries(ctx context.Context, run string) ([]ledger.Entry, error)
	Spend(context.Context, store.SpendFilter) ([]store.Sum, error)
	Audit(context.Context, approval.Audit) error
	AuditLog(context.Context, audit.Filter) ([]audit.Line, error)
	SealAudit(ctx context.Context) (int64, string, error)
	VerifyAudit(ctx context.Context, since string, progress func(done, all int64)) (audit.Check, error)
}

// Directory holds who and what is known by name.
type Directory interface {
	PutAgent(context.Context, store.Agent) error
	Agent(ctx context.Context, name string) (store.Agent, error)
	Agents(context.Context) ([]store.Agent, error)
	DeleteAgent(ctx context.Context, name string) error
	Setting(ctx context.Context, scope, key string) (string, error)
	SetSetting(ctx context.Context, scope, key, value string) error
}

// Of returns a store whose parts are all implemented by db.
func Of(db *store.DB) Store { return Store{db, db, db, db, db, db, db, db.OnServer()} }

// Home creates an empty place for one test. The function it returns opens another handle on
// that place, as another process would. The test closes none of them.
type Home func(t *testing.T) (open func() Store)

// Run runs the whole suite.
func Run(t *testing.T, home Home) {
	for name, test := range map[string]func(*testing.T, *fixture){
		"NumbersWithoutGaps":    testNumbers,
		"OwnerIsFenced":         testFence,
		"OwnerHasSeen":          testExpect,
		"UnknownThread":         testUnknown,
		"GuestsKeepToTheirs":    testGuestKinds,
		"WhatIsReadIsWhatCame":  testRoundTrip,
		"ReturnedIsAsRead":      testReturnedAsRead,
		"Duplicates":            testDuplicates,
		"NothingOfAFailure":     testAtomic,
		"Create":                testCreate,
		"QueueCounts":           testQueue,
		"QueueLimit":            testQueueLimit,
		"TakenOnce":             testTakenOnce,
		"Withdrawn":             testWithdrawn,
		"WakeMarks":             testWake,
		"OtherWork":             testOtherWork,
		"Arrivals":              testArrivals,
		"ArrivalIsOneThing":     testArrivalAtomic,
		"MoneyIsSettled":        testMoney,
		"MoneyOfALostAttempt":   testLostAttempt,
		"Spend":                 testSpend,
		"ApprovalsSettleOnce":   testApprovals,
		"ApprovalsOfARun":       testCancelRun,
		"ApprovalsDue":          testDue,
		"LastRun":               testLastRun,
		"Audit":                 testAudit,
		"AuditIsAChain":         testAuditChain,
		"AuditOfAFailure":       testAuditAtomic,
		"AuditOfTwoHandles":     testAuditTwoHandles,
		"AuditSealedMeanwhile":  testAuditSealedMeanwhile,
		"ThreadLists":           testThreads,
		"ThreadsByName":         testThreadsNamed,
		"Titles":                testTitles,
		"Pages":                 testPages,
		"Snapshots":             testSnapshots,
		"Blobs":                 testBlobs,
		"BlobReferences":        testBlobReferences,
		"Readers":               testReaders,
		"Agents":                testAgents,
		"Settings":              testSettings,
		"SearchFinds":           testSearch,
		"SearchNewestFirst":     testSearchNewest,
		"Ends":                  testEnds,
		"OutboxDesired":         testDesired,
		"OutboxFreezesMaking":   testFreeze,
		"OutboxOutcomes":        testOutcomes,
		"OutboxGroups":          testGroups,
		"OutboxEcho":            testEcho,
		"OutboxPlan":            testPlan,
		"OutboxTwoHandles":      testOutboxTwoHandles,
		"Places":                testPlaces,
		"Cursors":               testCursors,
		"SearchTakesAnything":   testSearchSyntax,
		"TwoHandles":            testTwoHandles,
		"TwoHandlesIndex":       testTwoHandlesIndex,
		"Crowd":                 testCrowd,
		"OneFencedInACrowd":     testCrowdIsolation,
		"CancelledCallers":      testCancelled,
		"ClosedStore":           testClosed,
		"EmptyCommitClearsWake": testEmptyCommit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := home(t)
			test(t, &fixture{t: t, s: open(), open: open})
		})
	}
}

// fixture is one test's store with shortcuts for using it.
type fixture struct {
	t    *testing.T
	s    Store
	open func() Store
}

const (
	thread = chat.ThreadID("cli:home:one@main")
	other  = chat.ThreadID("cli:home:two@main")
	absent = chat.ThreadID("cli:home:none@main")
)

func (f *fixture) ctx() context.Context { return f.t.Context() }

// must fails the test on an error and returns the value.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) wants(got, want error) {
	f.t.Helper()
	if !errors.Is(got, want) {
		f.t.Fatalf("got error %v, want %v", got, want)
	}
}

func prompt(text string) chat.Event {
	return chat.Event{Body: chat.Received{Blocks: chat.TextBlocks(text), Prompt: true}}
}

func heard(text string) chat.Event {
	return chat.Event{Body: chat.Received{Blocks: chat.TextBlocks(text)}}
}

func noted(text string) chat.Event { return chat.Event{Body: chat.Noted{What: "test", Text: text}} }

// guest commits as a guest, creating the thread.
func (f *fixture) guest(id chat.ThreadID, events ...chat.Event) journal.Committed {
	f.t.Helper()
	c, err := f.s.Commit(f.ctx(), journal.Commit{Thread: id, Create: &journal.Thread{}, Events: events})
	f.ok(err)
	return c
}

// owner takes the thread, creating it, and returns its row.
func (f *fixture) owner(id chat.ThreadID) journal.Thread {
	f.t.Helper()
	f.guest(id)
	row, err := f.s.Take(f.ctx(), id)
	f.ok(err)
	return row
}

// owns commits as the owner.
func (f *fixture) owns(row journal.Thread, events ...chat.Event) journal.Committed {
	f.t.Helper()
	c, err := f.s.Commit(f.ctx(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Events: events})
	f.ok(err)
	return c
}

func (f *fixture) row(id chat.ThreadID) journal.Thread {
	f.t.Helper()
	row, err := f.s.Thread(f.ctx(), id)
	f.ok(err)
	return row
}

func (f *fixture) events(id chat.ThreadID) []chat.Event {
	f.t.Helper()
	var out []chat.Event
	for e, err := range f.s.AllEvents(f.ctx(), id, 0) {
		f.ok(err)
		out = append(out, e)
	}
	return out
}

func (f *fixture) equal(what string, got, want any) {
	f.t.Helper()
	if got != want {
		f.t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// active reports whether the sweep would see the thread.
func (f *fixture) active(id chat.ThreadID) bool {
	f.t.Helper()
	rows, err := f.s.ActiveThreads(f.ctx())
	f.ok(err)
	return slices.ContainsFunc(rows, func(r journal.Thread) bool { return r.ID == id })
}
