package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Scope says whose spending a ceiling counts.
type Scope string

// The scopes. A role's ceiling applies separately to each person with
// the role: it counts what that person spends.
const (
	Guild   Scope = "guild"
	Channel Scope = "channel"
	Agent   Scope = "agent"
	Person  Scope = "person"
	Role    Scope = "role"
	Task    Scope = "task"
	Run     Scope = "run" // what somebody gave one run, for it and all that it starts; in no configuration
)

// OfRuns reports whether the subjects of a scope are runs.
func (s Scope) OfRuns() bool { return s == Task || s == Run }

// Period is how long a ceiling counts before it starts again. Days and months are
// in UTC, so that every process on a home uses the same ones.
type Period string

// The periods.
const (
	Day   Period = "day"
	Month Period = "month"
	Once  Period = "once" // for tasks
)

// Name returns the period at t: "2026-11-15", "2026-11", or "" for Once. A call counts
// in the period in which it was reserved, whenever it is settled.
func (p Period) Name(t time.Time) string {
	switch p {
	case Day:
		return t.UTC().Format("2006-01-02")
	case Month:
		return t.UTC().Format("2006-01")
	default:
		return ""
	}
}

// Begin returns when the period at t began, or zero for Once.
func (p Period) Begin(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	switch p {
	case Day:
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case Month:
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	default:
		return time.Time{}
	}
}

// Ceiling is one rule: what each guild, channel, agent, person or task may spend.
type Ceiling struct {
	Scope  Scope
	Role   string // for Scope Role
	Period Period
	Most   Nanos
}

// Budget is the configuration of spending; the zero value has no ceiling.
type Budget struct {
	Ceilings []Ceiling
	Soft     float64 // the share of a ceiling at which people are asked whether to continue; 0 or 1: never
}

// Limit is a ceiling on one particular guild, channel, agent, person or run.
type Limit struct {
	Ceiling
	Subject string // a guild, a channel, an agent's name, a principal's key, a run
}

// Ceilings are the limits on one call, none of which may be exceeded.
type Ceilings struct {
	Limits []Limit
	Soft   float64
}

// ChannelOf returns the channel of a thread, as the ledger counts it: transport:place. What
// follows a second slash is part of the channel and counts as the channel.
func ChannelOf(thread chat.ThreadID) string {
	transport, place, _, _ := thread.Parts()
	if guild, rest, ok := strings.Cut(place, "/"); ok {
		channel, _, _ := strings.Cut(rest, "/")
		place = guild + "/" + channel
	}
	return transport + ":" + place
}

// GuildOf returns the guild of a thread: what precedes the first slash of its place. All places of
// a transport without a slash are one guild, for example those of the terminal.
func GuildOf(thread chat.ThreadID) string {
	channel := ChannelOf(thread)
	if guild, _, ok := strings.Cut(channel, "/"); ok {
		return guild
	}
	return thread.Transport()
}

