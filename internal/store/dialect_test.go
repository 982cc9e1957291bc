package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/store/pgtest"
)

// both runs a test on each dialect. The function that it is given opens one more handle on the same store, as another
// process or node would.
func both(t *testing.T, test func(t *testing.T, open func(Options) *DB)) {
	t.Helper()
	for _, where := range []string{"SQLite", "PostgreSQL"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			var at Options
			if where == "SQLite" {
				at.Path = filepath.Join(t.TempDir(), "chorus.db")
			} else {
				at.URL = pgtest.Database(t)
			}
			test(t, func(o Options) *DB {
				t.Helper()
				o.Path, o.URL = at.Path, at.URL
				db, err := Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := db.Close(); err != nil {
						t.Error(err)
					}
				})
				return db
			})
		})
	}
}

// What one dialect has and the other has not, and why.
var onlyPostgres = []string{
	"audit.xact", "events.xact", // SQLite numbers them by itself, in the order of their commits
	"search_docs.agent", "search_docs.at", "search_docs.kind", "search_docs.seq", "search_docs.text", "search_docs.thread", "search_docs.who", "search_docs.words",
	"search_places.seq", "search_places.thread", // SQLite's index is a file of its own
}

// Both dialects have the same tables with the same columns, and from the first migration of PostgreSQL on the same numbers.
func TestDialectsHaveOneSchema(t *testing.T) {
	t.Parallel()
	numbers := func(files fs.FS) (out []int) {
		found, err := database.Migrations(files)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			out = append(out, m.Version)
		}
		return out
	}
	lite, pg := numbers(migrationsFor("sqlite")), numbers(migrationsFor("postgres"))
	if want := lite[slices.Index(lite, pg[0]):]; !slices.Equal(pg, want) {
		t.Errorf("migrations/postgres has the numbers %v, migrations/sqlite %v: each new one stands in both folders", pg, want)
	}
	var mu sync.Mutex
	columns := map[string][]string{}
	both(t, func(t *testing.T, open func(Options) *DB) {
		db := open(Options{})
		query := `SELECT m.name || '.' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'goose_%'`
		if db.OnServer() {
			query = `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name NOT LIKE 'goose_%'`
		}
		var found []string
		err := db.Query(t.Context(), query, nil, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			found = append(found, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		t.Logf("%d columns", len(found))
		mu.Lock()
		defer mu.Unlock()
		columns[t.Name()[strings.LastIndex(t.Name(), "/")+1:]] = found
	})
	t.Cleanup(func() { // when both have run
		if columns["PostgreSQL"] == nil {
			return // there is no server here
		}
		want := append(slices.Clone(columns["SQLite"]), onlyPostgres...)
		slices.Sort(want)
		for _, name := range want {
			if !slices.Contains(columns["PostgreSQL"], name) {
				t.Errorf("PostgreSQL has no %s", name)
			}
		}
		for _, name := range columns["PostgreSQL"] {
			if !slices.Contains(want, name) {
				t.Errorf("SQLite has no %s", name)
			}
		}
	})
}

// Texts that PostgreSQL refuses are cleaned, and found under the same words again.
func TestTextsThatAreNone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func(Options) *DB) {
		db := open(Options{})
		for i, text := range []string{"a\x00b", "broken \xff\xfe", "\x00"} {
			scope := fmt.Sprint("scope", i)
			if err := db.SetSetting(t.Context(), scope, text, text); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if got, err := db.Setting(t.Context(), scope, text); err != nil || got != text && got != database.CleanText(text) {
				t.Errorf("%q came back as %q, %v", text, got, err)
			}
			say(t, db, text)
		}
	})
}

