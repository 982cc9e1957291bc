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
		{"standard", `eval "$X"`, "no rule can allow this call, so it is asked each time: eval runs a text that is put together when it runs\n"},
		{"open", "ls", "it is already allowed\n"},
		{"open", "rm -rf /", "it is refused, and no rule that you keep changes that: removing /\n"},
		{"locked", "make", "it is refused, and no rule that you keep changes that: no rule of the profile covers it\n"},
		{"guarded", "git push", "it is refused, and no rule that you keep changes that: a rule denies pushing to other repositories\n"},
		{"guarded", "ssh host ./deploy.sh", "no rule can allow this call, so it is asked each time: its words may mean something that a rule denies: commands that change other machines\n"},
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
