package service

import (
	"testing"

	"chorus/internal/chat"
	"chorus/internal/operations"
)

// What stands in the audit log with keys is said with names; what somebody has set is left as it is.
func TestAuditWords(t *testing.T) {
	t.Parallel()
	name := func(p chat.Principal) string {
		if p.ID == "7" {
			p.Name = "Bo"
		}
		return p.Label()
	}
	for _, tt := range []struct{ action, decision, detail, want string }{
		{"tool:bash:ls", "ask_approved", "by discord:7", "by Bo (discord)"},
		{"tool:bash:ls", "ask_approved", "by discord:7 and local:ada", "by Bo (discord) and ada"},
		{"tool:bash:ls", "ask_approved", "--yes", "--yes was given beforehand"},
		{"tool:bash:ls", "ask_denied", "refused by local:ada: not by http://x", "refused by ada: not by http://x"},
		{"tool:bash:ls", "deny", "implicit", "no rule allows it"},
		{"tool:bash:ls", "deny", "catastrophic", "refused under every profile"},
		{"session erase 01k3", "changed", "deleted by discord:7 at 2026-11-18T12:00:00Z", "deleted by Bo (discord) at 2026-11-18T12:00:00Z"},
		{"permit allowed add", "changed", "a1 for discord:7 in /w: ^ls$", "a1 for Bo (discord) in /w: ^ls$"},
		{"setting owner", "changed", "by discord:7", "by discord:7"},
		{"tool:bash:ls", "allow", "", ""},
	} {
		if got := auditWords(operations.AuditLine{Action: tt.action, Decision: tt.decision, Detail: tt.detail}, name); got != tt.want {
			t.Errorf("%s %s %q: %q, not %q", tt.action, tt.decision, tt.detail, got, tt.want)
		}
	}
}
