package audit

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"

	"chorus/internal/chat"
	"chorus/internal/database"
)

// Damage is what happened to a line of the audit log.
type Damage string

// The kinds of damage.
const (
	LineChanged  Damage = "changed"
	LineRemoved  Damage = "removed"
	LineInserted Damage = "inserted"
)

// Break is the first place where the audit log differs from what was written.
type Break struct {
	Thread chat.ThreadID // whose chain; "": the chain of lines without a thread, and of all lines from before threads had chains
	ID     int64         // the number of the line on its chain, or of the first missing line; 0: not known
	Seal   int64         // the seal that was changed or that shows the damage; 0: none
	What   Damage
	Text   string // for people
}

// Check is the result of VerifyAudit.
type Check struct {
	Lines  int64  // lines that were checked
	Chains int64  // chains that they are on
	Before int64  // of these lines, those from before the chains, which are covered together
	Head   string // the hash of the newest good seal; whoever keeps it elsewhere can prove the log up to it
	HeadID int64  // its number; 0: there is none
	Break  *Break // nil if everything is as it was written
}

func (c *Check) broken(b Break) {
	c.Break = cmp.Or(c.Break, &b)
}

// pageLines is how many lines are read at once: some hundred kilobytes.
const pageLines = 1000

// VerifyAudit checks the seals and then the chains of the audit log, and stops at the first line
// that is not as it was written. If since is the hash of a seal, it begins where the chains were
// then; if it is the hash of a line, it begins with that line on its chain. Lines that are added
// meanwhile are checked too. progress, which may be nil, is called after every page with the number
// of lines checked and the number of lines at the start.
//
// Lines that were cut off at the end of a chain after the last seal cannot be
// detected, and neither can a log that was rewritten from some seal on. Only a hash
// that was kept elsewhere and passed as since detects this.
func (l *Log) VerifyAudit(ctx context.Context, since string, progress func(done, all int64)) (Check, error) {
	w := walk{from: map[string]int64{}}
	seal, err := l.auditSince(ctx, since, &w)
	if err == nil && w.found.Break == nil {
		w.last, err = l.checkSeals(ctx, seal, &w.found)
	}
	if err == nil && w.found.Break == nil {
		err = l.walkChains(ctx, &w, progress)
	}
	if err != nil {
		return Check{}, fmt.Errorf("verify the audit log: %w", err)
	}
	return w.found, nil
}

// auditSince finds what has a given hash, and from where each chain is checked.
func (l *Log) auditSince(ctx context.Context, since string, w *walk) (seal int64, err error) {
	if since == "" {
		return 0, nil
	}
	err = l.db.Query(ctx, `SELECT id FROM audit_seals WHERE hash = ?`, []any{since}, func(rows *sql.Rows) error { return rows.Scan(&seal) })
	if err != nil {
		return 0, err
	}
	query, args := `SELECT chain, max(seq) FROM audit_sealed WHERE seal <= ? GROUP BY chain`, []any{seal}
	if seal == 0 {
		query, args = `SELECT chain, seq FROM audit WHERE hash = ?`, []any{since}
	}
	err = l.db.Query(ctx, query, args, database.Pairs(w.from))
	if seal == 0 && len(w.from) == 0 {
		w.found.broken(Break{What: LineRemoved, Text: "no seal and no line has the hash " + since + ": it was removed or changed"})
	}
	return seal, err
}

// walkChains reads all lines, chain by chain, together with what seals say about them.
func (l *Log) walkChains(ctx context.Context, w *walk, progress func(done, all int64)) error {
	var all int64
	err := l.db.Query(ctx, `SELECT count(*) FROM audit`, nil, func(rows *sql.Rows) error { return rows.Scan(&all) })
	chain, seq := "", int64(math.MinInt64) // somebody may have inserted a line before the first
	for more := err == nil; more && w.found.Break == nil; {
		var page []auditRow
		err = l.db.Query(ctx, `SELECT `+auditColumns+` FROM audit WHERE (chain, seq) >= (?, ?) ORDER BY chain, seq LIMIT ?+0`, []any{chain, seq, pageLines}, database.Fill(&page, func(rows *sql.Rows, r *auditRow) error {
			err := r.scan(rows)
			return err
		}))
		for i := 0; i < len(page) && err == nil && w.found.Break == nil; i++ {
			chain, seq = page[i].chain, page[i].seq+1
			if err = l.sealedUpTo(ctx, w, chain, page[i].seq); err == nil {
				w.take(page[i])
			}
		}
		more = err == nil && len(page) == pageLines
		if progress != nil {
			progress(w.found.Lines, max(all, w.found.Lines))
		}
	}
	if err == nil && w.found.Break == nil {
		w.finish()
		err = l.sealedUpTo(ctx, w, "", math.MaxInt64)
	}
	return err
}

