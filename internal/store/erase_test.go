package store

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/store/blobs"
	"chorus/internal/store/search"
)

// converse writes a conversation that holds a word wherever one can be, and gives the bytes it refers to.
func converse(t *testing.T, db *DB, thread, parent chat.ThreadID, word string) []string {
	t.Helper()
	var hashes []string
	commit := func(c journal.Commit) {
		t.Helper()
		c.Thread = thread
		if _, err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{100, blobs.MaxInline + 100} {
		hash, err := db.PutBlob(t.Context(), bytes.Repeat([]byte(word+" "), size))
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	said := chat.Received{Prompt: true, Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Blocks: append(chat.TextBlocks("please say "+word+" "+strings.Repeat(word+" ", 5000)),
		chat.Image{Blob: hashes[0], MediaType: "image/png"}, chat.Image{Blob: hashes[1], MediaType: "image/png"})}
	commit(journal.Commit{Create: &journal.Thread{Parent: journal.Parent{Thread: parent}}, Events: []chat.Event{{Body: said, Who: "local:ada", Platform: "local", PlatformID: word}}})
	row, err := db.Take(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	commit(journal.Commit{Epoch: row.Epoch, Status: chat.Running, Events: []chat.Event{{Run: "run-" + word, Body: chat.RunStarted{Run: "run-" + word, Model: "demo/demo"}}, {Run: "run-" + word, Body: chat.Took{Run: "run-" + word, Seqs: []int64{1}}}}})
	commit(journal.Commit{Epoch: row.Epoch, Events: []chat.Event{{Run: "run-" + word, Body: chat.Asked{Model: "demo/demo"}}},
		Money:     []ledger.Entry{{Run: "run-" + word, Agent: "main", Payer: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Model: "demo/demo", Reserved: 5}},
		Approvals: []approval.Change{{New: &approval.Approval{ID: "ask-" + word, Thread: thread, Run: "run-" + word, Preview: word}}},
		Audit:     []approval.Audit{{Agent: "main", Run: "run-" + word, Action: "tool:bash:ls", Decision: "allow", Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada"}}}})
	for range erasePage + 10 {
		commit(journal.Commit{Epoch: row.Epoch, Events: []chat.Event{{Run: "run-" + word, Body: chat.ToolRan{Call: "c", Name: "bash", Blocks: chat.TextBlocks("result " + word)}}}})
	}
	if err := db.SaveSnapshot(t.Context(), journal.Snapshot{Thread: thread, Codec: "x", Seq: 3, State: []byte(word)}); err != nil {
		t.Fatal(err)
	}
	if err := db.SetSetting(t.Context(), "thread", string(thread), word); err != nil {
		t.Fatal(err)
	}
	if err := db.KeepAnswer(t.Context(), "local:ada", word, "route", "digest", 200, []byte(`{"session":"`+thread.Thread()+`","text":"`+word+`"}`)); err != nil {
		t.Fatal(err)
	}
	now := database.Micros(db.Now())
	err = db.Write(t.Context(), func(tx database.Tx) error {
		return errors.Join(
			tx.Exec(`INSERT INTO schedules (id, owner, owner_key, thread_id, words, said, spec, zone, catch_up, jitter, created_at, file, digest) VALUES (?, '{}', 'local:ada', ?, ?, '', '', '', '', 0, ?, '', '')`, "s-"+word, string(thread), word, now),
			tx.Exec(`INSERT INTO schedule_runs (schedule_id, due, state, seq, why, at) VALUES (?, 1, 'said', 1, ?, ?)`, "s-"+word, word, now),
			tx.Exec(`INSERT INTO processes (id, thread_id, call_key, owner, owner_key, command, dir, state, exit, why, read_to, hooks, timeout, version, started_at, ended_at)
				VALUES (?, ?, 'c', '{}', 'local:ada', ?, ?, 'exited', 0, '', 0, '[]', 0, 1, ?, ?)`, "p-"+thread.Thread(), string(thread), word, word, now, now))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.IndexNew(t.Context()); err != nil {
		t.Fatal(err)
	}
	return hashes
}

// rowsWith counts the rows of the whole database that hold a text.
func rowsWith(t *testing.T, db *DB, word string) map[string]int {
	t.Helper()
	query := `SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'goose_%'`
	if db.OnServer() {
		query = `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name NOT LIKE 'goose_%'`
	}
	var columns [][2]string
	err := db.Query(t.Context(), query, nil, func(rows *sql.Rows) error {
		var c [2]string
		err := rows.Scan(&c[0], &c[1])
		columns = append(columns, c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, c := range columns {
		// As text: PostgreSQL writes bytes in hexadecimal.
		n, err := db.Count(t.Context(), `SELECT count(*) FROM `+c[0]+` WHERE CAST(`+c[1]+` AS TEXT) LIKE ? OR CAST(`+c[1]+` AS TEXT) LIKE ?`, "%"+word+"%", "%"+hexOf(word)+"%")
		if err != nil {
			t.Fatal(c, err)
		}
		if n > 0 {
			out[c[0]+"."+c[1]] = int(n)
		}
	}
	return out
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(digits[s[i]>>4])
		b.WriteByte(digits[s[i]&15])
	}
	return b.String()
}

// What is left of an erased thread: the ids of its runs where money and decisions are.
var mayStay = []string{"ledger.run_id", "audit.run_id", "audit.hash", "audit.prev"}

func TestErasedWordsAreGone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func(Options) *DB) {
		db := open(Options{})
		const gone, child, stays chat.ThreadID = "web:ada:one@main", "web:ada:two@main", "web:ada:three@main"
		hashes := append(converse(t, db, gone, "", "heliotrope"), converse(t, db, child, gone, "heliotropechild")...)
		kept := converse(t, db, stays, "", "marigold")
		before, err := db.Spend(t.Context(), SpendFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if all, err := db.BeginErasing(t.Context(), gone); err != nil || len(all) != 0 {
			t.Fatalf("a thread that nobody deleted: %v, %v", all, err)
		}
		deleted := Deleted
		if err := db.SetThread(t.Context(), gone, ThreadChange{Listing: &deleted}); err != nil {
			t.Fatal(err)
		}
		all, err := db.BeginErasing(t.Context(), gone)
		if err != nil || !slices.Equal(all, []chat.ThreadID{gone, child}) {
			t.Fatalf("%v, %v", all, err)
		}
		if back, err := db.BringBack(t.Context(), gone, ""); back || err != nil {
			t.Errorf("it came back: %v", err)
		}
		for _, thread := range all {
			if whole, err := db.Erase(t.Context(), thread); err != nil || !whole {
				t.Fatalf("%s: %v, %v", thread, whole, err)
			}
		}
		for place, n := range rowsWith(t, db, "heliotrope") {
			if !slices.Contains(mayStay, place) {
				t.Errorf("%s still has it %d times", place, n)
			}
		}
		for _, hash := range hashes {
			if _, err := db.Blob(t.Context(), hash); err == nil {
				t.Errorf("blob %s is still there", hash)
			}
		}
		for _, hash := range kept {
			if _, err := db.Blob(t.Context(), hash); err != nil {
				t.Errorf("blob of another conversation: %v", err)
			}
		}
		if hits, err := db.Search(t.Context(), "heliotrope", search.Options{}); err != nil || len(hits) != 0 {
			t.Errorf("%d hits, %v", len(hits), err)
		}
		if hits, err := db.Search(t.Context(), "marigold", search.Options{}); err != nil || len(hits) == 0 {
			t.Errorf("others are not found any more: %v", err)
		}
		// Readers find every number, the ledger and the audit log are whole, and nobody writes there again.
		events, err := db.Events(t.Context(), gone, 0, 10)
		if err != nil || len(events) != 10 || events[0].Seq != 1 || events[0].Body.Kind() != chat.KindCleared {
			t.Errorf("%d events, %v", len(events), err)
		}
		after, err := db.Spend(t.Context(), SpendFilter{})
		if err != nil || len(after) != len(before) || after[0].Calls != before[0].Calls {
			t.Errorf("spent %+v, before %+v, %v", after, before, err)
		}
		if n, err := db.Count(t.Context(), `SELECT count(*) FROM ledger WHERE how = '' AND thread_id IN (?, ?)`, string(gone), string(child)); err != nil || n != 0 {
			t.Errorf("%d calls are open for ever, %v", n, err)
		}
		if check, err := db.VerifyAudit(t.Context(), "", nil); err != nil || check.Break != nil {
			t.Errorf("%+v, %v", check, err)
		}
		_, err = db.Commit(t.Context(), journal.Commit{Thread: gone, Create: &journal.Thread{}, Events: []chat.Event{{Body: chat.Received{Prompt: true, Blocks: chat.TextBlocks("hello")}}}})
		if !errors.Is(err, journal.ErrUnknown) {
			t.Errorf("somebody spoke in it: %v", err)
		}
		if err := db.SaveSnapshot(t.Context(), journal.Snapshot{Thread: gone, Codec: "x", Seq: 3, State: []byte("heliotrope")}); !errors.Is(err, journal.ErrUnknown) {
			t.Errorf("a snapshot was kept: %v", err)
		}
		if list, err := db.Threads(t.Context(), ThreadFilter{Children: true}); err != nil || len(list) != 1 {
			t.Errorf("%d threads are listed, %v", len(list), err)
		}
	})
}

// Every table that names threads is either erased, or has nothing in it that was said.
func TestErasingKnowsEveryTable(t *testing.T) {
	t.Parallel()
	stays := []string{"events", "event_blobs", // emptied event by event
		"threads", "ledger", "audit", "spent_days", "spent_months", // numbers, prices, what was allowed to whom
		"readers", "search_places", "memory_versions", "memory_writes", // how far somebody has come, and by whom memory was written, which is not the conversation's
		"outbox", "message_places", "tasks", // of chat platforms and projects, whose conversations cannot be deleted
		"search_docs"} // by its index
	both(t, func(t *testing.T, open func(Options) *DB) {
		db := open(Options{})
		query := `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name IN ('thread', 'thread_id')`
		if db.OnServer() {
			query = `SELECT table_name FROM information_schema.columns WHERE table_schema = current_schema() AND column_name IN ('thread', 'thread_id')`
		}
		tables, err := database.List[string](t.Context(), db.DB, query)
		if err != nil || len(tables) < 10 {
			t.Fatal(tables, err)
		}
		for _, table := range tables {
			erased := slices.ContainsFunc(erasedRows, func(s string) bool { return strings.Contains(s, " "+table+" ") })
			if !erased && !slices.Contains(stays, table) {
				t.Errorf("%s names threads: does erasing one concern it? (erase.go)", table)
			}
		}
	})
}

// A process that is killed in the middle leaves something that the next one finishes, and the file of SQLite has none of the words.
func TestErasingGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func(Options) *DB) {
		const gone chat.ThreadID = "web:ada:one@main"
		db := open(Options{})
		converse(t, db, gone, "", "heliotrope")
		deleted := Deleted
		if err := db.SetThread(t.Context(), gone, ThreadChange{Listing: &deleted}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.BeginErasing(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		// The first page is erased, and no more.
		err := db.Overwriting(t.Context(), func() error {
			return db.Write(t.Context(), func(tx database.Tx) error { _, err := db.eraseEvents(tx, gone, 1, 1+erasePage); return err })
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(rowsWith(t, db, "heliotrope")) == 0 {
			t.Fatal("nothing is left to be done")
		}
		next := open(Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
		if all, err := next.BeginErasing(t.Context(), gone); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		for range 2 { // and once more does no harm
			if whole, err := next.Erase(t.Context(), gone); err != nil || !whole {
				t.Fatal(whole, err)
			}
		}
		for place := range rowsWith(t, next, "heliotrope") {
			if !slices.Contains(mayStay, place) {
				t.Errorf("%s still has it", place)
			}
		}
		if db.OnServer() {
			return
		}
		if err := errors.Join(db.Close(), next.Close()); err != nil { // the log goes with them
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(filepath.Dir(db.Path()), "*"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err == nil && bytes.Contains(data, []byte("say heliotrope")) {
				t.Errorf("%s has the words", filepath.Base(path))
			}
		}
	})
}
