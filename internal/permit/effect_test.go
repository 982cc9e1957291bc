//go:build unix

package permit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/permit/canonical"
	"chorus/internal/permit/permittest/effects"
	"chorus/internal/theme"
)

func effectProfile(t testing.TB, rules string) *Profile {
	t.Helper()
	if r, ok := effects.RuleSets()[rules]; ok {
		return mustCompile(t, Rules{Allow: r.Allow, Deny: r.Deny, Ask: r.Ask})
	}
	return mustPreset(t, rules)
}

// No known way around the rules is both allowed and effective: by what a shell reads otherwise, by options, by the
// directory, by a detour in a path.
func TestEffects(t *testing.T) {
	t.Parallel()
	p := effects.New(t)
	cases := slices.Concat(effects.Cases(), effects.More())
	for _, c := range cases {
		j := effectProfile(t, c.Rules).Judge([]Request{{Tool: "bash", Command: c.Command}}, JudgeOptions{Workspace: filepath.Join(p.Dir, "ws")})
		if c.Effect == "none" {
			if j.Verdict != Deny {
				t.Errorf("%s: %q is %s", c.Rules, c.Command, j.Verdict)
			}
			continue
		}
		if j.Verdict != Allow {
			continue
		}
		text, err := canonical.Text(c.Command)
		if err != nil {
			t.Errorf("%s: %q is allowed and has no canonical text: %v", c.Rules, c.Command, err)
			continue
		}
		if p.Does(t, text, c.Effect) {
			t.Errorf("%s: %q was allowed, and did %s\n%s", c.Rules, c.Command, c.Effect, drawTree(c.Rules, j, theme.Theme{}))
		} else {
			t.Logf("%s: %q is allowed, without effect", c.Rules, c.Command)
		}
	}
	if len(cases) < 1000 {
		t.Errorf("there are only %d cases", len(cases))
	}
}

// The test above is worth something only if the commands do what they are said to do when nobody judges them. EFFECTS=all
// runs all of them; by default it is a sample.
func TestEffectsAreReal(t *testing.T) {
	t.Parallel()
	p := effects.New(t)
	every := 40
	if os.Getenv("EFFECTS") == "all" {
		every = 1
	}
	ran, real := 0, 0
	for i, c := range slices.Concat(effects.Cases(), effects.More()) {
		if c.Effect == "none" || i%every != 0 || strings.Contains(c.Command, "go test") {
			continue
		}
		ran++
		if p.Does(t, c.Command, c.Effect) {
			real++
		} else {
			t.Logf("%s: %q does not do %s here", c.Rules, c.Command, c.Effect)
		}
	}
	if real < ran/2 {
		t.Errorf("only %d of %d commands do what they are said to do", real, ran)
	}
}
