package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store/audit"
	"chorus/internal/store/blobs"
)

// Commit writes one transaction on one thread; see journal.Commit. An owner's commit does not end
// with ctx: it is carried through, within the time limit for waiting for the file. A guest may
// give up while it waits in the queue; then nothing was written.
func (db *DB) Commit(ctx context.Context, c journal.Commit) (journal.Committed, error) {
	out, err := db.commit(ctx, c)
	if errors.Is(err, blobs.ErrSwept) {
		return db.commit(ctx, c)
	}
	return out, err
}

func (db *DB) commit(ctx context.Context, c journal.Commit) (journal.Committed, error) {
	in, err := db.prepare(ctx, c) // the storage gets the caller's time limit
	if err != nil {
		return journal.Committed{}, err
	}
	if c.Epoch != 0 {
		ctx = context.WithoutCancel(ctx)
	}
	out, lost, err := db.write(ctx, in)
	if err == nil {
		db.RemoveBlobsSoon(ctx, in.allLeft())
		return out, nil
	}
	if lost && c.Epoch == 0 {
		if found, ok := db.readBack(context.WithoutCancel(ctx), in); ok {
			return found, nil
		}
	}
	return journal.Committed{}, fmt.Errorf("commit to thread %s: %w", c.Thread, err)
}

// write writes an intent in a transaction. On PostgreSQL, an owner's commit for
// a known thread row may share a transaction with others.
func (db *DB) write(ctx context.Context, in *intent) (out journal.Committed, lost bool, err error) {
	var sent journal.Committed // as sent together with others
	var left, sentLeft *ownedThread
	work := func(tx database.Tx) (err error) {
		out, err = db.applyAll(tx, in)
		if left = in.leaves; tx.Blind() {
			sent, sentLeft = out, left
		}
		return err
	}
	happened := func(tx database.Tx) (bool, error) {
		there, err := isThere(tx, sent.Events[0])
		if there {
			out, left = sent, sentLeft
		}
		return there, err
	}
	if in.Epoch != 0 && db.OnServer() {
		in.owned = db.mine.take(in)
	}
	lost, err = db.fetching(ctx, func() (bool, error) {
		if in.owned == nil {
			return db.TryWrite(ctx, work)
		}
		return db.TryTogether(ctx, database.Together{Order: string(in.Thread), Happened: happened}, work)
	})
	if err == nil && db.OnServer() {
		db.mine.keep(in, left)
	}
	return out, lost, err
}

// readBack looks for a guest's events after a COMMIT that failed without saying whether
// it happened. Only events with a platform id can be recognised.
func (db *DB) readBack(ctx context.Context, in *intent) (journal.Committed, bool) {
	var out journal.Committed
	for _, d := range in.drafts {
		e := d.event
		if e.PlatformID == "" {
			return out, false
		}
		found, err := db.Find(ctx, in.Thread, e.Platform, e.PlatformID, e.Body.Kind(), e.Version)
		if err != nil {
			return out, false
		}
		out.Events = append(out.Events, found)
		if next, err := db.Events(ctx, in.Thread, found.Seq, 1); err == nil && len(next) == 1 {
			if no, ok := next[0].Body.(chat.Refused); ok && no.Seq == found.Seq {
				out.Events = append(out.Events, next[0])
			}
		}
	}
	if len(out.Events) == 0 {
		return out, false
	}
	t, err := db.Thread(ctx, in.Thread)
	out.Next, out.Waiting = t.Next, t.Waiting
	return out, err == nil
}

// threadState is the thread row that a commit works on. It is locked by the update that
// assigned the numbers, and holds the values to write at the end.
type threadState struct {
	next    int64
	waiting int64
	wake    int64
	status  string
	titled  bool // it has a title
}

