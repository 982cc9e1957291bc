package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// TestJournalModel plays the runtime's commits (T1 to T9, A and E) against the
// store and against a reference in memory, with everything that goes wrong in
// life: two owners that take a thread from each other, guests at any moment,
// notifications that nobody hears (owners find work only by looking), crashes after any
// commit, and commits of which nobody knows whether they happened. After every
// step both must agree and the promises of the runtime must hold; at the end
// everything that waits must be brought to its end by looking alone.
//
// -rapid.checks raises the number of lives, -rapid.steps their length.
func TestJournalModel(t *testing.T) {
	t.Parallel()
	both(t, testJournalModel)
}

func testJournalModel(t *testing.T, open func(Options) *DB) {
	w := &world{dbs: [2]*DB{open(Options{}), open(Options{})}}
	rapid.Check(t, func(t *rapid.T) {
		m := w.begin()
		actions := map[string]func(*rapid.T){
			"prompt":   m.prompt,
			"arrive":   m.arrive,
			"steer":    m.steer,
			"withdraw": m.withdraw,
			"abort":    m.abort,
			"answer":   m.answer,
			"act":      m.act,
			"work":     m.work,
			"work on":  m.work,
			"sweep":    m.sweep,
			"look":     m.look,
			"steal":    m.steal,
			"crash":    m.crash,
			"together": m.together,
			"":         m.check,
		}
		if w.dbs[0].OnServer() {
			delete(actions, "together") // callers that share a transaction are SQLite's
		}
		t.Repeat(actions)
		m.drain(t)
	})
}

// world is what all lives share: two processes on one file.
type world struct {
	dbs   [2]*DB
	lives atomic.Int64
}

// machine is one life: its own threads in the shared file.
type machine struct {
	*world
	ref    *refJournal
	ids    []chat.ThreadID
	owners [2]map[chat.ThreadID]*refView
	runs   []string // every run there was
	asked  []string // every approval there was
	prefix string
	fresh  int
}

func (w *world) begin() *machine {
	m := &machine{world: w, ref: newRef(), prefix: fmt.Sprintf("%06d", w.lives.Add(1))}
	for i := range m.owners {
		m.owners[i] = map[chat.ThreadID]*refView{}
	}
	for i := range 2 {
		m.ids = append(m.ids, chat.ThreadID(fmt.Sprintf("cli:life%s:t%d@main", m.prefix, i)))
	}
	return m
}

func (m *machine) name() string {
	m.fresh++
	return fmt.Sprintf("%s-%d", m.prefix, m.fresh)
}

// errInjected is the error of a COMMIT that says nothing about what happened.
var errInjected = errors.New("injected: outcome unknown")

// fault is what happens to the next COMMIT.
type fault int

const (
	noFault fault = iota
	lostBefore
	lostAfter
)

func drawFault(t *rapid.T) fault {
	return [...]fault{noFault, noFault, noFault, noFault, lostBefore, lostAfter}[rapid.IntRange(0, 5).Draw(t, "fault")]
}

// inject sets the fault in the writer's own goroutine.
func inject(db *DB, f fault) error {
	broken := func(after bool) error {
		if f == lostBefore && !after || f == lostAfter && after {
			return errInjected
		}
		return nil
	}
	if db.OnServer() { // where nobody else commits now
		db.BreakCommits(broken)
		return nil
	}
	return db.WithoutTx(context.Background(), func(database.Tx) error {
		db.BreakCommits(broken)
		return nil
	})
}

func (m *machine) db(t *rapid.T) *DB { return m.dbs[rapid.IntRange(0, 1).Draw(t, "process")] }

func (m *machine) id(t *rapid.T) chat.ThreadID { return rapid.SampledFrom(m.ids).Draw(t, "thread") }

// sameError compares the kinds of two errors.
func sameError(got, want error) bool {
	if want == nil || got == nil {
		return got == nil && want == nil
	}
	return errors.Is(got, want)
}

// readable reports whether a guest's commit can be recognised after the fact.
func readable(c journal.Commit) bool {
	for _, e := range c.Events {
		if e.PlatformID == "" {
			return false
		}
	}
	return c.Epoch == 0 && len(c.Events) > 0
}

// judge compares what the store answered with what the reference says, given
// that the commit's outcome was the same as in the reference.
func judge(t *rapid.T, c journal.Commit, f fault, got journal.Committed, err error, want refResult, wantErr error, alone bool) {
	if wantErr == nil && (f == lostBefore || f == lostAfter && !readable(c)) {
		wantErr = errInjected
	}
	if !sameError(err, wantErr) {
		t.Fatalf("commit %+v: store says %v, reference %v", c, err, wantErr)
	}
	if err != nil {
		return
	}
	have := resultOf(got)
	if !alone && f == lostAfter {
		have.Next, have.Waiting = want.Next, want.Waiting // read back when others had written too
	}
	if have != want {
		t.Fatalf("commit %+v: store wrote %+v, reference %+v", c, have, want)
	}
}