// Where the password of a database could be told, it is not.
func TestPasswordsAreNotTold(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, address := range []string{
		"postgres://chorus:" + secret + "@127.0.0.1:1/chorus",
		"postgres://chorus:" + secret + "@127.0.0.1:1/chorus?sslmode=nonsense",
		"postgres://chorus:" + secret + "@host:port/%zz",
		"postgres://chorus:" + secret + "%@127.0.0.1:1/chorus?password=" + secret,
		"postgres://127.0.0.1:1/chorus?user=u&password=" + secret,
		"mysql://chorus:" + secret + "@127.0.0.1/chorus",
	} {
		_, err := Open(t.Context(), Options{URL: address, MaxWait: 1})
		if err == nil {
			t.Fatalf("%s was opened", address)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %q", err, err, err), secret) || strings.Contains(database.RedactURL(address), secret) {
			t.Errorf("told: %v", err)
		}
		t.Log(err)
	}
}

// Words that are taken away are gone from their event, the title and the bytes that only they needed.
func TestForgettingOnBoth(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func(Options) *DB) {
		db := open(Options{})
		const thread = chat.ThreadID("cli:home:one@main")
		blob := chat.NewBlob([]byte(strings.Repeat("picture", 20_000)))
		_, err := db.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{}, Blobs: []chat.Blob{blob}, Events: []chat.Event{
			{Body: chat.Received{Blocks: chat.Blocks{chat.Text{Text: "a secret"}, chat.Image{Blob: blob.Hash}}, Prompt: true}}}})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := db.Blob(t.Context(), blob.Hash); err != nil || len(data) != len(blob.Data) {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		if _, err := db.Commit(t.Context(), journal.Commit{Thread: thread, Events: []chat.Event{{Body: chat.Deleted{Seq: 1, Forget: true}}}}); err != nil {
			t.Fatal(err)
		}
		events, err := db.Events(t.Context(), thread, 0, 10)
		if err != nil || len(events) != 2 || !events[0].Body.(chat.Received).Forgotten {
			t.Errorf("%+v, %v", events, err)
		}
		if row, err := db.Thread(t.Context(), thread); err != nil || row.Title != "(deleted)" || row.Waiting != 0 {
			t.Errorf("%+v, %v", row, err)
		}
		if _, err := db.Blob(t.Context(), blob.Hash); !errors.Is(err, journal.ErrUnknown) {
			t.Errorf("the bytes: %v", err)
		}
	})
}

// How far each kind of budget is used, and that the room was asked at a soft limit.
func TestStandingOnBoth(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func(Options) *DB) {
		db := open(Options{})
		const thread = chat.ThreadID("discord:guild/channel/corner:x@main")
		ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
		r := &purse{id: "r", row: payingThread(t, db, thread), agent: "main", payer: ada}
		scopes := map[ledger.Scope]string{ledger.Guild: "discord:guild", ledger.Channel: "discord:guild/channel", ledger.Agent: "main", ledger.Person: ada.String(), ledger.Task: "r"}
		budget := ledger.Budget{Soft: 0.5}
		var limits []ledger.Limit
		for scope := range scopes {
			for _, period := range []ledger.Period{ledger.Day, ledger.Month} {
				budget.Ceilings = append(budget.Ceilings, ledger.Ceiling{Scope: scope, Period: period, Most: 100})
				limits = append(limits, ledger.Limit{Ceiling: ledger.Ceiling{Scope: scope, Period: period, Most: 100}, Subject: scopes[scope]})
			}
		}
		c := r.commit(ledger.Entry{Step: 1, Attempt: 1, Reserved: 40})
		c.Ceilings = budget.For(thread, "main", ada, "r")
		if _, err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		stands, err := db.Standing(t.Context(), limits)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stands {
			if s.Open != 40 || s.Settled != 0 {
				t.Errorf("%s of %s by %s: %d open, %d settled", s.Scope, s.Subject, s.Period, s.Open, s.Settled)
			}
		}
		c = r.commit(ledger.Entry{Step: 1, Attempt: 1, Reserved: 40, How: ledger.ByUsage, Settled: 60})
		if _, err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c = r.commit(ledger.Entry{Step: 2, Attempt: 1, Reserved: 50})
		c.Ceilings = budget.For(thread, "main", ada, "r")
		if _, err := db.Commit(t.Context(), c); !errors.Is(err, journal.ErrBudget) {
			t.Errorf("60 spent, 50 wanted of 100: %v", err)
		}
	})
}