const (
	returning = ` RETURNING next_seq, waiting, wake, status, title <> ''`
	unerased  = ` AND listing <> 'erased'`

	numberGuest       = `UPDATE threads SET next_seq = next_seq + ?, last_active = ? WHERE id = ?` + unerased + returning
	numberGuestExpect = `UPDATE threads SET next_seq = next_seq + ?, last_active = ? WHERE id = ? AND next_seq = ?` + unerased + returning
	numberOwner       = `UPDATE threads SET next_seq = next_seq + ?, last_active = ? WHERE id = ? AND epoch = ?` + unerased + returning
	numberOwnerExpect = `UPDATE threads SET next_seq = next_seq + ?, last_active = ? WHERE id = ? AND epoch = ? AND next_seq = ?` + unerased + returning

	numberKnown = `UPDATE threads SET next_seq = ?, last_active = ? WHERE id = ? AND epoch = ? AND next_seq = ?`

	updateThread = `UPDATE threads SET next_seq = ?, waiting = ?, wake = ?, status = ?,
		title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?`

	insertEvent = `INSERT INTO events (thread_id, seq, at, kind, run_id, who, body, platform, platform_id, version, taken)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertRef = `INSERT INTO event_blobs (hash, thread_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

	takeEvent = `UPDATE events SET taken = 1 WHERE thread_id = ? AND seq = ? AND taken = 0`
)

// applyAll writes an intent and its commits on other threads.
func (db *DB) applyAll(tx database.Tx, in *intent) (journal.Committed, error) {
	if err := lockThreads(tx, in); err != nil {
		return journal.Committed{}, err
	}
	out, err := db.apply(tx, in)
	for i := 0; i < len(in.beside) && err == nil; i++ {
		other := in.beside[i]
		var done journal.Committed
		var again bool
		if again, err = written(tx, other); err == nil && !again {
			done, err = db.apply(tx, other)
		}
		if errors.Is(err, journal.ErrUnknown) {
			err = nil // the receiver is gone; what this thread does is still valid
		}
		if err != nil {
			return journal.Committed{}, fmt.Errorf("beside it, to thread %s: %w", other.Thread, err)
		}
		out.Beside = append(out.Beside, done)
	}
	return out, err
}

// lockThreads locks the rows of all threads of a commit with several threads, in the order of their ids.
func lockThreads(tx database.Tx, in *intent) error {
	if len(in.beside) == 0 || !tx.OnServer() {
		return nil
	}
	ids := []any{string(in.Thread)}
	for _, other := range in.beside {
		ids = append(ids, string(other.Thread))
	}
	return tx.Lock(`SELECT id FROM threads WHERE id IN (?`+strings.Repeat(", ?", len(in.beside))+`) ORDER BY id FOR NO KEY UPDATE`, ids...)
}

// written reports whether the first event of a guest's commit is already in the journal.
func written(tx database.Tx, in *intent) (bool, error) {
	if len(in.drafts) == 0 || in.drafts[0].event.PlatformID == "" {
		return false, nil
	}
	d := in.drafts[0]
	var n int
	err := tx.Row(`SELECT count(*) FROM events WHERE thread_id = ? AND platform = ? AND platform_id = ? AND platform_id <> '' AND kind = ? AND version = ?`,
		[]any{string(in.Thread), d.event.Platform, d.event.PlatformID, d.kind, d.event.Version}, &n)
	return n > 0, err
}

// apply writes an intent inside the writer's transaction.
func (db *DB) apply(tx database.Tx, in *intent) (journal.Committed, error) {
	now := database.Micros(db.Now())
	in.left = nil
	if in.Create != nil {
		made := *in.Create
		if db.places != nil {
			made.Placement = db.places(made.Dir)
		}
		if err := createThread(tx, in.Thread, made, now); err != nil {
			return journal.Committed{}, err
		}
	}
	was, err := number(tx, in, now)
	if err != nil {
		return journal.Committed{}, err
	}
	a := &applying{db: db, tx: tx, in: in, now: now, is: was, seq: was.next - int64(len(in.drafts))}
	for _, b := range in.blobs {
		if err := db.WriteBlob(tx, b, now); err != nil {
			return journal.Committed{}, err
		}
	}
	for i := range in.drafts {
		if err := a.event(&in.drafts[i]); err != nil {
			return journal.Committed{}, err
		}
	}
	if err := a.beside(); err != nil {
		return journal.Committed{}, err
	}
	a.settleRow()
	if a.is != was || a.title != "" {
		err := tx.Exec(updateThread, a.is.next, a.is.waiting, a.is.wake, a.is.status, a.title, string(in.Thread))
		if err != nil {
			return journal.Committed{}, err
		}
	}
	remember(tx, in, a.is)
	return journal.Committed{Events: a.out, Next: a.is.next, Waiting: int(a.is.waiting)}, nil
}

// known is a thread's row as its owner's last commit left it. Whatever anybody else
// changes in the row also changes its number or its epoch. So a row with the same
// number and epoch is unchanged and need not be read.
type known struct {
	epoch int64
	row   threadState
}

// maxKnown limits what is remembered. It is more threads than one process runs at a time.
const maxKnown = 512

// remembered is what is known from earlier transactions: see number and audit.Append.
type remembered struct {
	threads map[chat.ThreadID]known
	ends    audit.Ends
}

func newRemembered() *remembered {
	return &remembered{threads: map[chat.ThreadID]known{}, ends: audit.Ends{}}
}

// Forget discards everything: the transaction may not have been committed.
func (r *remembered) Forget() {
	clear(r.threads)
	clear(r.ends)
}

// AuditEnds returns the ends of the audit log's chains.
func (r *remembered) AuditEnds() audit.Ends { return r.ends }

func recalled(tx database.Tx) *remembered { return tx.Memory().(*remembered) }

func remember(tx database.Tx, in *intent, row threadState) {
	if in.leaves = nil; in.Epoch == 0 {
		return
	}
	if tx.OnServer() {
		in.leaves = &ownedThread{known: known{in.Epoch, row}}
		in.leaves.end, in.leaves.ended = recalled(tx).ends[in.Thread]
		return
	}
	threads := recalled(tx).threads
	if len(threads) >= maxKnown {
		clear(threads)
	}
	threads[in.Thread] = known{in.Epoch, row}
}

// numberAsKnown takes numbers from a row that is still as the owner left it. It
// returns false if the row has changed or was never seen.
func numberAsKnown(tx database.Tx, in *intent, now int64) (threadState, bool, error) {
	if tx.Blind() {
		s, err := numberAsOwned(tx, in, now)
		return s, true, err
	}
	k, ok := recalled(tx).threads[in.Thread]
	if !ok || in.Epoch == 0 || k.epoch != in.Epoch || in.Expect != 0 && in.Expect != k.row.next {
		return threadState{}, false, nil
	}
	s := k.row
	s.next += int64(len(in.drafts))
	n, err := tx.Change(numberKnown, s.next, now, string(in.Thread), in.Epoch, k.row.next)
	return s, n == 1, err
}

// number takes the numbers from the thread's row. If there is no matching
// row, the writer may not write, and the error says why.
func number(tx database.Tx, in *intent, now int64) (threadState, error) {
	if s, ok, err := numberAsKnown(tx, in, now); ok || err != nil {
		return s, err
	}
	query, args := numberGuest, []any{len(in.drafts), now, string(in.Thread)}
	switch {
	case in.Epoch != 0 && in.Expect != 0:
		query, args = numberOwnerExpect, append(args, in.Epoch, in.Expect)
	case in.Epoch != 0:
		query, args = numberOwner, append(args, in.Epoch)
	case in.Expect != 0:
		query, args = numberGuestExpect, append(args, in.Expect)
	}
	var s threadState
	into := []any{&s.next, &s.waiting, &s.wake, &s.status, &s.titled}
	var err error
	if tx.OnServer() && len(in.Audit) > 0 {
		err = numberAudited(tx, in.Thread, query, args, into...)
	} else {
		err = tx.Row(query, args, into...)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return s, err
	}
	var epoch int64
	err = tx.Row(`SELECT epoch FROM threads WHERE id = ?`+unerased, []any{string(in.Thread)}, &epoch)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return s, journal.ErrUnknown
	case err != nil:
		return s, err
	case in.Epoch != 0 && epoch != in.Epoch:
		return s, journal.ErrFenced
	default:
		return s, journal.ErrMoved
	}
}

