package always

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"chorus/internal/permit"
	"chorus/internal/permit/canonical"
	"chorus/internal/permit/permittest"
)

// triedProfiles are profiles of every kind: those that come with Chorus, one that asks for all, and one that denies some.
func triedProfiles(t *testing.T) []*permit.Profile {
	t.Helper()
	out := []*permit.Profile{mustCompile(t, permit.Rules{Ask: []string{`.*`}}),
		mustCompile(t, permit.Rules{Allow: []string{`tool:bash:(?:ls|git|echo).*`}, Ask: []string{`.*`}, Deny: []string{`tool:bash:git push.*`, `tool:bash:rm .*`, `tool:write:secrets/.*`}})}
	for _, name := range permit.Presets() {
		out = append(out, mustPreset(t, name))
	}
	return out
}

// Whatever the command and the profile: each rule that is offered allows the call once it is kept, as it is read from the file. Where none
// is offered, none would help, however much it allows, and the reason says so without telling how to write the command.
func TestWhatIsOfferedWorks(t *testing.T) {
	t.Parallel()
	cases, err := permittest.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	profiles, offered, never := triedProfiles(t), 0, 0
	for _, c := range cases {
		tried := profiles
		if c.Rules != "" {
			var own permit.Rules
			if err := json.Unmarshal([]byte(c.Rules), &own); err != nil {
				t.Fatal(err)
			}
			tried = append(slices.Clone(profiles), mustCompile(t, own))
		}
		for _, p := range tried {
			j := judged(p, c.Command)
			proposals := Propose(j)
			for _, offer := range proposals {
				offered++
				if !allowedByFile(t, j, offer.Rules) {
					t.Errorf("%q is not allowed by %q", c.Command, offer.Rules)
				}
			}
			if len(proposals) > 0 {
				continue
			}
			never++
			why := Never(j)
			if starts := map[permit.Verdict]string{permit.Allow: "it is already", permit.Ask: "no rule can allow this call", permit.Deny: "it is refused"}[j.Verdict]; !strings.HasPrefix(why, starts) {
				t.Errorf("%q is judged %s, and the reason is %q", c.Command, j.Verdict, why)
			}
			if j.Verdict == permit.Ask && couldBeAllowed(j) {
				t.Errorf("%q: %s, but a rule could allow it", c.Command, why)
			}
			_, _, err := canonical.Read(c.Command)
			if o, ok := errors.AsType[*canonical.Opaque](err); ok && o.Plain != "" && strings.Contains(why, "; "+o.Plain) || strings.Contains(why, "; write -- or") {
				t.Errorf("%q: %q tells people how to write what they did not write", c.Command, why)
			}
			if j.Verdict == permit.Ask && strings.HasSuffix(why, "each time") {
				t.Errorf("%q: nothing says why no rule can allow it", c.Command)
			}
		}
	}
	if offered < 1000 || never < 500 {
		t.Errorf("only %d offers and %d refusals were tried", offered, never)
	}
}

// allowedByFile reports whether rules allow a call once they were written to the file and read again.
func allowedByFile(t *testing.T, j permit.Judgement, rules []string) bool {
	t.Helper()
	data, err := kept(t, ada, rules...).Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	_, ok := again.Allow(j, ada)
	return ok
}

// couldBeAllowed reports whether some rules allow a call: one for everything, and one for each of its parts.
func couldBeAllowed(j permit.Judgement) bool {
	rules := []string{`.*`}
	for _, d := range j.Decisions {
		if strings.HasSuffix(d.Action, ":") { // it writes files that only its input names, so that a rule for them would be one for all files
			return false
		}
		rules = append(rules, literal(d.Action), literal(matched(d.Action)), literal(d.Stricter))
	}
	after := extended(j, rules)
	return after != nil && strictest(after, j.Requests, j.Options) == permit.Allow
}

// A rule can be too long for a command that is, and cannot hold bytes that are no text.
func TestNoRuleHoldsIt(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"make " + strings.Repeat("x", 5000): "longer than a rule may be"} {
		if why := Never(judged(mustPreset(t, "standard"), command)); !strings.Contains(why, want) {
			t.Errorf("%.20q: %q, want %q", command, why, want)
		}
	}
	file := mustPreset(t, "standard").Judge([]permit.Request{{Tool: "write", Detail: ".git/\xff"}}, permit.JudgeOptions{})
	if why := Never(file); len(Propose(file)) > 0 || !strings.Contains(why, "not text") {
		t.Errorf("%q", why)
	}
}
