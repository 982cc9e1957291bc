package store

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"chorus/internal/database"
)

var update = flag.Bool("update", false, "write migrations/sqlite.sql anew")

// TestWholeSchema: a new file is made by one script, and has what the migrations would have given it: tables, indexes, rows, and their
// own record of what they did.
func TestWholeSchema(t *testing.T) {
	t.Parallel()
	made := func(name, whole string) string {
		t.Helper()
		schema := Schema()
		schema.Whole, schema.Finish = whole, nil
		path := filepath.Join(t.TempDir(), name)
		if err := database.MakeFile(path); err != nil {
			t.Fatal(err)
		}
		if err := database.MigrateTo(t.Context(), path, schema, schemaVersion); err != nil {
			t.Fatal(err)
		}
		return dump(t, path)
	}
	want, whole := made("steps.db", ""), wholeSchema
	if *update {
		if err := os.WriteFile("migrations/sqlite.sql", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		whole = want
	}
	if whole != want || made("whole.db", whole) != want {
		t.Error("migrations/sqlite.sql is not what the migrations come to: go test ./internal/store -run TestWholeSchema -update")
	}
}

// Every database has an identity of its own, which is made up when it is made.
var (
	identity = regexp.MustCompile(`'[0-9a-f]{32}'`)
	random   = `lower(hex(randomblob(16)))`
)

// dump writes a script that makes such a database: another identity, and migrations that ran at another time.
func dump(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	column := func(query string, args ...any) (out []string) {
		t.Helper()
		rows, err := db.QueryContext(t.Context(), query, args...)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			out = append(out, text)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	var script strings.Builder
	script.WriteString("-- What the migrations in sqlite come to; written by a test (../whole_test.go).\n\n")
	for _, name := range []string{"application_id", "user_version"} {
		fmt.Fprintf(&script, "PRAGMA %s = %s;\n", name, column("PRAGMA " + name)[0])
	}
	for _, statement := range column(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY type <> 'table', type, name`) {
		script.WriteString("\n" + statement + ";\n")
	}
	for _, table := range column(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`) {
		names := column(`SELECT name FROM pragma_table_info(?) WHERE NOT (? = 'goose_db_version' AND name = 'tstamp') ORDER BY cid`, table, table)
		values := "quote(" + strings.Join(names, ") || ', ' || quote(") + ")"
		for _, row := range column(`SELECT ` + values + ` FROM ` + table + ` ORDER BY ` + strings.Join(names, ", ")) {
			row = identity.ReplaceAllString(row, random)
			fmt.Fprintf(&script, "\nINSERT INTO %s (%s) VALUES (%s);", table, strings.Join(names, ", "), row)
		}
	}
	script.WriteString("\n")
	return script.String()
}