// numberAudited reads the thread's row and then the end of its chain in the audit log, in
// one round trip. Nobody extends the chain without locking the row.
func numberAudited(tx database.Tx, thread chat.ThreadID, query string, args []any, into ...any) error {
	var none error
	err := tx.Ask(query, args, func(row database.Scanner) error {
		if none = row.Scan(into...); errors.Is(none, sql.ErrNoRows) {
			return nil
		}
		return none
	})
	if err == nil {
		err = audit.ReadEnd(tx, thread)
	}
	return cmp.Or(none, err)
}

// applying is a commit in progress.
type applying struct {
	db    *DB
	tx    database.Tx
	in    *intent
	now   int64
	is    threadState
	seq   int64 // the next number to give
	wakes bool
	title string
	out   []chat.Event
}

// event writes one draft and updates the queue as its kind requires.
func (a *applying) event(d *draft) error {
	var taken any
	refuse := false
	if journal.IsPrompt(d.event.Body) {
		_, steered := d.event.Body.(chat.Steered)
		refuse = !steered && a.in.MaxWaiting > 0 && a.is.waiting >= int64(a.in.MaxWaiting)
		if refuse {
			taken = 1
		} else {
			taken = 0
			a.is.waiting++
		}
	}
	if err := a.insert(d, taken); err != nil {
		return err
	}
	a.wakes = a.wakes || journal.Wakes(d.event.Body) && !refuse
	if err := a.consequences(d.event.Body); err != nil {
		return err
	}
	if a.db.follow != nil {
		if err := a.db.follow(a.tx, a.in.Thread, a.out[len(a.out)-1]); err != nil {
			return err
		}
	}
	if !refuse {
		return nil
	}
	seq := a.out[len(a.out)-1].Seq
	why := fmt.Sprintf("queue full: %d messages are waiting already", a.is.waiting)
	no, err := newDraft(a.in.Thread, chat.Event{Body: chat.Refused{Seq: seq, Why: why}})
	if err != nil {
		return err
	}
	a.is.next++
	return a.insert(&no, nil)
}

