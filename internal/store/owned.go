package store

import (
	"sync"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store/audit"
)

// numberOwned is numberKnown for a commit that does not hear the answer: a row that is not as its owner left it would get no number, which
// its column refuses.
const numberOwned = `UPDATE threads SET next_seq = CASE WHEN epoch = ? AND next_seq = ? THEN CAST(? AS bigint) END, last_active = ? WHERE id = ?`

// gathered are the statements of owners' commits that may be sent to PostgreSQL with those of others. They change what is their thread's;
// of what commits share, they lock sums of money only, which are by agent, payer, model and channel: a thread's id begins with that.
func gathered() []database.Gathered {
	const thread, agent, payer, model = 3, 4, 5, 7
	return []database.Gathered{{Query: numberOwned}, {Query: updateThread}, {Query: insertEvent, Rows: true}, audit.Gathered(),
		{Query: settle, Rows: true, By: []int{agent, payer, model, thread}}}
}

// ownedThread is a thread's row as its owner's last commit left it, and the end of its chain of the audit log, if that was asked for.
type ownedThread struct {
	known
	end   audit.End
	ended bool
}

// ownedThreads are those of this process, on a server: SQLite's writer remembers them itself.
type ownedThreads struct {
	mu   sync.Mutex
	rows map[chat.ThreadID]ownedThread
}

// take gives what is known of a thread's row to one commit of its owner, and to nobody else until that is true; nil: nothing is, or the
// commit has no event that it could be recognised by.
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

// keep remembers what a commit left that is true. After a guest's the row is another than its owner knows.
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

// isThere reports whether an event was written by the transaction that gave it its number and time, which has ended, or will find another
// row than it knows: the thread's is held from now on.
func isThere(tx database.Tx, e chat.Event) (bool, error) {
	if err := tx.Lock(`SELECT id FROM threads WHERE id = ? FOR NO KEY UPDATE`, string(e.Thread)); err != nil {
		return false, err
	}
	var n int
	err := tx.Row(`SELECT count(*) FROM events WHERE thread_id = ? AND seq = ? AND at = ? AND kind = ? AND run_id = ?`,
		[]any{string(e.Thread), e.Seq, database.Micros(e.At), string(e.Body.Kind()), e.Run}, &n)
	return n > 0, err
}
