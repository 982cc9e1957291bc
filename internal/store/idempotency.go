package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"chorus/internal/database"
)

// KeepAnswersFor is how long an answer is repeated: as long as any client
// retries. After that, a key may be used for something else.
const KeepAnswersFor = 24 * time.Hour

// RecallAnswer returns the answer that a request with this key got, and the digest of
// that request. Status 0 means that nobody asked in the last day.
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

// KeepAnswer stores an answer so that it can be repeated. The first answer is kept, whoever
// else was answered meanwhile. It also removes some expired answers.
func (db *DB) KeepAnswer(ctx context.Context, principal, key, route, digest string, status int, body []byte) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		now := db.Now()
		old := database.Micros(now.Add(-KeepAnswersFor))
		// Two are removed for each new one, so the table shrinks and nobody waits for it.
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
