package always

import (
	"encoding/json"
	"strings"
	"testing"

	"chorus/internal/permit"
)

func TestWriteProposals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rules, command, want string }{
		{"standard", "go test ./a", "1. exactly this\n   tool:bash:go test \\./a\n2. go test with any arguments\n   tool:bash:go test(?: .*)?\n   also: go test ./b\n"},
		{"standard", `eval "$X"`, "no rule can allow this without asking: eval runs a text that is put together when it runs; write the command itself\n"},
		{"open", "ls", "allowed already\n"},
		{"open", "rm -rf /", "denied; an allow rule changes nothing: removing /\n"},
	} {
		var b strings.Builder
		if err := WriteProposals(&b, mustPreset(t, c.rules), c.command, []string{"go test ./b", "make"}, permit.Who{}, false); err != nil || b.String() != c.want {
			t.Errorf("%s: %q, %v; want %q", c.command, b.String(), err, c.want)
		}
	}
	var b strings.Builder
	if err := WriteProposals(&b, mustPreset(t, "standard"), "make", nil, permit.Who{}, true); err != nil || !json.Valid([]byte(b.String())) || !strings.Contains(b.String(), `"tool:bash:make"`) {
		t.Errorf("%s, %v", b.String(), err)
	}
}
