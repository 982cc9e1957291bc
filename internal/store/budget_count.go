package store

import (
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/ledger"
)

// Where and when a line of the ledger counts, computed from its existing columns: additional
// columns, even computed ones, would cost something in every turn. A channel is transport:place
// without what follows a second slash, which is a part of the channel. A guild is what precedes the
// place's first slash, or the transport if there is no slash.
const (
	placeOf   = `substr(thread_id, 1, instr(thread_id, ':') + instr(substr(thread_id, instr(thread_id, ':') + 1), ':') - 1)`
	inGuild   = `substr(` + placeOf + `, instr(` + placeOf + `, '/') + 1)` // all of it if there is no slash
	channelOf = `CASE WHEN instr(` + placeOf + `, '/') > 0 AND instr(` + inGuild + `, '/') > 0
		THEN substr(thread_id, 1, instr(thread_id, '/') + instr(` + inGuild + `, '/') - 1) ELSE ` + placeOf + ` END`
	guildOf = `CASE WHEN instr(` + placeOf + `, '/') > 0 THEN substr(thread_id, 1, instr(thread_id, '/') - 1)
		ELSE substr(thread_id, 1, instr(thread_id, ':') - 1) END`
	dayOf   = `strftime('%Y-%m-%d', at / 1000000, 'unixepoch')`
	monthOf = `strftime('%Y-%m', at / 1000000, 'unixepoch')`
)

// Triggers keep the sums, so no writer of the ledger can forget them. They are created when the
// first ceiling needs a sum; an installation without budgets has none.
const (
	countNew = `CREATE TRIGGER IF NOT EXISTS ledger_count_new AFTER INSERT ON ledger
BEGIN
	` + countAdd + `SELECT scope, ` + countWhose + `, ` + countPeriod + `, ` + openNew + `, NEW.settled ` + countFrom + `;
END`
	countChange = `CREATE TRIGGER IF NOT EXISTS ledger_count_change AFTER UPDATE OF reserved, settled, how ON ledger
BEGIN
	` + countAdd + `SELECT scope, ` + countWhose + `, ` + countPeriod + `, ` + openNew + ` - CASE WHEN OLD.how = '' THEN OLD.reserved ELSE 0 END,
		NEW.settled - OLD.settled ` + countFrom + `;
END`

	countAdd    = `INSERT INTO spent (scope, whose, period, open, settled) `
	countWhose  = `CASE scope WHEN 'guild' THEN ` + guildOf + ` WHEN 'channel' THEN ` + channelOf + ` WHEN 'agent' THEN NEW.agent ELSE NEW.payer END`
	countPeriod = `CASE unit WHEN 'day' THEN ` + dayOf + ` ELSE ` + monthOf + ` END`
	openNew     = `CASE WHEN NEW.how = '' THEN NEW.reserved ELSE 0 END`
	countFrom   = `FROM counted, (SELECT NEW.thread_id AS thread_id, NEW.at AS at) WHERE true
		ON CONFLICT (scope, whose, period) DO UPDATE SET open = open + excluded.open, settled = settled + excluded.settled`

	beginCounting = `INSERT INTO counted (scope, unit) VALUES (?, ?)`
)

// readyToCount makes sure that every line is counted from now on and that no other is being
// written. there means that somebody else has begun to count meanwhile.
func readyToCount(tx database.Tx, scope ledger.Scope, unit ledger.Period) (there bool, err error) {
	if tx.OnServer() { // the server has the triggers from the beginning
		var n int
		if err := tx.Exec(lockLedger); err != nil {
			return false, err
		}
		err := tx.Row(`SELECT count(*) FROM counted WHERE scope = ? AND unit = ?`, []any{string(scope), string(unit)}, &n)
		return n > 0, err
	}
	for _, trigger := range []string{countNew, countChange} {
		if err := tx.Exec(trigger); err != nil {
			return false, err
		}
	}
	return false, nil
}

// counter returns the scope whose sums a ceiling reads. A role's ceiling applies to each person.
func counter(s ledger.Scope) ledger.Scope {
	if s == ledger.Role {
		return ledger.Person
	}
	return s
}

// columns returns the expressions for whose a line of the ledger is, and when it counts.
func columns(says *dialect, scope ledger.Scope, unit ledger.Period) (whose, period string) {
	return map[ledger.Scope]string{ledger.Guild: says.guild, ledger.Channel: says.channel, ledger.Agent: "agent", ledger.Person: "payer"}[scope],
		map[ledger.Period]string{ledger.Day: says.day, ledger.Month: says.month}[unit]
}

// count starts to keep sums of a kind, beginning with what the ledger has for the current
// period. It reads the whole ledger once. From then on every line is counted, whichever process
// writes it and whether or not that process knows of a ceiling.
func count(tx database.Tx, scope ledger.Scope, unit ledger.Period, at time.Time) error {
	column, period := columns(sayings(tx.OnServer()), scope, unit)
	if column == "" || period == "" {
		return fmt.Errorf("a ceiling on %s by %s cannot be counted", scope, unit)
	}
	if there, err := readyToCount(tx, scope, unit); err != nil || there {
		return err
	}
	err := tx.Exec(`INSERT INTO spent (scope, whose, period, open, settled)
		SELECT ?, `+column+`, `+period+`, sum(CASE WHEN how = '' THEN reserved ELSE 0 END), sum(settled)
		FROM ledger WHERE at >= ? GROUP BY 2, 3`, string(scope), database.Micros(unit.Begin(at)))
	if err != nil {
		return err
	}
	return tx.Exec(beginCounting, string(scope), string(unit))
}
