package store

// dialect is what SQLite and PostgreSQL say differently. Every other statement of the package is written once, for both: it
// keeps to RETURNING, ON CONFLICT with its target, partial indexes, integers for instants and for yes or no, and "?".
type dialect struct {
	// Where and when a line of the ledger counts: expressions over its thread_id and at.
	channel, guild, day, month string

	journalEnd string // a mark for how far the journal has come, over all threads
	movedSince string // the threads of events that were written since a mark, which may give some of before it too

	// noIndex stands before a column whose indexes are not wanted: SQLite would plan anew for each value, in search of an index
	// that is for one value only.
	noIndex string
}

// sayings is what the one or the other says.
func sayings(onServer bool) *dialect {
	if onServer {
		return &postgresSQL
	}
	return &sqliteSQL
}

// Events are numbered over all threads by SQLite itself, in the order of their commits, whoever makes them: there is one writer
// at a time, and no event ever leaves.
const queryJournalEnd = `SELECT coalesce(max(rowid), 0) FROM events`

var sqliteSQL = dialect{
	channel: channelOf, guild: guildOf, day: dayOf, month: monthOf,
	journalEnd: queryJournalEnd,
	movedSince: `SELECT thread_id FROM events WHERE rowid > ?`,
	noIndex:    `+`,
}

var postgresSQL = dialect{
	channel: `channel_of(thread_id)`, guild: `guild_of(thread_id)`, day: `(day_of(at) COLLATE "C")`, month: `(month_of(at) COLLATE "C")`,
	// No number that is given out follows the order of the commits. Whatever this transaction or a later one wrote may not
	// have been seen at the time of the mark; everything before it was.
	journalEnd: `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`,
	movedSince: `SELECT thread_id FROM events WHERE xact >= ?`,
}

const lockLedger = `LOCK TABLE ledger IN SHARE ROW EXCLUSIVE MODE`
