package shell

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/permittest"
)

func FuzzShell(f *testing.F) {
	cases, err := permittest.Corpus()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(c.Command)
	}
	for _, s := range []string{"$((", "`\\``", "${a[$(b)]}", "((a", "[[ a =~ $(b) ]]", "a <<E", "{a,{b,c}}", "$'\\x", "@(a|b)", "a() b", "!", "select x in a; do b; done", "let x=$(a)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if len(command) > 4096 {
			return
		}
		// A fuzzer does not report the input that never ends; this does.
		watch := time.AfterFunc(5*time.Second, func() { panic(fmt.Sprintf("not done with %q", command)) })
		defer watch.Stop()
		tree := Parse(command, nil)
		seen := map[int]bool{}
		whole := false
		tree.All(func(p *Part, _ int) {
			if p.offset >= 0 {
				seen[p.offset] = true
			}
			whole = whole || p.Kind == KindUnknown
		})
		if whole {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
		if err != nil {
			t.Fatalf("%q cannot be parsed (%v), and no part says so", command, err)
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && !seen[int(c.Pos().Offset())] {
				t.Fatalf("%q: the command at %d is no part", command, c.Pos().Offset())
			}
			return true
		})
	})
}
