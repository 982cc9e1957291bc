package repl

import (
	"context"
	"fmt"

	"chorus/internal/approval"
	"chorus/internal/theme"
)

// Confirm asks one question outside a conversation and reports a yes. The end of
// input, an unclear answer twice over and the end of ctx are a no.
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
