package checks_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/doctor"
	"chorus/internal/doctor/checks"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/store"
	"chorus/internal/store/documents"
	"chorus/internal/store/storetest"
)

// A server that takes the call and says nothing holds the report up for a second.
func TestDeafOllama(t *testing.T) {
	t.Parallel()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	p := checks.NewChecker(t.Context(), checks.Options{Home: filepath.Join(t.TempDir(), "none"), Env: apptest.Env("OLLAMA_HOST", deaf.Addr().String())}, checks.Examination{})
	found := p.Local(t.Context())
	if len(found) != 1 || found[0].Mark != doctor.Warn || !strings.Contains(found[0].Detail, "does not answer in 1s") {
		t.Errorf("ollama: %+v", found)
	}
}

// What isolation and limits are worth depends on whether any sandbox works.
func TestWallsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	marks := func(facts ...isolate.Fact) string {
		var out []string
		for _, f := range checks.JudgeSandbox(facts) {
			out = append(out, f.Name+" "+string(f.Mark))
		}
		return strings.Join(out, ", ")
	}
	no := []isolate.Fact{{Name: "sandbox bwrap", OK: false, Detail: "none", Fix: "get it"}, {Name: "sandbox auto", OK: false, Detail: "host", Fix: "get bwrap"}, {Name: "sandbox docker", OK: false, Detail: "none", Fix: "get it"}, {Name: "limit memory", OK: false, Detail: "no cgroup", Fix: ""}}
	if got := marks(no...); got != "bwrap note, auto warn, docker note, limit memory note" {
		t.Errorf("without a sandbox: %s", got)
	}
	yes := []isolate.Fact{{Name: "sandbox bwrap", OK: true, Detail: "works", Fix: ""}, {Name: "sandbox auto", OK: true, Detail: "bwrap", Fix: ""}, {Name: "sandbox docker", OK: false, Detail: "none", Fix: "get it"}, {Name: "limit memory", OK: false, Detail: "no cgroup", Fix: ""}}
	if got := marks(yes...); got != "bwrap ok, auto ok, docker note, limit memory warn" {
		t.Errorf("with a sandbox: %s", got)
	}
}

func TestLocksSayWhoIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	locks := filepath.Join(dir, "locks")
	if err := os.Mkdir(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	const gone = "2147483646" // more than any system gives
	for name, pid := range map[string]string{"a.lock": "1", "b.lock": gone, "c.lock": "", "d.lock": "-1"} {
		if err := os.WriteFile(filepath.Join(locks, name), []byte(pid), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := checks.NewChecker(t.Context(), checks.Options{Home: dir, Env: apptest.Env()}, checks.Examination{})
	found := p.Locks(t.Context())
	if len(found) != 2 || found[0].Detail != "1 running, by process 1" || !strings.HasPrefix(found[1].Detail, "1 of processes that have ended") {
		t.Errorf("locks: %+v", found)
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/b-c_d.e": "/a/b-c_d.e", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "": "''", "/$(x)": "'/$(x)'", "/é": "'/é'"} {
		if got := checks.Quoted(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}

func TestSweepIsDoneOnceADay(t *testing.T) {
	t.Parallel()
	dir := storetest.FreshHome(t)
	ctx := t.Context()
	put := func(at time.Time, text string) string {
		t.Helper()
		db, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "chorus.db"), Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		hash, err := db.PutBlob(ctx, []byte(text))
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	now := time.Now()
	old, young := put(now.Add(-48*time.Hour), "old"), put(now, "young")
	a, err := app.Open(ctx, app.Options{Home: dir, Env: apptest.Env()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	sweep := func(at time.Time, want int) {
		t.Helper()
		if n, err := a.Checks.SweepIfDue(ctx, at); n != want || err != nil {
			t.Errorf("sweepIfDue = %d, %v; want %d", n, err, want)
		}
	}
	sweep(now, 1)
	if _, err := a.DB.Blob(ctx, old); err == nil {
		t.Error("the old bytes are still there")
	}
	if _, err := a.DB.Blob(ctx, young); err != nil {
		t.Errorf("the young bytes: %v", err)
	}
	put(now.Add(-48*time.Hour), "another")
	sweep(now.Add(23*time.Hour), 0) // somebody did it today
	sweep(now.Add(25*time.Hour), 1)
	put(now.Add(-48*time.Hour), "a third")
	sweep(now.Add(-time.Hour), 1) // a clock that was wrong does not stop it for ever
}

// A file that was attached waits for its message longer than a sweep does, also on machines that have only its bytes.
func TestSweepLeavesAttachedFiles(t *testing.T) {
	t.Parallel()
	const thread = chat.ThreadID("web:main:one@chorus")
	for age, kept := range map[time.Duration]bool{48 * time.Hour: true, 31 * 24 * time.Hour: false} {
		dir := storetest.FreshHome(t)
		before, err := app.Open(t.Context(), app.Options{Home: dir, Env: apptest.Env(), Now: func() time.Time { return time.Now().Add(-age) }})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := before.Service.StoreAttachment(t.Context(), thread, "data.bin", strings.NewReader("bytes"))
		files := before.Setup.Attachments(thread)
		if err := errors.Join(err, before.Close(), os.RemoveAll(files)); err != nil {
			t.Fatal(err)
		}
		a, err := app.Open(t.Context(), app.Options{Home: dir, Env: apptest.Env()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Checks.SweepIfDue(t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
		if _, err := a.Service.Attached(t.Context(), thread, stored.ID, a.Shared); (err == nil) != kept {
			t.Errorf("after %s: %v", age, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What a killed process left of a context is noted and removed; one that somebody is just saving stays.
func TestFixRemovesWhatIsLeftOfContexts(t *testing.T) {
	t.Parallel()
	dir := storetest.FreshHome(t)
	begin := func(at time.Time, id string) string {
		t.Helper()
		db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "chorus.db"), Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "agents", "main", "sessions", id+".json")
		_, put := documents.New(db).Put(t.Context(), "contexts/"+id+".json", []byte("text"), 0, "")
		if err := errors.Join(put, db.BeginContext(t.Context(), id, file), os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("text"), 0o600), db.Close()); err != nil {
			t.Fatal(err)
		}
		return file
	}
	old, young := begin(time.Now().Add(-2*time.Hour), "old"), begin(time.Now(), "young")
	o := checks.Options{Home: dir, Env: apptest.Env()}
	about := func(list []doctor.Finding) (out []string) {
		for _, f := range list {
			if f.Name == "saved contexts" {
				out = append(out, string(f.Mark)+" "+f.Detail+" "+f.Fix)
			}
		}
		return out
	}
	examine := func() (out []string) {
		for _, section := range checks.Examine(t.Context(), o, checks.Examination{}).Sections {
			out = append(out, about(section.Findings)...)
		}
		return out
	}
	if got := examine(); len(got) != 1 || !strings.HasPrefix(got[0], "note parts of 1 ") || !strings.HasSuffix(got[0], "chorus doctor --fix") {
		t.Errorf("found: %q", got)
	}
	if got := about(checks.Fix(t.Context(), o, false)); len(got) != 1 || !strings.HasPrefix(got[0], "ok removed what was left of 1 ") {
		t.Errorf("fixed: %q", got)
	}
	if got := append(examine(), about(checks.Fix(t.Context(), o, false))...); len(got) != 0 {
		t.Errorf("after it: %q", got)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("what is being saved: %v", err)
	}
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "chorus.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for id, there := range map[string]bool{"old": false, "young": true} {
		if text, err := documents.New(db).Get(t.Context(), "contexts/"+id+".json"); err != nil || text.There() != there {
			t.Errorf("the text of the %s one: %+v, %v", id, text, err)
		}
	}
}

func TestDaily(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var at []time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			checks.Daily(ctx, func(context.Context) { at = append(at, time.Since(began)) })
		}()
		time.Sleep(2*time.Hour + 2*time.Minute)
		cancel()
		<-done
		want := []time.Duration{checks.SweepFirst, checks.SweepFirst + time.Hour, checks.SweepFirst + 2*time.Hour}
		if len(at) != 3 || at[0] != want[0] || at[1] != want[1] || at[2] != want[2] {
			t.Errorf("at %v, want %v", at, want)
		}
	})
}
