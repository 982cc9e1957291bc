package database

import (
	"strings"
	"testing"
)

func TestCutMigration(t *testing.T) {
	t.Parallel()
	up, down, err := cutMigration("-- +goose Up\n-- +goose StatementBegin\nCREATE TABLE a (b);\n-- +goose StatementEnd\n\n-- +goose Down\nDROP TABLE a;\n")
	if err != nil || !strings.Contains(up, "CREATE") || strings.Contains(up, "DROP") || down != "DROP TABLE a;\n" {
		t.Errorf("%q, %q, %v", up, down, err)
	}
	for name, text := range map[string]string{
		"no mark":        "CREATE TABLE a (b);\n",
		"text before it": "CREATE TABLE a (b);\n-- +goose Up\n-- +goose Down\n",
		"no way back":    "-- +goose Up\nCREATE TABLE a (b);\n",
		"down twice":     "-- +goose Up\n-- +goose Down\nx;\n-- +goose Down\n",
		"no transaction": "-- +goose Up\n-- +goose NO TRANSACTION\nVACUUM;\n-- +goose Down\n",
		"variables":      "-- +goose Up\n-- +goose ENVSUB ON\nSELECT '$HOME';\n-- +goose Down\n",
	} {
		if up, down, err := cutMigration(text); err == nil {
			t.Errorf("%s: %q, %q", name, up, down)
		}
	}
}
