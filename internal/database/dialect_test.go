package database

import "testing"

func TestArgumentsAreNumbered(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`SELECT 1`: `SELECT 1`,
		`SELECT a FROM b WHERE c = ? AND d IN (?, ?)`: `SELECT a FROM b WHERE c = $1 AND d IN ($2, $3)`,
		`SELECT '?', "a?b", 'it''s ?', ?`:             `SELECT '?', "a?b", 'it''s ?', $1`,
		`id LIKE ? ESCAPE '\' LIMIT ?`:                `id LIKE $1 ESCAPE '\' LIMIT $2`,
	} {
		if got := numberArguments(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	var texts numbered
	if a, b := texts.of(`?`), texts.of(`?`); a != "$1" || b != "$1" {
		t.Errorf("%q, %q", a, b)
	}
}
