package permit

import "testing"

// Every rule that is built in has a name, so that nobody has to read its expression.
func TestEveryPresetRuleHasAName(t *testing.T) {
	t.Parallel()
	for _, p := range presetRules {
		for _, list := range [][]string{p.rules.Allow, p.rules.Ask, p.rules.Deny} {
			for _, rule := range list {
				if RuleName(rule) == "" {
					t.Errorf("%s: %.80s has no name", p.name, rule)
				}
			}
		}
	}
	if got := RuleName("tool:bash:make test"); got != "" {
		t.Errorf("somebody's own rule is called %q", got)
	}
}
