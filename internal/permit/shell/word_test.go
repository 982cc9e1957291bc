package shell

import (
	"reflect"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/permittest"
)

// A cached word is the same as one that is read again.
func TestRepeatedWordsAreTheSame(t *testing.T) {
	t.Parallel()
	scripts := []string{
		`X=a; echo "$X" $X "$X$X" x$X "a" "" a"$X"b $X/$X "$X/b"; cat "$X" $X ""`, "X=1; echo `echo \\\"$X\\\" \\$X` \"`echo \"$X\"`\" $X \"$X\"",
		`X=~; Y='*'; echo $X "$Y" $Y ~ "~" $"$X" $'a' {a,b}$X a\$X "\$X" ${X} "${X}" $X[1] "$@" $1 $10 $$`, "cat <<E\n\"$X\" $X\nE\necho \"$X\" $X é$X \"é\"",
	}
	for _, script := range permittest.Scripts() {
		scripts = append(scripts, script)
	}
	cases, err := permittest.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		scripts = append(scripts, c.Command)
	}
	known := 0
	for _, script := range scripts {
		stmts, _ := statements(script) // as far as it can be parsed
		fresh, remembers := &walker{src: script}, &walker{src: script}
		fresh.collectVars(stmts)
		remembers.collectVars(stmts)
		remembers.varsKnown = true
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
