package store

import (
	"context"
	"database/sql"
	"fmt"

	"chorus/internal/database"
)

// ArrivalsUnder are the newest versions of what arrived under ids that begin alike.
func (db *DB) ArrivalsUnder(ctx context.Context, platform, bot, what, begins string) (map[string]int, error) {
	out := map[string]int{}
	err := db.Query(ctx, `SELECT platform_id, max(version) FROM arrivals WHERE platform = ? AND bot = ? AND kind = ?
		AND platform_id >= ? AND platform_id < ? GROUP BY platform_id`,
		[]any{platform, bot, what, begins, begins + "\U0010FFFF"}, func(rows *sql.Rows) error {
			var id string
			var version int
			err := rows.Scan(&id, &version)
			out[id] = version
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("what arrived under %s: %w", begins, err)
	}
	return out, nil
}

// Decisions are what was decided about the newest things that a bot heard, the newest first.
func (db *DB) Decisions(ctx context.Context, platform, bot string, limit int) ([]string, error) {
	var out []string
	err := db.Query(ctx, `SELECT decision FROM arrivals WHERE platform = ? AND bot = ? ORDER BY at DESC LIMIT ?+0`,
		[]any{platform, bot, database.Limit(limit, 100)}, func(rows *sql.Rows) error {
			var one string
			err := rows.Scan(&one)
			out = append(out, one)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("decisions of %s:%s: %w", platform, bot, err)
	}
	return out, nil
}
