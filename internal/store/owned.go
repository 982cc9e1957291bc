package store

import (
	"sync"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store/audit"
)

// numberOwned is numberKnown for a commit that does not wait for the result. If the row is
// not as its owner left it, it would set NULL, which the column refuses.
const numberOwned = `UPDATE threads SET next_seq = CASE WHEN epoch = ? AND next_seq = ? THEN CAST(? AS bigint) END, last_active = ? WHERE id = ?`

// gathered are the statements of owners' commits that may be sent to PostgreSQL
// together with those of others. They change only what belongs to their thread. Of the
// rows that commits share, they lock only sums of money, which are by agent, payer,
// model and channel: a thread's id begins with that.
func gathered() []database.Gathered {
	const thread, agent, payer, model = 3, 4, 5, 7
	return []database.Gathered{{Query: numberOwned}, {Query: updateThread}, {Query: insertEvent, Rows: true}, audit.Gathered(),
		{Query: settle, Rows: true, By: []int{agent, payer, model, thread}}}
}

// ownedThread is a thread's row as its owner's last commit left it, and
// the end of its audit log chain if that was read.
type ownedThread struct {
	known
	end   audit.End
	ended bool
}

// ownedThreads are those of this process, on a server. SQLite's writer remembers them itself.
type ownedThreads struct {
	mu   sync.Mutex
	rows map[chat.ThreadID]ownedThread
}

// take hands what is known of a thread's row to one commit of its owner, and to no
// other until that one is committed. It returns nil if nothing is known, or if the
// commit has no event by which it could be recognised.
func (o *ownedThreads) take(in *intent) *ownedThread {
	o.mu.Lock()
	defer o.mu.Unlock()
	row, ok := o.rows[in.Thread]
	delete(o.rows, in.Thread)
	if !ok || row.epoch != in.Epoch || in.Expect != 0 && in.Expect != row.row.next || len(in.drafts) == 0 {
		return nil
	}
	return &row
}

// keep remembers the row that a successful commit left. After a guest's
// commit the row differs from what its owner knows.
func (o *ownedThreads) keep(in *intent, left *ownedThread) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rows == nil || len(o.rows) >= maxKnown {
		o.rows = make(map[chat.ThreadID]ownedThread)
	}
	for _, other := range in.beside {
		delete(o.rows, other.Thread)
	}
	if left == nil {
		delete(o.rows, in.Thread)
	} else {
		o.rows[in.Thread] = *left
	}
}

// numberAsOwned takes numbers from a row that must be as its owner left it.
func numberAsOwned(tx database.Tx, in *intent, now int64) (threadState, error) {
	k := in.owned
	if k.ended {
		recalled(tx).ends[in.Thread] = k.end
	}
	s := k.row
	s.next += int64(len(in.drafts))
	return s, tx.Exec(numberOwned, in.Epoch, k.row.next, s.next, now, string(in.Thread))
}

// isThere reports whether an event was written by the transaction that gave it
// its number and time. That transaction has ended, or will find a different row,
// because this one now holds the thread's row.
func isThere(tx database.Tx, e chat.Event) (bool, error) {
	if err := tx.Lock(`SELECT id FROM threads WHERE id = ? FOR NO KEY UPDATE`, string(e.Thread)); err != nil {
		return false, err
	}
	var n int
	err := tx.Row(`SELECT count(*) FROM events WHERE thread_id = ? AND seq = ? AND at = ? AND kind = ? AND run_id = ?`,
		[]any{string(e.Thread), e.Seq, database.Micros(e.At), string(e.Body.Kind()), e.Run}, &n)
	return n > 0, err
}
