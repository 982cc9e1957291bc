// Package ledger computes money: what a call may cost at most, what it did cost, and which
// budget it counts against. It has no state; the store keeps the entries.
package ledger

import "chorus/internal/chat"

// Nanos is money in billionths of a US dollar, so that a cached token of the
// cheapest model ($0.01 a million) is still a whole number.
type Nanos = int64

// Price is what one token costs, in Nanos ($1 a million tokens = 1,000).
type Price struct {
	Input, Output, CacheRead, CacheWrite Nanos
	Free                                 bool // known to cost nothing
}

// Known reports whether there is a price.
func (p Price) Known() bool { return p != Price{} }

// Cost returns the price of a usage.
func (p Price) Cost(u chat.Usage) Nanos {
	return Nanos(u.Input)*p.Input + Nanos(u.Output)*p.Output +
		Nanos(u.CacheRead)*p.CacheRead + Nanos(u.CacheWrite)*p.CacheWrite
}

// Worst returns the most a call can cost: all of its input written to the cache (or plain, if
// that is more expensive) and every token of output that it may produce.
func (p Price) Worst(input, maxOutput int) Nanos {
	return Nanos(input)*max(p.Input, p.CacheWrite) + Nanos(maxOutput)*p.Output
}

// How says where the settled amount comes from.
type How string

// The ways to settle.
const (
	Open     How = ""         // reserved, not yet settled
	ByUsage  How = "usage"    // the provider counted
	Estimate How = "estimate" // counted from what was received
	Assumed  How = "assumed"  // the attempt was lost, so the whole reservation counts as spent
)

// Entry is one request to a model, identified by run, step and attempt. It is written
// when the request is made (How Open), and again when it is settled.
type Entry struct {
	Run      string
	Root     string // the topmost run, if an agent started this one; "" if it is the top itself
	Step     int
	Attempt  int
	Thread   chat.ThreadID
	Agent    string
	Payer    chat.Principal
	Model    string
	Reserved Nanos
	Settled  Nanos
	How      How
	Usage    chat.Usage
}
