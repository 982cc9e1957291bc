package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/ledger"
)

const cent = 10_000_000

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func TestPeriods(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 14*3600)
	for _, c := range []struct {
		at         time.Time
		day, month string
	}{
		{noon, "2026-11-15", "2026-11"},
		{time.Date(2026, 12, 1, 3, 0, 0, 0, east), "2026-11-30", "2026-11"}, // wherever the clock hangs, UTC counts
		{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), "2027-01-01", "2027-01"},
	} {
		if d, m := ledger.Day.Name(c.at), ledger.Month.Name(c.at); d != c.day || m != c.month {
			t.Errorf("%v: %s %s", c.at, d, m)
		}
		for _, p := range []ledger.Period{ledger.Day, ledger.Month} {
			begin := p.Begin(c.at)
			if begin.After(c.at) || p.Name(begin) != p.Name(c.at) || p.Name(begin.Add(-time.Microsecond)) == p.Name(c.at) {
				t.Errorf("%s of %v begins at %v", p, c.at, begin)
			}
		}
	}
}

// Only what concerns the call is held against it.
func TestFor(t *testing.T) {
	t.Parallel()
	budget := ledger.Budget{Soft: 0.8}
	for _, scope := range []ledger.Scope{ledger.Guild, ledger.Channel, ledger.Agent, ledger.Person, ledger.Task} {
		budget.Ceilings = append(budget.Ceilings, ledger.Ceiling{Scope: scope, Period: ledger.Day, Most: 1})
	}
	budget.Ceilings = append(budget.Ceilings, ledger.Ceiling{Scope: ledger.Role, Role: "guest", Period: ledger.Day, Most: 1},
		ledger.Ceiling{Scope: ledger.Role, Role: "owner", Period: ledger.Day, Most: 1})
	payer := chat.Principal{Kind: "discord", ID: "7", Roles: []string{"guest"}}
	var got []string
	for _, l := range budget.For("discord:g1/c2:t@main", "main", payer, "r1").Limits {
		got = append(got, string(l.Scope)+"="+l.Subject)
	}
	if s := strings.Join(got, " "); s != "guild=discord:g1 channel=discord:g1/c2 agent=main person=discord:7 task=r1 role=discord:7" {
		t.Error(s)
	}
	if g := ledger.GuildOf("cli:abc:t@main"); g != "cli" {
		t.Errorf("guild of the terminal: %s", g)
	}
	if (ledger.Budget{Soft: 0.8}).For("cli:a:b", "main", payer, "r") != nil {
		t.Error("ceilings without a budget")
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	stand := func(scope ledger.Scope, period ledger.Period, settled, open ledger.Nanos) ledger.Stand {
		return ledger.Stand{Limit: ledger.Limit{Ceiling: ledger.Ceiling{Scope: scope, Role: "guest", Period: period, Most: 500 * cent}, Subject: "local:ada"},
			Settled: settled, Open: open}
	}
	for name, c := range map[string]struct {
		stand ledger.Stand
		want  ledger.Nanos
		text  string
	}{
		"nothing": {stand(ledger.Person, ledger.Day, 0, 0), cent, ""},
		"exactly": {stand(ledger.Person, ledger.Day, 0, 390*cent), cent, ""},
		"free":    {stand(ledger.Person, ledger.Day, 900*cent, 0), 0, ""},
		"hard": {stand(ledger.Person, ledger.Day, 480*cent, 10*cent), 11 * cent, "the budget of local:ada for one day does not allow this call: " +
			"$4.80 of $5.00 is spent, $0.10 is reserved by calls that are running, and it may cost up to $0.11. It resets at 00:00 UTC; or raise budgets.person.day."},
		"role": {stand(ledger.Role, ledger.Month, 500*cent, 0), 1, "the budget of everybody with the role guest for one month does not allow this call: " +
			"$5.00 of $5.00 is spent, and it may cost up to $0.0000. It resets on the first of next month (UTC); or raise budgets.role.guest.month."},
		"task": {stand(ledger.Task, ledger.Once, 500*cent, 0), cent, "the budget for one task does not allow this call: " +
			"$5.00 of $5.00 is spent, and it may cost up to $0.01. Give it less to do at once, or raise budgets.task."},
		"a run": {stand(ledger.Run, ledger.Once, 500*cent, 0), cent, "the budget of the run and what it starts does not allow this call: " +
			"$5.00 of $5.00 is spent, and it may cost up to $0.01. Give it less to do at once, or raise its budget_usd."},
		"no soft for a run":  {stand(ledger.Run, ledger.Once, 490*cent, 0), cent, ""},
		"no soft for a task": {stand(ledger.Task, ledger.Once, 490*cent, 0), cent, ""},
		"soft": {stand(ledger.Agent, ledger.Day, 400*cent, 0), cent, "the budget of agent local:ada for one day is nearly used up: " +
			"$4.00 of $5.00. Say \"go on\" to use the rest; you will not be asked again today."},
	} {
		r := ledger.Judge([]ledger.Stand{c.stand}, 0.8, c.want, noon)
		switch {
		case r == nil && c.text != "":
			t.Errorf("%s: allowed", name)
		case r != nil && r.Error() != c.text:
			t.Errorf("%s: %s", name, r)
		case r != nil && !errors.Is(r, ledger.ErrRefused):
			t.Errorf("%s is no refusal", name)
		}
	}
	unpriced := &ledger.Refusal{Stand: stand(ledger.Agent, ledger.Day, 0, 0), Unpriced: "x/new"}
	for _, part := range []string{"x/new is not known", "prices:\n  x/new: {input: 3, output: 15}"} {
		if !strings.Contains(unpriced.Error(), part) {
			t.Errorf("%q misses %q", unpriced.Error(), part)
		}
	}
}

// A call is allowed exactly when no limit would be broken by it, whatever their order;
// asking comes only where nothing is broken.
func TestJudgeHoldsAll(t *testing.T) {
	t.Parallel()
	money := rapid.Int64Range(0, 1000)
	rapid.Check(t, func(t *rapid.T) {
		stands := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Stand {
			scope := rapid.SampledFrom([]ledger.Scope{ledger.Guild, ledger.Agent, ledger.Person, ledger.Task}).Draw(t, "scope")
			return ledger.Stand{Limit: ledger.Limit{Ceiling: ledger.Ceiling{Scope: scope, Period: ledger.Day, Most: money.Draw(t, "most")}},
				Settled: money.Draw(t, "settled"), Open: money.Draw(t, "open"), Asked: rapid.Bool().Draw(t, "asked")}
		}), 0, 5).Draw(t, "stands")
		soft, want := rapid.Float64Range(0, 1).Draw(t, "soft"), money.Draw(t, "want")
		breaks, asks := false, false
		for _, s := range stands {
			breaks = breaks || want > 0 && s.Settled+s.Open+want > s.Most
			asks = asks || !s.Asked && s.AtSoft(soft)
		}
		r := ledger.Judge(stands, soft, want, noon)
		switch {
		case breaks && (r == nil || r.Soft):
			t.Fatalf("broken, but %v", r)
		case !breaks && r != nil && !r.Soft:
			t.Fatalf("refused, though nothing is broken: %v", r)
		case !breaks && want > 0 && asks != (r != nil):
			t.Fatalf("asks %v, got %v", asks, r)
		}
	})
}

func TestMoneyOfPeople(t *testing.T) {
	t.Parallel()
	for usd, want := range map[float64]ledger.Nanos{0: 0, 3: 3000, 0.0375: 38, 0.0000001: 1} {
		if got := ledger.PerMillion(usd); got != want {
			t.Errorf("$%v a million: %d, want %d", usd, got, want)
		}
	}
	if ledger.FromUSD(1e300) <= 0 || ledger.FromUSD(5) != 500*cent {
		t.Error("dollars")
	}
	if (ledger.Price{}).Known() || !(ledger.Price{Free: true}).Known() || (ledger.Price{Free: true}).Worst(1e6, 1e6) != 0 {
		t.Error("a free model has a price, and it is nothing")
	}
}
