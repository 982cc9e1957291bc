package documents_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"chorus/internal/database"
	"chorus/internal/digest"
	"chorus/internal/documents"
	"chorus/internal/store"
	tables "chorus/internal/store/documents"
	"chorus/internal/store/pgtest"
)

// onBoth runs a test on a file and on a server.
func onBoth(t *testing.T, test func(t *testing.T, database string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "chorus.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.Database(t))
	})
}

func open(t *testing.T, at string) *tables.Documents {
	t.Helper()
	o := store.Options{Path: at, Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }}
	if database.IsPostgres(at) {
		o.Path, o.URL = "", at
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return tables.New(db)
}

func names(heads []documents.Head) (out []string) {
	for _, h := range heads {
		out = append(out, fmt.Sprintf("%s v%d #%d %v", h.Name, h.Version, h.Seq, h.There()))
	}
	return out
}

func same(t *testing.T, got []documents.Head, want ...string) {
	t.Helper()
	if fmt.Sprint(names(got)) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", names(got), want)
	}
}

// A document is changed on the version that somebody saw, and not otherwise; every change has its number.
func TestVersions(t *testing.T) { onBoth(t, versions) }

func versions(t *testing.T, path string) {
	a, b := open(t, path), open(t, path) // two machines
	ctx := t.Context()
	must := func(_ documents.Head, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	moved := func(_ documents.Head, err error) {
		t.Helper()
		if !errors.Is(err, documents.ErrMoved) {
			t.Errorf("%v, want ErrMoved", err)
		}
	}
	if d, err := a.Get(ctx, "settings.json"); err != nil || d.Version != 0 || d.There() {
		t.Errorf("before the first: %+v (%v)", d, err)
	}
	must(a.Put(ctx, "settings.json", []byte("one\x00\xff"), 0, "ada"))
	moved(b.Put(ctx, "settings.json", []byte("other"), 0, "bob"))
	must(b.Put(ctx, "guilds/1.json", nil, 0, "bob"))
	must(b.Put(ctx, "settings.json", []byte("two"), 1, "bob"))
	moved(a.Put(ctx, "settings.json", []byte("three"), 1, "ada"))
	moved(a.Delete(ctx, "settings.json", 1, "ada"))
	moved(a.Delete(ctx, "nothing", 3, "ada"))
	if d, err := a.Get(ctx, "settings.json"); err != nil || string(d.Body) != "two" || d.Version != 2 || d.Digest != digest.Of("two") {
		t.Errorf("%+v (%v)", d, err)
	}
	last, err := a.Last(ctx)
	if err != nil || last != 3 {
		t.Errorf("last change %d (%v); one that failed has no number", last, err)
	}
	must(a.Delete(ctx, "settings.json", 2, "ada"))
	list, err := b.Changed(ctx, last)
	if err != nil {
		t.Fatal(err)
	}
	same(t, list, "settings.json v3 #4 false")
	must(b.Put(ctx, "settings.json", []byte("back"), 3, "bob"))
	if list, err = a.List(ctx, ""); err != nil {
		t.Fatal(err)
	}
	same(t, list, "guilds/1.json v1 #2 true", "settings.json v4 #5 true")
	if list, err = a.List(ctx, "guilds/"); err != nil {
		t.Fatal(err)
	}
	same(t, list, "guilds/1.json v1 #2 true")
	versions, err := a.Versions(ctx, "settings.json")
	if err != nil || len(versions) != 4 || versions[0].By != "bob" || versions[1].Digest != "" || versions[3].By != "ada" || versions[3].At.UTC().Hour() != 12 {
		t.Errorf("%+v (%v)", versions, err)
	}
	if _, err := a.Put(ctx, "", nil, 0, ""); err == nil {
		t.Error("a document without a name was kept")
	}
	x, err := a.Identity(ctx)
	y, err2 := b.Identity(ctx)
	if x == "" || x != y || err != nil || err2 != nil {
		t.Errorf("%q %q %v %v", x, y, err, err2)
	}
}

// Who asks what changed since a number misses nothing, however many change at once, and old versions leave.
func TestChangedMissesNothing(t *testing.T) { onBoth(t, changedMissesNothing) }

func changedMissesNothing(t *testing.T, path string) {
	const each = 60
	a, b := open(t, path), open(t, path)
	var wg sync.WaitGroup
	for i, d := range []*tables.Documents{a, b} {
		wg.Go(func() {
			name := fmt.Sprint("d", i)
			for v := range int64(each) {
				if _, err := d.Put(context.Background(), name, fmt.Append(nil, v), v, ""); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen, highest := map[string]int64{}, int64(0)
	for over := false; ; {
		list, err := a.Changed(t.Context(), highest)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range list {
			seen[h.Name], highest = h.Version, h.Seq
		}
		if over {
			break
		}
		select {
		case <-done:
			over = true
		default:
		}
	}
	if highest != 2*each || seen["d0"] != each || seen["d1"] != each {
		t.Errorf("%v, up to %d", seen, highest)
	}
	if versions, err := a.Versions(t.Context(), "d0"); err != nil || len(versions) != 50 {
		t.Errorf("%d versions are known (%v)", len(versions), err)
	}
}
