package permit

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"chorus/internal/permit/permittest"
	"chorus/internal/permit/shell"
)

// Code that is data around an expansion is found where arithmetic may run it.
func TestCodeAroundAnExpansion(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, Rules{Allow: []string{`tool:bash:echo.*`}})
	for command, want := range map[string]Verdict{
		"q=`true`q='a[$(x)]'; echo $((q))": Ask, `q='a[$'$E'(x)]'; echo $((q))`: Ask, `q=$E'a[$(x)]'; echo $((q))`: Ask, `q=$E'a[x]'; echo $((q))`: Ask, `q=3; echo $((q))`: Allow,
	} {
		if j := judged(p, command); j.Verdict != want {
			t.Errorf("%s: %s, want %s", command, j.Verdict, want)
		}
	}
}

// A dropped guess changes nothing: the verdict and the deciding part are the same, and of
// the other decisions only guesses are missing.
func TestIdleGuessesChangeNothing(t *testing.T) {
	t.Parallel()
	left := 0
	same := func(p *Profile, command, at string) {
		opt := JudgeOptions{Home: "/home/u/.chorus", Workspace: "/home/u/project", UserHome: "/home/u"}
		short := p.Judge([]Request{{Tool: "bash", Command: command}}, opt)
		opt.Guesses = true
		whole := p.Judge([]Request{{Tool: "bash", Command: command}}, opt)
		if !reflect.DeepEqual(short.Decision, whole.Decision) {
			t.Errorf("%s: %q is decided by %+v, with all guesses by %+v", at, command, short.Decision, whole.Decision)
		}
		rest := short.Decisions
		for _, d := range whole.Decisions {
			if len(rest) > 0 && reflect.DeepEqual(rest[0], d) {
				rest = rest[1:]
				continue
			}
			if left++; d.Kind != shell.KindGuess || d.Verdict != Allow {
				t.Errorf("%s: %q lacks the decision %+v", at, command, d)
			}
		}
		if len(rest) > 0 {
			t.Errorf("%s: %q has a decision that nobody made: %+v", at, command, rest[0])
		}
	}
	corpus(t, func(p *Profile, _ Verdict, command, at string) { same(p, command, at) })
	for kind, script := range permittest.Scripts() {
		for _, preset := range Presets() {
			same(mustPreset(t, preset), script, kind+" under "+preset)
		}
	}
	if left < 1000 {
		t.Errorf("only %d guesses were left out", left)
	}
}

// What a pattern is said to match without running it, it matches.
func TestBeginningsMatchAsPatterns(t *testing.T) {
	t.Parallel()
	known := 0
	for _, pattern := range append([]string{`tool:a\.b.*`, `a.*`, `a+.*`, `(?i)a.*`, `a.*b.*`, `\Qa.b\E.*`, `a\..*`, `é.*`}, somePatterns...) {
		r := mustCompile(t, Rules{Allow: []string{pattern}}).allow[0]
		if r.prefixOnly {
			known++
		}
		for _, s := range []string{"", "a", "A", "ab", "aab", "a.b", "axb", "tool:a.b", "tool:axb", "tool:a.b\nc", "tool:bash:ls", "tool:bash:git push", "tool:git:push", "é", "x", "tool:write:a/b"} {
			if got, want := r.matches(s), r.re().MatchString(s); got != want {
				t.Errorf("%s on %q: %v, want %v", pattern, s, got, want)
			}
		}
	}
	if known < 5 {
		t.Errorf("only %d of the patterns are known by their beginning", known)
	}
}

// A pattern is wrong when it is read, not when it is first needed, however deep it is.
func TestDeepPatternsAreReadWhole(t *testing.T) {
	t.Parallel()
	refused := 0
	for depth := 980; depth <= 1010; depth++ {
		p, err := Compile("deep", Rules{Allow: []string{strings.Repeat("(", depth) + "tool:x" + strings.Repeat(")", depth)}})
		if err != nil {
			if _, ok := errors.AsType[*PatternError](err); !ok {
				t.Errorf("%d deep: %v", depth, err)
			}
			refused++
			continue
		}
		if !p.allow[0].matches("tool:x") {
			t.Errorf("%d deep: it does not match", depth)
		}
	}
	if refused == 0 || refused == 31 {
		t.Errorf("%d of the patterns were refused", refused)
	}
}