// commit runs one commit in both and returns the store's answer.
func (m *machine) commit(t *rapid.T, db *DB, c journal.Commit, f fault) error {
	trial := m.ref.clone()
	want, wantErr := trial.commit(c)
	if err := inject(db, f); err != nil {
		t.Fatal(err)
	}
	got, err := db.Commit(context.Background(), c)
	judge(t, c, f, got, err, want, wantErr, true)
	if f != lostBefore {
		*m.ref = *trial
	}
	return err
}

// --- guests

func (m *machine) guestCommit(t *rapid.T, id chat.ThreadID, body chat.Body) journal.Commit {
	c := journal.Commit{Thread: id, Create: &journal.Thread{}, Events: []chat.Event{{Body: body}}}
	switch rapid.IntRange(0, 3).Draw(t, "platform id") {
	case 0: // none
	case 1: // one that may be there already
		c.Events[0].Platform, c.Events[0].PlatformID = "local", m.prefix+fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "old id"))
	default:
		c.Events[0].Platform, c.Events[0].PlatformID = "local", m.name()
	}
	if rapid.Bool().Draw(t, "limited") {
		c.MaxWaiting = 2
	}
	return c
}

func words(t *rapid.T) chat.Body {
	return chat.Received{Blocks: chat.TextBlocks("words"), Prompt: rapid.IntRange(0, 3).Draw(t, "prompt") > 0}
}

func (m *machine) prompt(t *rapid.T) {
	_ = m.commit(t, m.db(t), m.guestCommit(t, m.id(t), words(t)), drawFault(t))
}

func (m *machine) steer(t *rapid.T) {
	c := m.guestCommit(t, m.id(t), chat.Steered{Blocks: chat.TextBlocks("steer"), Mode: chat.Inject})
	_ = m.commit(t, m.db(t), c, drawFault(t))
}

// withdraw deletes or refuses any number, often the first that waits, but also
// ones that are no prompts, are taken already, or do not exist.
func (m *machine) withdraw(t *rapid.T) { m.withdrawFrom(t, m.id(t)) }

func (m *machine) withdrawFrom(t *rapid.T, id chat.ThreadID) {
	seq := rapid.Int64Range(1, max(1, m.ref.threads[id].next)).Draw(t, "seq")
	for i, e := range m.ref.events[id] {
		if e.taken == "waiting" && rapid.Bool().Draw(t, "the first that waits") {
			seq = int64(i + 1)
			break
		}
	}
	var body chat.Body = chat.Deleted{Seq: seq}
	if rapid.Bool().Draw(t, "refuse") {
		body = chat.Refused{Seq: seq, Why: "no"}
	}
	_ = m.commit(t, m.db(t), m.guestCommit(t, id, body), drawFault(t))
}

func (m *machine) abort(t *rapid.T) {
	if len(m.runs) == 0 {
		t.Skip("no run yet")
	}
	run := rapid.SampledFrom(m.runs).Draw(t, "run")
	c := m.guestCommit(t, m.id(t), chat.AbortAsked{Run: run, By: "local:ada"})
	c.Approvals = []approval.Change{{CancelRun: run}}
	_ = m.commit(t, m.db(t), c, drawFault(t))
}

// answer is T6 and E: any approval, answered or not, in any thread.
func (m *machine) answer(t *rapid.T) {
	if len(m.asked) == 0 {
		t.Skip("no approval yet")
	}
	id := rapid.SampledFrom(m.asked).Draw(t, "approval")
	state := rapid.SampledFrom([]approval.State{approval.Approved, approval.Refused, approval.Expired}).Draw(t, "state")
	_ = m.commit(t, m.db(t), m.answerCommit(t, id, state), drawFault(t))
}

func (m *machine) answerCommit(t *rapid.T, id string, state approval.State) journal.Commit {
	thread := m.ref.approvals[id].thread
	if thread == "" { // the question itself was lost
		thread = m.ids[0]
	}
	call := m.callOf(t, thread, id)
	c := m.guestCommit(t, thread, chat.ApprovalAnswered{ID: id, Call: call, OK: state == approval.Approved})
	c.Approvals = []approval.Change{{Answer: &approval.Answer{ID: id, State: state}}}
	return c
}

func (m *machine) callOf(t *rapid.T, thread chat.ThreadID, approval string) string {
	for _, e := range m.read(t, m.dbs[0], thread, 0) {
		if a, ok := e.Body.(chat.ApprovalAsked); ok && a.ID == approval {
			return a.Call
		}
	}
	return ""
}

