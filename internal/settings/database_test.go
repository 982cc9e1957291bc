package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/app"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/settings"
)

func TestDatabasePath(t *testing.T) {
	t.Parallel()
	h := datadir.At("/h")
	for _, c := range []struct{ url, nats, want, wrong string }{
		{"", "", "/h/chorus.db", ""},
		{"sqlite:/var/lib/c.db", "", "/var/lib/c.db", ""},
		{"sqlite:///var/lib/c.db", "", "/var/lib/c.db", ""},
		{"file:other.db", "", "/h/other.db", ""},
		{"sqlite://localhost/a/../b.db", "", "/b.db", ""},
		{"sqlite://elsewhere/c.db", "", "", "another machine"},
		{"sqlite:", "", "", "path of a file"},
		{"sqlite:/a.db?mode=ro", "", "", "without parameters"},
		{"postgres://u:test-pw@h/d", "", "postgres://u@h/d", ""},
		{"postgresql://u:test-pw@h/d?sslmode=require&password=test-pw", "", "postgresql://u@h/d", ""},
		{"mysql://u:test-pw@h/d", "", "", "sqlite:PATH"},
		{"", "nats://h", "/h/chorus.db", ""},
	} {
		got, err := settings.DatabaseOf(h, &config.Bot{DatabaseURL: config.Secret(c.url), NATSURL: config.Secret(c.nats)})
		if got.String() != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q %q: %s, %v", c.url, c.nats, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "test-pw") {
			t.Errorf("%q: the error gives the password away: %v", c.url, err)
		}
	}
}

func TestDatabaseElsewhere(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "deep", "journal.db")
	env := func(name string) string {
		if name == "CHORUS_DATABASEURL" || name == "CHORUS_DATABASE_URL" {
			return "sqlite:" + other
		}
		return ""
	}
	a, err := app.Open(t.Context(), app.Options{Home: dir, Env: env, Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "chorus.db")); err == nil {
		t.Error("there is a database in the home too")
	}
}
