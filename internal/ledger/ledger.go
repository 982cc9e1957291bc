// Package ledger holds the rules of money: what a call may cost at worst, what it
// did cost, and who pays. It is pure; the store keeps the entries.
package ledger

import "chorus/internal/chat"

// Nanos is money in billionths of a US dollar, so that a cached token of the
// cheapest model ($0.01 a million) is still a whole number.
type Nanos = int64

// Price is what one token costs, in Nanos ($1 a million tokens = 1,000).
type Price struct {
	Input, Output, CacheRead, CacheWrite Nanos
	Free                                 bool // it is known to cost nothing
}

// Known reports whether there is a price at all.
func (p Price) Known() bool { return p != Price{} }

// Cost is what a usage comes to.
func (p Price) Cost(u chat.Usage) Nanos {
	return Nanos(u.Input)*p.Input + Nanos(u.Output)*p.Output +
		Nanos(u.CacheRead)*p.CacheRead + Nanos(u.CacheWrite)*p.CacheWrite
}

// Worst is the most a call can cost: all of its input written to the cache (or
// plain, if that is dearer) and every token of output it may produce.
func (p Price) Worst(input, maxOutput int) Nanos {
	return Nanos(input)*max(p.Input, p.CacheWrite) + Nanos(maxOutput)*p.Output
}

// How says where the settled amount comes from.
type How string

// The ways to settle.
const (
	Open     How = ""         // reserved, not yet settled
	ByUsage  How = "usage"    // the provider counted
	Estimate How = "estimate" // we counted what we saw
	Assumed  How = "assumed"  // the attempt was lost: the whole reservation counts as spent
)

// Entry is one model call's line, keyed by run, step and attempt. Written when
// the call is made (How Open), and once more when it is settled.
type Entry struct {
	Run      string
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
