package repl

import (
	"context"
	"fmt"

	"chorus/internal/approval"
	"chorus/internal/theme"
)

// Confirm asks one question outside a conversation and reports whether the answer is yes. The end of
// input, two unclear answers and the end of ctx count as no.
func Confirm(ctx context.Context, con Console, a approval.Approval, label string) bool {
	for _, line := range card(a, label, con.room(), con.errLook()) {
		fmt.Fprintln(con.Err, line)
	}
	discardTyped(con.In)
	in := &lines{in: con.In}
	for range 2 {
		fmt.Fprint(con.Err, con.errLook().Paint(theme.Warn, "└ ")+"[y]es  [n]o  ")
		select {
		case line, ok := <-in.next(ctx):
			if !ok {
				return false
			}
			if v, clear := readVerdict(line); clear {
				return v.ok
			}
		case <-ctx.Done():
			return false
		}
	}
	return false
}
