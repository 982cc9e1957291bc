package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"chorus/internal/database"
)

// KeepAnswersFor is how long an answer is given again: as long as any client keeps
// trying, and then a key may be used for something else.
const KeepAnswersFor = 24 * time.Hour

// RecallAnswer gives what a request with this key was answered, and the digest of
// that request; status 0: nobody asked in the last day.
func (db *DB) RecallAnswer(ctx context.Context, principal, key, route string) (digest string, status int, body []byte, err error) {
	err = db.Query(ctx, `SELECT digest, status, body FROM kept_answers WHERE principal = ? AND key = ? AND route = ? AND at > ?`,
		[]any{principal, key, route, database.Micros(db.Now().Add(-KeepAnswersFor))}, func(rows *sql.Rows) error {
			return rows.Scan(&digest, &status, &body)
		})
	if err != nil {
		return "", 0, nil, fmt.Errorf("recall the answer to %s: %w", route, err)
	}
	return digest, status, body, nil
}

// KeepAnswer keeps an answer to be given again. The first one stays, whoever else was
// answered meanwhile. Some that are too old leave on the way.
func (db *DB) KeepAnswer(ctx context.Context, principal, key, route, digest string, status int, body []byte) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		now := db.Now()
		old := database.Micros(now.Add(-KeepAnswersFor))
		// Two leave for each that comes, so the table shrinks and nobody waits for it.
		if err := tx.Exec(`DELETE FROM kept_answers WHERE (principal, key, route) IN
			(SELECT principal, key, route FROM kept_answers WHERE at <= ? ORDER BY at LIMIT 2)`, old); err != nil {
			return err
		}
		return tx.Exec(`INSERT INTO kept_answers (principal, key, route, digest, status, media, body, at)
			VALUES (?, ?, ?, ?, ?, 'application/json', ?, ?)
			ON CONFLICT (principal, key, route) DO UPDATE SET digest = excluded.digest, status = excluded.status,
			body = excluded.body, at = excluded.at WHERE kept_answers.at <= ?`,
			principal, key, route, digest, status, string(body), database.Micros(now), old)
	})
	if err != nil {
		return fmt.Errorf("keep the answer to %s: %w", route, err)
	}
	return nil
}
