package store

// dialect is what SQLite and PostgreSQL say differently. Every other statement of the package is written once, for both: it
// keeps to RETURNING, ON CONFLICT with its target, partial indexes, integers for instants and for yes or no, and "?".
type dialect struct {
	// Where and when a line of the ledger counts: expressions over its thread_id and at.
	channel, guild, day, month string

	journalEnd string // a mark for how far the journal has come, over all threads
	movedSince string // the threads of events that were written since a mark, which may give some of before it too
	auditMark  string // a mark for how far the audit log has come, and the highest that there can be at this time
	auditSince string // which of its lines were written since a mark, which may be some of before it too
	listed     string // the texts of a JSON list, as rows

	// noIndex stands before a column whose indexes are not wanted: SQLite would plan anew for each value, in search of an index
	// that is for one value only.
	noIndex string
}