// arrive is T1 over both threads; some arrivals come twice.
func (m *machine) arrive(t *rapid.T) {
	a := journal.Arrival{Platform: "chat", Bot: m.prefix, What: "message", PlatformID: fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "message"))}
	for _, id := range m.ids {
		a.Commits = append(a.Commits, journal.Commit{Thread: id, Create: &journal.Thread{}, MaxWaiting: 2, Events: []chat.Event{
			{Body: words(t), Platform: "chat", PlatformID: a.PlatformID}}})
	}
	db, f := m.db(t), drawFault(t)
	trial := m.ref.clone()
	again, want, wantErr := trial.arrive(a)
	if err := inject(db, f); err != nil {
		t.Fatal(err)
	}
	got, err := db.Arrive(context.Background(), a)
	if f == lostBefore && wantErr == nil {
		// The arrival may have been there before, and reading back finds that one.
		if err == nil && !again || err != nil && !errors.Is(err, errInjected) {
			t.Fatalf("lost arrival: store says %v", err)
		}
		return
	}
	if !sameError(err, wantErr) || err == nil && f == noFault && got.Again != again {
		t.Fatalf("arrival: store says %v %v, reference %v %v", got.Again, err, again, wantErr)
	}
	if err == nil && !again {
		for i, c := range got.Commits {
			if resultOf(c) != want[i] {
				t.Fatalf("arrival: store wrote %+v, reference %+v", resultOf(c), want[i])
			}
		}
	}
	*m.ref = *trial
}

// --- owners

