package storetest

import (
	"fmt"
	"sync"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store/audit"
)

func audited(action string) approval.Audit {
	return approval.Audit{Agent: "main", Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Action: action, Decision: "changed"}
}

// whole verifies the audit log and returns the result. Damage ends the test.
func (f *fixture) whole(s Store, since string) audit.Check {
	f.t.Helper()
	c, err := s.VerifyAudit(f.ctx(), since, nil)
	f.ok(err)
	if c.Break != nil {
		f.t.Fatalf("the audit log is broken: %+v", *c.Break)
	}
	return c
}

func testAuditChain(t *testing.T, f *fixture) {
	f.equal("lines of an empty log", f.whole(f.s, "").Lines, int64(0))
	row := f.owner(thread)
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Audit: []approval.Audit{audited("a"), audited("b")}})
	f.ok(err)
	first := f.whole(f.s, "")
	f.equal("lines", first.Lines, int64(2))
	f.equal("seals", first.HeadID, int64(0))
	seal, head, err := f.s.SealAudit(f.ctx())
	f.ok(err)
	f.equal("the first seal", seal, int64(1))
	f.ok(f.s.Audit(f.ctx(), audited("agent config")))
	all := f.whole(f.s, "")
	f.equal("head", all.Head, head)
	f.equal("chains", all.Chains, int64(2))
	f.equal("since the seal", f.whole(f.s, head).Lines, int64(2)) // the last of the thread's, and the new one
	log := must[[]audit.Line](t)(f.s.AuditLog(f.ctx(), audit.Filter{Limit: 1}))
	f.equal("since a line", f.whole(f.s, log[0].Hash).Lines, int64(3))
	f.equal("thread of a line without one", log[0].Thread, chat.ThreadID(""))
	next, after, err := f.s.SealAudit(f.ctx())
	f.ok(err)
	f.equal("the second seal", next, int64(2))
	again, same, err := f.s.SealAudit(f.ctx())
	f.ok(err)
	f.equal("a seal of nothing new", again, next)
	f.equal("its hash", same, after)
	f.equal("newest seal", f.whole(f.s, "").Head, after)
	c, err := f.s.VerifyAudit(f.ctx(), "not a hash of this log", nil)
	f.ok(err)
	if c.Break == nil || c.Break.What != audit.LineRemoved {
		t.Fatalf("an anchor that is not there: %+v", c)
	}
}

// Lines of a refused commit never existed, and the chain continues without them.
func testAuditAtomic(t *testing.T, f *fixture) {
	row := f.owner(thread)
	f.ok(f.s.Audit(f.ctx(), audited("before")))
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: row.ID, Epoch: row.Epoch + 1, Audit: []approval.Audit{audited("fenced")}})
	f.wants(err, journal.ErrFenced)
	f.ok(f.s.Audit(f.ctx(), audited("after")))
	f.equal("lines", f.whole(f.s, "").Lines, int64(2))
}

func testAuditTwoHandles(t *testing.T, f *fixture) {
	handles := []Store{f.s, f.open()}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for range 10 {
				if err := handles[g%2].Audit(t.Context(), audited("both")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range handles {
		f.equal("lines", f.whole(s, "").Lines, int64(60))
	}
}

// Threads on two handles write and seal at the same time. Whatever happens
// in between, the seals cover everything in the end.
func testAuditSealedMeanwhile(t *testing.T, f *fixture) {
	handles := []Store{f.s, f.open()}
	var wg sync.WaitGroup
	for g := range 6 {
		row := f.owner(chat.ThreadID(fmt.Sprintf("cli:home:sealed%d@main", g)))
		wg.Go(func() {
			s := handles[g%2]
			for n := range 10 {
				if _, err := s.Commit(t.Context(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Audit: []approval.Audit{audited("a"), audited("b")}}); err != nil {
					t.Error(err)
				}
				if n%4 == g%4 {
					if _, _, err := s.SealAudit(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	seal, head, err := f.s.SealAudit(f.ctx())
	f.ok(err)
	for _, s := range handles {
		all := f.whole(s, "")
		f.equal("lines", all.Lines, int64(120))
		f.equal("chains", all.Chains, int64(6))
		f.equal("head", all.Head, head)
		f.equal("seal", all.HeadID, seal)
		f.equal("since the last seal", f.whole(s, head).Lines, int64(6))
	}
}
