package ledger

import (
	"strconv"
	"strings"

	"chorus/internal/chat"
)

// Within returns what a run and those above it may spend, each with everything below it, the topmost first:
// transactions lock them in this order, so that two of one task never wait for each other.
func Within(run string, t chat.Terms) (out []Limit) {
	for part := range strings.SplitSeq(Below(run, t), ",") {
		name, most, _ := strings.Cut(part, "=")
		if n, err := strconv.ParseInt(most, 10, 64); err == nil && n > 0 {
			out = append(out, Limit{Subject: name, Ceiling: Ceiling{Scope: Run, Period: Once, Most: n}})
		}
	}
	return out
}

// Below returns the limits above the runs that a run starts: its own and those above it.
func Below(run string, t chat.Terms) string {
	if t.MaxCost <= 0 {
		return t.Above
	}
	return strings.TrimPrefix(t.Above+","+run+"="+strconv.FormatInt(t.MaxCost, 10), ",")
}