func (m *machine) read(t *rapid.T, db *DB, id chat.ThreadID, after int64) []chat.Event {
	events, err := db.Events(context.Background(), id, after, 0)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// refresh reads what the owner has not seen.
func (m *machine) refresh(t *rapid.T, o int, id chat.ThreadID) {
	v := m.owners[o][id]
	row, err := m.dbs[o].Thread(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	v.wake = row.Wake
	v.fold(m.read(t, m.dbs[o], id, v.seen-1))
}

// take makes o the owner; what it knows comes from the journal alone.
func (m *machine) take(t *rapid.T, o int, id chat.ThreadID, f fault) {
	db := m.dbs[o]
	if err := inject(db, f); err != nil {
		t.Fatal(err)
	}
	row, err := db.Take(context.Background(), id)
	trial := m.ref.clone()
	want, wantErr := trial.take(id)
	if f != noFault && wantErr == nil {
		wantErr = errInjected
	}
	if !sameError(err, wantErr) {
		t.Fatalf("take %s: store says %v, reference %v", id, err, wantErr)
	}
	if f != lostBefore {
		*m.ref = *trial
	}
	if err != nil {
		return
	}
	if row.Epoch != want.epoch || row.Next != want.next {
		t.Fatalf("take %s: store %+v, reference %+v", id, row, want)
	}
	m.owners[o][id] = &refView{epoch: row.Epoch, seen: 1}
	m.refresh(t, o, id)
}

func (m *machine) owner(t *rapid.T) (int, chat.ThreadID) {
	o, id := rapid.IntRange(0, 1).Draw(t, "owner"), m.id(t)
	if m.owners[o][id] == nil {
		t.Skip("does not own it")
	}
	return o, id
}

// sweep is how owners find work: by looking at what is active, never by a notification.
func (m *machine) sweep(t *rapid.T) {
	o := rapid.IntRange(0, 1).Draw(t, "owner")
	for _, id := range m.active(t, m.dbs[o]) {
		if m.owners[o][id] == nil {
			m.take(t, o, id, drawFault(t))
		}
	}
}

func (m *machine) steal(t *rapid.T) {
	m.take(t, rapid.IntRange(0, 1).Draw(t, "owner"), m.id(t), drawFault(t))
}

func (m *machine) look(t *rapid.T) {
	o, id := m.owner(t)
	m.refresh(t, o, id)
}

func (m *machine) crash(t *rapid.T) {
	m.owners[rapid.IntRange(0, 1).Draw(t, "owner")] = map[chat.ThreadID]*refView{}
}

func choosing(t *rapid.T) chooser {
	return func(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, what) }
}

// work is an owner at work: it looks at what is active, takes it, and goes on for a
// while. Guests may come between its thought and its deed.
func (m *machine) work(t *rapid.T) {
	o, id := rapid.IntRange(0, 1).Draw(t, "owner"), m.id(t)
	if v := m.owners[o][id]; v == nil || v.epoch != m.ref.threads[id].epoch {
		if !slices.Contains(m.active(t, m.dbs[o]), id) {
			t.Skip("nothing is active")
		}
		m.take(t, o, id, noFault)
	}
	for range 12 - rapid.IntRange(0, 10).Draw(t, "rest") {
		v := m.owners[o][id]
		if v == nil {
			return
		}
		c, name, after := m.plan(choosing(t), o, id)
		if c == nil {
			return
		}
		switch rapid.IntRange(0, 9).Draw(t, "meanwhile") {
		case 0:
			m.withdrawFrom(t, id)
		case 1:
			m.prompt(t)
		}
		m.learn(t, o, id, v, m.commit(t, m.dbs[o], *c, drawFault(t)), name, after)
	}
}

// act is the owner's next commit, from what it has seen: perhaps stale.
func (m *machine) act(t *rapid.T) {
	o, id := m.owner(t)
	v := m.owners[o][id]
	c, name, after := m.plan(choosing(t), o, id)
	if c == nil {
		t.Skip("nothing to do")
	}
	f := drawFault(t)
	err := m.commit(t, m.dbs[o], *c, f)
	m.learn(t, o, id, v, err, name, after)
	if rapid.IntRange(0, 9).Draw(t, "crashes") == 0 {
		delete(m.owners[o], id)
	}
}

// plan is the owner's next commit, signed with its epoch.
func (m *machine) plan(choose chooser, o int, id chat.ThreadID) (*journal.Commit, string, func()) {
	v := m.owners[o][id]
	c, name, after := v.next(choose, id, m.name)
	if c == nil {
		return nil, "", nil
	}
	for i := range c.Events {
		c.Events[i].Who = fmt.Sprintf("owner:%d", v.epoch)
		switch b := c.Events[i].Body.(type) {
		case chat.RunStarted:
			m.runs = append(m.runs, b.Run)
		case chat.ApprovalAsked:
			m.asked = append(m.asked, b.ID)
		}
	}
	return c, name, after
}

// learn is what an owner does with the answer to its commit.
func (m *machine) learn(t *rapid.T, o int, id chat.ThreadID, v *refView, err error, name string, after func()) {
	switch {
	case err == nil:
		m.refresh(t, o, id)
		if after != nil {
			after()
		}
	case errors.Is(err, journal.ErrFenced):
		delete(m.owners[o], id)
	case errors.Is(err, journal.ErrMoved):
		m.refresh(t, o, id)
	case errors.Is(err, errInjected):
		// It reads back and goes on from there; what flew is flying no more.
		m.owners[o][id] = &refView{epoch: v.epoch, seen: 1}
		m.refresh(t, o, id)
	default:
		t.Fatalf("%s: %v", name, err)
	}
}

// together lets several callers share one transaction, in a known order.
func (m *machine) together(t *rapid.T) {
	o := rapid.IntRange(0, 1).Draw(t, "process")
	db := m.dbs[o]
	type caller struct {
		c     journal.Commit
		name  string
		after func()
		got   journal.Committed
		err   error
	}
	var callers []*caller
	for _, id := range m.ids {
		for range rapid.IntRange(0, 2).Draw(t, "guests") {
			callers = append(callers, &caller{c: m.guestCommit(t, id, words(t)), name: "guest"})
		}
		if m.owners[o][id] != nil {
			if c, name, after := m.plan(choosing(t), o, id); c != nil {
				callers = append(callers, &caller{c: *c, name: name, after: after})
			}
		}
	}
	if len(callers) < 2 {
		t.Skip("nobody to share with")
	}
	f := drawFault(t)
	if err := inject(db, f); err != nil {
		t.Fatal(err)
	}
	release := hold(db)
	var wg sync.WaitGroup
	for i, c := range callers {
		wg.Go(func() { c.got, c.err = db.Commit(context.Background(), c.c) })
		await(func() bool { return db.Queued() == i+1 })
	}
	release()
	wg.Wait()
	trial := m.ref.clone()
	for _, c := range callers {
		want, wantErr := trial.commit(c.c)
		judge(t, c.c, f, c.got, c.err, want, wantErr, false)
	}
	if f != lostBefore {
		*m.ref = *trial
	}
	for _, c := range callers {
		if c.c.Epoch != 0 {
			m.learn(t, o, c.c.Thread, m.owners[o][c.c.Thread], c.err, c.name, c.after)
		}
	}
}

// hold keeps the writer busy until the returned function is called.
func hold(db *DB) (release func()) {
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = db.WithoutTx(context.Background(), func(database.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return func() {
		close(end)
		<-ended
	}
}

// await yields until ok; a test that waits for ever says so.
func await(ok func() bool) {
	for deadline := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			panic("waited a minute for the queue to fill")
		}
	}
}
