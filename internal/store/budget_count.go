package store

import (
	"fmt"
	"time"

	"chorus/internal/ledger"
)

// The sums are kept by triggers, so no way of writing the ledger can forget them. They
// are made when the first ceiling needs a sum: an install without budgets has none, and
// its turns pay for none.
const (
	countNew = `CREATE TRIGGER IF NOT EXISTS ledger_count_new AFTER INSERT ON ledger
BEGIN
	INSERT INTO spent (scope, whose, period, open, settled)
	SELECT scope, ` + countWhose + `, ` + countPeriod + `, ` + openNew + `, NEW.settled FROM counted WHERE true` + countAdd + `;
END`
	countChange = `CREATE TRIGGER IF NOT EXISTS ledger_count_change AFTER UPDATE OF reserved, settled, how ON ledger
BEGIN
	INSERT INTO spent (scope, whose, period, open, settled)
	SELECT scope, ` + countWhose + `, ` + countPeriod + `, ` + openNew + ` - CASE WHEN OLD.how = '' THEN OLD.reserved ELSE 0 END,
		NEW.settled - OLD.settled FROM counted WHERE true` + countAdd + `;
END`

	countWhose  = `CASE scope WHEN 'guild' THEN NEW.guild WHEN 'channel' THEN NEW.channel WHEN 'agent' THEN NEW.agent ELSE NEW.payer END`
	countPeriod = `CASE unit WHEN 'day' THEN NEW.day ELSE NEW.month END`
	openNew     = `CASE WHEN NEW.how = '' THEN NEW.reserved ELSE 0 END`
	countAdd    = ` ON CONFLICT (scope, whose, period) DO UPDATE SET open = open + excluded.open, settled = settled + excluded.settled`

	beginCounting = `INSERT INTO counted (scope, unit) VALUES (?, ?)`
)

// counter is the scope whose sums a ceiling reads: a role's is on each person.
func counter(s ledger.Scope) ledger.Scope {
	if s == ledger.Role {
		return ledger.Person
	}
	return s
}

// columns are where the ledger names whose a line is.
var columns = map[ledger.Scope]string{ledger.Guild: "guild", ledger.Channel: "channel", ledger.Agent: "agent", ledger.Person: "payer"}

// count begins to keep sums of a kind, with what the ledger has for the period that
// is on. It reads the whole ledger, once; from then on every line adds itself,
// whichever process writes it and whether that one knows of a ceiling or not.
func count(w *writer, scope ledger.Scope, unit ledger.Period, at time.Time) error {
	column, ok := columns[scope]
	if !ok || unit != ledger.Day && unit != ledger.Month {
		return fmt.Errorf("a ceiling on %s by %s cannot be counted", scope, unit)
	}
	for _, trigger := range []string{countNew, countChange} {
		if err := w.exec(trigger); err != nil {
			return err
		}
	}
	err := w.exec(`INSERT INTO spent (scope, whose, period, open, settled)
		SELECT ?, `+column+`, `+string(unit)+`, sum(CASE WHEN how = '' THEN reserved ELSE 0 END), sum(settled)
		FROM ledger WHERE at >= ? GROUP BY 2, 3`, string(scope), micros(unit.Begin(at)))
	if err != nil {
		return err
	}
	return w.exec(beginCounting, string(scope), string(unit))
}