// sealedUpTo reads what seals say, up to a line, and tells w of lines that should have come before
// it. The chain "" with the highest number stands for the end of everything.
func (l *Log) sealedUpTo(ctx context.Context, w *walk, chain string, seq int64) error {
	end := seq == math.MaxInt64
	for w.found.Break == nil {
		if len(w.sealed) == 0 && !w.allSealed {
			err := l.db.Query(ctx, `SELECT chain, seq, hash, seal FROM audit_sealed WHERE (chain, seq) > (?, ?) AND seal <= ? ORDER BY chain, seq LIMIT ?+0`,
				[]any{w.past.chain, w.past.seq, w.last, pageLines}, database.Fill(&w.sealed, func(rows *sql.Rows, e *chainEnd) error {
					return rows.Scan(&e.chain, &e.seq, &e.hash, &e.seal)
				}))
			if err != nil {
				return err
			}
			w.allSealed = len(w.sealed) < pageLines
			if len(w.sealed) > 0 {
				w.past = w.sealed[len(w.sealed)-1]
			}
		}
		if len(w.sealed) == 0 || !end && w.sealed[0].compare(chain, seq) >= 0 {
			return nil
		}
		w.absent(w.sealed[0], chain, end)
		w.sealed = w.sealed[1:]
	}
	return nil
}

// walk goes through the log, chain by chain.
type walk struct {
	from      map[string]int64 // the first line to check, by chain; without an entry, the first line there is
	last      int64            // the newest seal that the lines are compared with
	sealed    []chainEnd       // what seals say from here on, as far as it was read
	past      chainEnd         // the last one passed
	allSealed bool
	on        *verifier // the chain being read; nil if none yet
	found     Check
}

// take receives each line, after sealedUpTo.
func (w *walk) take(r auditRow) {
	if w.on == nil || w.on.chain != r.chain {
		w.finish()
		if w.found.Break != nil {
			return
		}
		w.on = newVerifier(r.chain, w.from[r.chain], &w.found)
		w.found.Chains++
	}
	if r.seq < w.from[r.chain] && r.seq > 0 {
		return
	}
	w.found.Lines++
	var says *chainEnd
	if len(w.sealed) > 0 && w.sealed[0].compare(r.chain, r.seq) == 0 {
		e := w.sealed[0]
		says, w.sealed = &e, w.sealed[1:]
	}
	w.on.take(r, says)
}

// finish checks the rest of a chain.
func (w *walk) finish() {
	if w.on != nil && w.found.Break == nil {
		w.on.finish()
	}
}

// absent handles a line that a seal names but that is missing. chain is the chain of the next line.
func (w *walk) absent(e chainEnd, chain string, end bool) {
	if e.seq < w.from[e.chain] || !end && e.chain == chain {
		return // before what is checked, or a line in the middle, whose absence the chain itself shows
	}
	w.finish() // earlier damage comes first
	has := int64(0)
	if w.on != nil && w.on.chain == e.chain {
		has = w.on.end.seq
	}
	text := fmt.Sprintf("line %d%s is the last, but seal %d has line %d: %s missing at the end", has, ofThread(e.chain), e.seal, e.seq, areMissing(has+1, e.seq, e.chain))
	if has == 0 {
		text = fmt.Sprintf("there is no line%s, but seal %d has line %d: all of them are missing", ofThread(e.chain), e.seal, e.seq)
	}
	w.found.broken(Break{Thread: chat.ThreadID(e.chain), ID: has + 1, Seal: e.seal, What: LineRemoved, Text: text})
}

// verifier reads the lines of a chain in order. It judges each line once the next one is
// known, because that distinguishes a changed line from an inserted one.
type verifier struct {
	chain    string
	old      *seal
	gap      int64 // the first number missing before the chain; 0 if none
	end      auditRow
	chained  bool
	anchored bool      // the first line follows one that is not checked
	wait     *auditRow // not judged yet
	says     *chainEnd // what a seal says about it; nil if nothing
	found    *Check
}