// For returns the ceilings of a run's calls; nil if there are none.
func (b Budget) For(thread chat.ThreadID, agent string, payer chat.Principal, run string) *Ceilings {
	var out []Limit
	for _, c := range b.Ceilings {
		l := Limit{Ceiling: c}
		switch c.Scope {
		case Guild:
			l.Subject = GuildOf(thread)
		case Channel:
			l.Subject = ChannelOf(thread)
		case Agent:
			l.Subject = agent
		case Role:
			if !slices.Contains(payer.Roles, c.Role) {
				continue
			}
			l.Subject = payer.String()
		case Person:
			l.Subject = payer.String()
		case Task:
			l.Subject = run
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil
	}
	return &Ceilings{Limits: out, Soft: b.Soft}
}

// Under returns the ceilings of one call: those of the budget, and what its run and those above it may spend. A call whose price is not known
// is refused if there are any.
func (b Budget) Under(e Entry, within []Limit, price Price) (*Ceilings, error) {
	under := b.For(e.Thread, e.Agent, e.Payer, cmp.Or(e.Root, e.Run))
	if len(within) > 0 {
		if under == nil {
			under = &Ceilings{Soft: b.Soft}
		}
		under.Limits = append(under.Limits, within...)
	}
	if under != nil && !price.Known() {
		return nil, &Refusal{Stand: Stand{Limit: under.Limits[0]}, Unpriced: e.Model}
	}
	return under, nil
}

// Stand says how much of a limit is used, not counting the call in question.
type Stand struct {
	Limit
	Settled Nanos
	Open    Nanos // reserved by unsettled calls
	Asked   bool  // people were already asked in this period
}

// Used returns what counts against the limit.
func (s Stand) Used() Nanos { return s.Settled + s.Open }

// Left returns what is unused; never negative.
func (s Stand) Left() Nanos { return max(0, s.Most-s.Used()) }

// AtSoft reports whether the share is used at which people are asked. It is false for
// tasks: a task ends with its run, so there is nothing to continue.
func (s Stand) AtSoft(share float64) bool {
	return !s.Scope.OfRuns() && share > 0 && share < 1 && float64(s.Used()) >= share*float64(s.Most)
}

// Judge checks a reservation against all limits. It returns the refusal of the first limit that
// would be exceeded, or else of the first whose soft share is reached and about which people were
// not asked yet, or else nil. A call that costs nothing is never refused.
func Judge(stands []Stand, soft float64, want Nanos, at time.Time) *Refusal {
	if want <= 0 {
		return nil
	}
	var ask *Refusal
	for _, s := range stands {
		r := &Refusal{Stand: s, Want: want, When: s.Period.Name(at)}
		if want > s.Left() {
			return r
		}
		if ask == nil && !s.Asked && s.AtSoft(soft) {
			r.Soft, ask = true, r
		}
	}
	return ask
}

// ErrRefused is in every Refusal's chain.
var ErrRefused = errors.New("refused by a budget")

// Refusal says in a sentence for people which limit forbids a call.
type Refusal struct {
	Stand
	Want Nanos
	When string // the period's name
	Soft bool   // people are asked and may continue
	// Unpriced is a model without a price, so no ceiling can be checked.
	Unpriced string
}

// Unwrap makes errors.Is find ErrRefused.
func (r *Refusal) Unwrap() error { return ErrRefused }

// Error returns the sentence.
func (r *Refusal) Error() string {
	switch {
	case r.Unpriced != "":
		return fmt.Sprintf("the price of %s is not known, so %s cannot be enforced. Set one in the configuration, in US dollars for a million tokens "+
			"(0 if it is free):\nprices:\n  %s: {input: 3, output: 15}", r.Unpriced, r.Name(), r.Unpriced)
	case r.Soft:
		return fmt.Sprintf("%s is nearly used up: %s of %s. Say \"go on\" to use the rest; you will not be asked again %s.",
			r.Name(), Dollars(r.Used()), Dollars(r.Most), map[Period]string{Day: "today", Month: "this month"}[r.Period])
	default:
		text := fmt.Sprintf("%s does not allow this call: %s of %s is spent", r.Name(), Dollars(r.Settled), Dollars(r.Most))
		if r.Open > 0 {
			text += fmt.Sprintf(", %s is reserved by calls that are running", Dollars(r.Open))
		}
		return text + fmt.Sprintf(", and it may cost up to %s. %s.", Dollars(r.Want), r.remedy())
	}
}

func (r *Refusal) remedy() string {
	raise := "raise " + r.Key()
	switch r.Period {
	case Day:
		return "It resets at 00:00 UTC; or " + raise
	case Month:
		return "It resets on the first of next month (UTC); or " + raise
	default:
		return "Give it less to do at once, or " + raise
	}
}

// Key returns the ceiling's key in the configuration.
func (c Ceiling) Key() string {
	switch c.Scope {
	case Task:
		return "budgets.task"
	case Run:
		return "its budget_usd"
	case Role:
		return "budgets.role." + c.Role + "." + string(c.Period)
	default:
		return "budgets." + string(c.Scope) + "." + string(c.Period)
	}
}

// Name describes a limit for people.
func (l Limit) Name() string {
	who := string(l.Scope)
	switch l.Scope {
	case Task:
		return "the budget for one task"
	case Run:
		return "the budget of the run and what it starts"
	case Role:
		who = "everybody with the role " + l.Role
	case Agent:
		who = "agent " + l.Subject
	case Person:
		who = l.Subject
	case Guild, Channel:
		who = "this " + string(l.Scope)
	}
	return fmt.Sprintf("the budget of %s for one %s", who, l.Period)
}

// USD converts an amount to dollars, rounded, for display.
func USD(n Nanos) float64 { return float64(n) / 1e9 }

// Dollars formats money for people: in whole cents if possible, otherwise with four decimals.
func Dollars(n Nanos) string {
	if n%10_000_000 == 0 {
		return fmt.Sprintf("$%.2f", USD(n))
	}
	return fmt.Sprintf("$%.4f", USD(n))
}

// FromUSD converts a number of the configuration. If it is too large, it returns the largest amount.
func FromUSD(usd float64) Nanos {
	if n := math.Round(usd * 1e9); n < math.MaxInt64/4 {
		return Nanos(n)
	}
	return math.MaxInt64 / 4
}

// PerMillion converts a price in US dollars per million tokens to the price of one token. A price
// that is not zero gives at least one Nano, so that no price is rounded to free.
func PerMillion(usd float64) Nanos {
	if usd <= 0 {
		return 0
	}
	return max(1, FromUSD(usd/1e6))
}
