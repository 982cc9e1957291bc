package store

import (
	"context"
	"fmt"

	"chorus/internal/database"
)

// ArrivalsUnder returns the newest versions of what arrived under ids with this prefix.
func (db *DB) ArrivalsUnder(ctx context.Context, platform, bot, what, begins string) (map[string]int, error) {
	out := map[string]int{}
	err := db.Query(ctx, `SELECT platform_id, max(version) FROM arrivals WHERE platform = ? AND bot = ? AND kind = ?
		AND platform_id >= ? AND platform_id < ? GROUP BY platform_id`,
		[]any{platform, bot, what, begins, begins + "\U0010FFFF"}, database.Pairs(out))
	if err != nil {
		return nil, fmt.Errorf("what arrived under %s: %w", begins, err)
	}
	return out, nil
}