func (a *applying) insert(d *draft, taken any) error {
	e := d.event
	e.Seq, e.At = a.seq, database.Time(a.now)
	err := a.tx.Insert(journal.ErrDuplicate, insertEvent, string(e.Thread), e.Seq, a.now, d.kind, e.Run, e.Who, d.body,
		e.Platform, e.PlatformID, e.Version, taken)
	if err != nil {
		return err
	}
	for _, hash := range d.blobs {
		if err := blobs.LockBlob(a.tx, hash); err != nil {
			return err
		}
		if err := a.tx.Exec(insertRef, hash, string(e.Thread), e.Seq); err != nil {
			return err
		}
	}
	a.seq++
	a.out = append(a.out, e)
	return nil
}

// consequences makes the changes of an event other than its own row.
func (a *applying) consequences(body chat.Body) error {
	switch b := body.(type) {
	case chat.Received:
		if b.Prompt {
			a.entitle(b.Blocks)
		}
		return seePrincipal(a.tx, b.Principal, a.now)
	case chat.Steered:
		a.entitle(b.Blocks)
		return seePrincipal(a.tx, b.Principal, a.now)
	case chat.Took:
		for _, seq := range b.Seqs {
			n, err := a.unqueue(seq)
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("take prompt %d: %w", seq, journal.ErrMoved)
			}
		}
	case chat.Refused:
		_, err := a.unqueue(b.Seq)
		return err
	case chat.Deleted:
		if _, err := a.unqueue(b.Seq); err != nil || !b.Forget {
			return err
		}
		return a.forget(b)
	}
	return nil
}

// unqueue decreases waiting if the prompt still waits.
func (a *applying) unqueue(seq int64) (int64, error) {
	n, err := a.tx.Change(takeEvent, string(a.in.Thread), seq)
	a.is.waiting -= n
	return n, err
}

// titleLength is what fits into a list.
const titleLength = 80

// entitle names the thread after its first prompt.
func (a *applying) entitle(blocks chat.Blocks) {
	if a.is.titled || a.title != "" {
		return
	}
	a.title = TitleOf(blocks)
}

// TitleOf returns the title of a thread that begins with these words.
func TitleOf(blocks chat.Blocks) string {
	words, _, _ := strings.Cut(blocks.Text(), "<attachment filename=") // a text file sent with the words
	title := strings.Join(strings.Fields(words), " ")
	if utf8.RuneCountInString(title) > titleLength {
		title = string([]rune(title)[:titleLength])
	}
	return title
}

// beside writes the parts of a commit other than its events.
func (a *applying) beside() error {
	for _, e := range a.in.Money {
		if err := writeMoney(a.tx, a.in.Thread, e, a.in.Ceilings, a.now); err != nil {
			return err
		}
	}
	for _, r := range a.in.Warned {
		if err := markAsked(a.tx, r, a.now); err != nil {
			return err
		}
	}
	for _, d := range a.in.drafts {
		if end, ok := d.event.Body.(chat.RunEnded); ok {
			if err := a.tx.Exec(assumeRun, a.now, end.Run); err != nil {
				return err
			}
		}
	}
	for _, c := range a.in.Approvals {
		if err := writeApproval(a.tx, a.in.Thread, c, a.now); err != nil {
			return err
		}
	}
	for _, l := range a.in.Audit {
		if err := audit.Append(a.tx, a.in.Thread, l, a.now); err != nil {
			return err
		}
	}
	return nil
}

// settleRow decides status and wake. A guest only ever sets the mark. An owner that
// expected a number has seen everything before it, so from then on the mark says whether
// something is left to do: prompts that nobody is working on.
func (a *applying) settleRow() {
	if a.in.Epoch == 0 {
		if a.wakes {
			a.is.wake = 1
		}
		return
	}
	if a.in.Status != "" {
		a.is.status = string(a.in.Status)
	}
	resting := a.is.status == string(chat.Idle) || a.is.status == string(chat.Failed)
	left := resting && a.is.waiting > 0
	switch {
	case left && (a.in.Expect != 0 || a.in.Status != ""):
		a.is.wake = 1
	case a.in.Expect != 0:
		a.is.wake = 0
	}
}
