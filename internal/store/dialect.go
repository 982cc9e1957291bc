package store

// dialect is the SQL that differs between SQLite and PostgreSQL. Every other statement of the
// package is written once for both. Those use only RETURNING, ON CONFLICT with its target,
// partial indexes, integers for instants and booleans, and "?".
type dialect struct {
	// Where and when a line of the ledger counts: expressions over its thread_id and at.
	channel, guild, day, month string

	journalEnd string // how far the journal has come, over all threads
	movedSince string // threads with events written since a mark; may also return some from before it

	// noIndex precedes a column whose indexes are not wanted. Otherwise SQLite plans again for
	// each value, in search of an index that exists for one value only.
	noIndex string
}

// sayings returns the dialect.
func sayings(onServer bool) *dialect {
	if onServer {
		return &postgresSQL
	}
	return &sqliteSQL
}

// SQLite itself numbers the events over all threads, in the order of their commits, whoever
// writes them: there is one writer at a time, and no event is ever removed.
const queryJournalEnd = `SELECT coalesce(max(rowid), 0) FROM events`

var sqliteSQL = dialect{
	channel: channelOf, guild: guildOf, day: dayOf, month: monthOf,
	journalEnd: queryJournalEnd,
	movedSince: `SELECT thread_id FROM events WHERE rowid > ?`,
	noIndex:    `+`,
}

var postgresSQL = dialect{
	channel: `channel_of(thread_id)`, guild: `guild_of(thread_id)`, day: `(day_of(at) COLLATE "C")`, month: `(month_of(at) COLLATE "C")`,
	// No generated number follows the order of commits. What this transaction or a later one wrote
	// may have been invisible at the time of the mark; everything before was visible.
	journalEnd: `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`,
	movedSince: `SELECT thread_id FROM events WHERE xact >= ?`,
}

const lockLedger = `LOCK TABLE ledger IN SHARE ROW EXCLUSIVE MODE`
