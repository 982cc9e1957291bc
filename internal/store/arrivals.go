package store

import (
	"context"
	"database/sql"
	"fmt"
)

// ArrivalVersion is the newest version of something that arrived; -1 if it never did.
func (db *DB) ArrivalVersion(ctx context.Context, platform, bot, what, platformID string) (int, error) {
	version := -1
	err := db.query(ctx, `SELECT coalesce(max(version), -1) FROM arrivals WHERE platform = ? AND bot = ? AND kind = ? AND platform_id = ?`,
		[]any{platform, bot, what, platformID}, func(rows *sql.Rows) error { return rows.Scan(&version) })
	if err != nil {
		return 0, fmt.Errorf("version of %s %s: %w", what, platformID, err)
	}
	return version, nil
}

// Decisions are what was decided about the newest things that a bot heard, the newest first.
func (db *DB) Decisions(ctx context.Context, platform, bot string, limit int) ([]string, error) {
	var out []string
	err := db.query(ctx, `SELECT decision FROM arrivals WHERE platform = ? AND bot = ? ORDER BY at DESC LIMIT ?`,
		[]any{platform, bot, orDefault(limit, 100)}, func(rows *sql.Rows) error {
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