func newVerifier(chain string, from int64, found *Check) *verifier {
	v := &verifier{chain: chain, old: newSeal(), found: found}
	switch {
	case from > 0:
		v.end, v.chained, v.anchored = auditRow{seq: from - 1}, true, true
	case chain != string(noThread):
		v.end, v.chained = beginning(chain), true
	}
	return v
}

func (v *verifier) take(r auditRow, says *chainEnd) {
	if v.found.Break != nil {
		return
	}
	if r.seq < 1 {
		v.broken(r.seq, LineInserted, fmt.Sprintf("line %d%s was inserted: the first line has the number 1", r.seq, ofThread(v.chain)))
		return
	}
	if !v.chained && r.hash == "" && r.prev == "" {
		if v.gap == 0 && r.seq != v.end.seq+1 {
			v.gap = v.end.seq + 1
		}
		v.old.add(&r)
		v.end.seq = r.seq
		v.found.Before++
		return
	}
	if !v.chained {
		v.chained, v.end.hash = true, v.old.sum()
		if v.gap == 0 && r.seq != v.end.seq+1 {
			v.gap = v.end.seq + 1
		}
		if r.prev != v.end.hash {
			v.beforeChain(r)
			return
		}
	}
	if v.anchored {
		v.anchored, v.end.hash = false, r.prev
	}
	if v.wait != nil {
		v.judge(&r)
	}
	v.wait, v.says = &r, says
}

// finish judges the last line.
func (v *verifier) finish() {
	if v.wait != nil && v.found.Break == nil {
		v.judge(nil)
		v.wait = nil
	}
	if v.found.Break == nil && !v.chained && v.found.Before > 0 {
		v.broken(v.end.seq+1, LineRemoved, fmt.Sprintf("line %d, which answers for the %d before it, is missing", v.end.seq+1, v.found.Before))
	}
}

// beforeChain says why the first link is broken.
func (v *verifier) beforeChain(first auditRow) {
	switch {
	case v.gap > 0:
		v.broken(v.gap, LineRemoved, fmt.Sprintf("line %d is missing", v.gap))
	case v.found.Before > 0:
		v.broken(0, LineChanged, fmt.Sprintf("one of the lines 1 to %d, from before the chain, is not what it was, or line %d that answers for them is not", v.end.seq, first.seq))
	default:
		v.broken(first.seq, LineChanged, fmt.Sprintf("line %d does not begin the chain as the first line does", first.seq))
	}
}

// judge checks the waiting line. next is the following line, or nil.
func (v *verifier) judge(next *auditRow) {
	r := v.wait
	if r.seq != v.end.seq+1 {
		v.broken(v.end.seq+1, LineRemoved, areMissing(v.end.seq+1, r.seq-1, v.chain)+" missing")
		return
	}
	genuine, linked := r.genuine(), r.prev == v.end.hash
	line := fmt.Sprintf("line %d%s", r.seq, ofThread(v.chain))
	switch {
	case next != nil && next.prev == v.end.hash && next.prev != r.hash:
		v.broken(r.seq, LineInserted, line+" was inserted: the next line follows the one before it")
	case r.hash == "" && r.prev == "":
		v.broken(r.seq, LineInserted, line+" was inserted: it is not part of the chain")
	case !genuine || !linked:
		v.broken(r.seq, LineChanged, line+" is not what it was when it was written")
	case next != nil && next.prev != r.hash && next.seq == r.seq+1 && next.genuine():
		v.broken(r.seq, LineChanged, line+" was changed and given a new hash: the next line follows a different one")
	case v.says != nil && v.says.hash != r.hash:
		v.found.broken(Break{Thread: chat.ThreadID(v.chain), ID: r.seq, Seal: v.says.seal, What: LineChanged,
			Text: fmt.Sprintf("%s is not the one that seal %d has: lines were cut off or written anew before it", line, v.says.seal)})
	case r.id <= v.end.id:
		v.broken(r.seq, LineChanged, fmt.Sprintf("%s is listed as %d, before one that was written earlier", line, r.id))
	default:
		v.end = *r
	}
}

// ofThread says whose chain it is.
func ofThread(chain string) string {
	if chain == string(noThread) {
		return ""
	}
	return " of thread " + chain
}

func areMissing(from, to int64, chain string) string {
	if from == to {
		return fmt.Sprintf("line %d%s is", from, ofThread(chain))
	}
	return fmt.Sprintf("lines %d to %d%s are", from, to, ofThread(chain))
}

func (v *verifier) broken(seq int64, what Damage, text string) {
	v.found.broken(Break{Thread: chat.ThreadID(v.chain), ID: seq, What: what, Text: text})
}
