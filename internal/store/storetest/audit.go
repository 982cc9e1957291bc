package storetest

import (
	"sync"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
)

func audited(action string) approval.Audit {
	return approval.Audit{Agent: "main", Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Action: action, Decision: "changed"}
}

// whole verifies the audit log and gives what was found; damage ends the test.
func (f *fixture) whole(s Store, since string) store.AuditCheck {
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
	f.ok(f.s.Audit(f.ctx(), audited("agent config")))
	all := f.whole(f.s, "")
	f.equal("head", all.HeadID, int64(3))
	f.equal("since the anchor", f.whole(f.s, first.Head).Lines, int64(2))
	log := must[[]store.AuditLine](t)(f.s.AuditLog(f.ctx(), store.AuditFilter{Limit: 1}))
	f.equal("hash of the last line", log[0].Hash, all.Head)
	f.equal("thread of a line without one", log[0].Thread, chat.ThreadID(""))
	c, err := f.s.VerifyAudit(f.ctx(), "not a hash of this log", nil)
	f.ok(err)
	if c.Break == nil || c.Break.What != store.LineRemoved {
		t.Fatalf("an anchor that is not there: %+v", c)
	}
}

// Lines of a commit that was refused never were, and the chain goes on without them.
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
