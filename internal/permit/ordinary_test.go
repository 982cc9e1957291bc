package permit

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// ordinaryCommands are what agents and people really type.
func ordinaryCommands(t testing.TB) (out []string) {
	t.Helper()
	data, err := os.ReadFile("canonical/testdata/ordinary.txt")
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n")
	for line := range strings.Lines(string(data)) {
		out = append(out, unescape.Replace(strings.TrimSuffix(line, "\n")))
	}
	return out
}

// optionReason is how the reasons read that come from options and from what programs write.
var optionReason = regexp.MustCompile(`option|starts a program|writes|removes|changes files|may start|code that|script that|script is not known`)

// Under a profile that allows the programs they use, and the files of the workspace, few ordinary commands are asked for
// because of their options: for code in an argument, and where an option writes somewhere else or comes from a variable.
func TestOrdinaryCommandsAreRarelyAskedForOptions(t *testing.T) {
	t.Parallel()
	// Whoever denies something has opaque commands asked; guarded does so too.
	profile := mustCompile(t, Rules{Allow: []string{`tool:bash:[a-z\[:].*`, `tool:(read|write):[^/.@].*`}, Ask: []string{`.*`}, Deny: []string{`tool:bash:mkfs.*`}})
	for name, c := range map[string]struct {
		profile *Profile
		most    int // of a hundred
	}{"programs and files": {profile, 6}, "guarded": {mustPreset(t, "guarded"), 5}} {
		var asked []string
		all := ordinaryCommands(t)
		for _, command := range all {
			for _, d := range judged(c.profile, command).Decisions {
				if d.Verdict != Allow && optionReason.MatchString(d.Why) {
					asked = append(asked, command+"\n    "+d.Why)
					break
				}
			}
		}
		t.Logf("%s: %d of %d", name, len(asked), len(all))
		if len(asked)*100 > c.most*len(all) {
			t.Errorf("%s: %d of %d are asked for:\n%s", name, len(asked), len(all), strings.Join(asked, "\n"))
		}
	}
}
