package permit

import (
	"reflect"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/permittest"
)

// Words that are read once and remembered are those that would be read again.
func TestRepeatedWordsAreTheSame(t *testing.T) {
	t.Parallel()
	scripts := []string{
		`X=a; echo "$X" $X "$X$X" x$X "a" "" a"$X"b $X/$X "$X/b"; cat "$X" $X ""`, "X=1; echo `echo \\\"$X\\\" \\$X` \"`echo \"$X\"`\" $X \"$X\"",
		`X=~; Y='*'; echo $X "$Y" $Y ~ "~" $"$X" $'a' {a,b}$X a\$X "\$X" ${X} "${X}" $X[1] "$@" $1 $10 $$`, "cat <<E\n\"$X\" $X\nE\necho \"$X\" $X é$X \"é\"",
	}
	for _, script := range permittest.Scripts() {
		scripts = append(scripts, script)
	}
	corpus(t, func(_ *Profile, _ Verdict, command, _ string) { scripts = append(scripts, command) })
	known := 0
	for _, script := range scripts {
		stmts, _ := statements(script) // what can be read of it
		fresh, remembers := &walker{src: script}, &walker{src: script}
		fresh.collectVars(stmts)
		remembers.collectVars(stmts)
		remembers.settled = true
		for range 2 {
			for _, s := range stmts {
				syntax.Walk(s, func(n syntax.Node) bool {
					if word, ok := n.(*syntax.Word); ok {
						want, got := fresh.read(nil, word), remembers.read(nil, word)
						if !reflect.DeepEqual(got, want) {
							t.Errorf("%s: %+v, want %+v", fresh.source(word), got, want)
						}
					}
					return true
				})
			}
		}
		known += len(remembers.words)
	}
	if known < 20 {
		t.Errorf("only %d words were remembered", known)
	}
}

// Code that is data around an expansion is found where arithmetic may run it.
func TestCodeAroundAnExpansion(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, Rules{Allow: []string{`tool:bash:echo.*`}})
	for command, want := range map[string]Verdict{
		"q=`true`q='a[$(x)]'; echo $((q))": Ask, `q='a[$'$E'(x)]'; echo $((q))`: Ask, `q=$E'a[$(x)]'; echo $((q))`: Ask, `q=$E'a[x]'; echo $((q))`: Allow,
	} {
		if j := judged(p, command); j.Verdict != want {
			t.Errorf("%s: %s, want %s", command, j.Verdict, want)
		}
	}
}
