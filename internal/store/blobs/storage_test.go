package blobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/blobstorage/s3"
	"chorus/internal/blobstorage/s3test"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/store/dbcopy"
	"chorus/internal/store/pgtest"
)

// bucket is a storage on a test's server.
func bucket(t testing.TB, server *s3test.Server, prefix string) blobstorage.Storage {
	t.Helper()
	s, err := s3.New(s3.Options{Bucket: s3test.Bucket, Prefix: prefix, Endpoint: server.URL, Region: "x", PathStyle: true,
		AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, Timeout: 30 * time.Second, RetryFor: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bucketFixture is a database with a bucket, and a clock that the test moves.
type bucketFixture struct {
	*store.DB
	server *s3test.Server
	blobs  blobstorage.Storage
	o      store.Options
	mu     sync.Mutex
	later  time.Duration
}

func (s *bucketFixture) forward(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later += d
}

// open is another handle on the same database, as another machine has one.
func (s *bucketFixture) open(t *testing.T, change func(*store.Options)) *store.DB {
	t.Helper()
	o := s.o
	if change != nil {
		change(&o)
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// there reports whether the bucket has an object.
func (s *bucketFixture) there(t *testing.T, hash string) bool {
	t.Helper()
	_, err := s.blobs.Size(t.Context(), hash)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// onBuckets runs a test on both kinds of databases.
func onBuckets(t *testing.T, test func(*testing.T, *bucketFixture)) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := &bucketFixture{server: s3test.New(t)}
			s.blobs = bucket(t, s.server, "chorus")
			s.o = store.Options{Blobs: s.blobs, Now: func() time.Time {
				s.mu.Lock()
				defer s.mu.Unlock()
				return time.Now().Add(s.later)
			}}
			if kind == "sqlite" {
				s.o.Path = filepath.Join(t.TempDir(), "chorus.db")
			} else {
				s.o.URL = pgtest.Database(t)
			}
			s.DB = s.open(t, nil)
			test(t, s)
		})
	}
}

func large(n int) []byte { return bytes.Repeat([]byte{byte(n), byte(n >> 8)}, blobs.MaxInline) }

const talk = chat.ThreadID("cli:home:one@main")

// refer commits an event that refers to bytes, with them.
func refer(t *testing.T, db *store.DB, data []byte) (hash string, err error) {
	t.Helper()
	b := chat.NewBlob(data)
	_, err = db.Commit(t.Context(), journal.Commit{Thread: talk, Create: &journal.Thread{}, Blobs: []chat.Blob{b},
		Events: []chat.Event{{Body: chat.Received{Blocks: chat.Blocks{chat.File{Blob: b.Hash, Name: "f"}}}}}})
	return b.Hash, err
}

func mustRefer(t *testing.T, db *store.DB, data []byte) string {
	t.Helper()
	hash, err := refer(t, db, data)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func wantBlob(t *testing.T, db *store.DB, hash string, data []byte) {
	t.Helper()
	if got, err := db.Blob(t.Context(), hash); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Large blobs are in the bucket before anything refers to them, other machines read them there, and small ones never go there.
func TestLargeBlobsAreInTheBucket(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		hash := mustRefer(t, s.DB, large(1))
		small := mustRefer(t, s.DB, []byte("small"))
		if !s.there(t, hash) || s.there(t, small) {
			t.Error("in the wrong place")
		}
		other := s.open(t, func(o *store.Options) { o.BlobDir = t.TempDir() })
		wantBlob(t, other, hash, large(1))
		wantBlob(t, other, small, []byte("small"))

		puts := 0
		s.server.Break(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method == http.MethodPut {
				puts++
			}
			return false
		})
		mustRefer(t, s.DB, large(1))
		if puts != 0 {
			t.Errorf("bytes that are there were put %d times", puts)
		}
		s.server.Break(nil)

		none := s.open(t, func(o *store.Options) { o.Blobs = nil })
		_, err := none.Blob(t.Context(), hash)
		if errors.Is(err, chat.ErrLost) || err == nil || !strings.Contains(err.Error(), "blobUrl") {
			t.Errorf("without the storage: %v", err)
		}
		if _, _, err := none.CheckBlobs(t.Context(), false); err == nil {
			t.Error("without the storage they were checked")
		}
		if n, err := none.SweepBlobs(t.Context(), -time.Hour); n != 0 || err != nil {
			t.Error(n, err)
		}
		wantBlob(t, s.DB, hash, large(1))
	})
}

// A bucket that is away, or busy, refuses nothing that has no large bytes, and nothing is acknowledged that it has not.
func TestABucketThatIsAway(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		kept := mustRefer(t, s.DB, large(1))
		s.server.Break(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		_, err := refer(t, s.DB, large(2))
		var p *database.Problem
		if !errors.As(err, &p) || p.What != database.ErrAway || !strings.Contains(err.Error(), "nothing that was acknowledged is lost") {
			t.Errorf("%v", err)
		}
		if _, err := s.Blob(t.Context(), kept); !errors.Is(err, database.ErrAway) || errors.Is(err, chat.ErrLost) {
			t.Errorf("%v", err)
		}
		if s.Health() != nil {
			t.Errorf("the database is ill because of the bucket: %v", s.Health())
		}
		mustRefer(t, s.DB, []byte("small"))
		if events, err := s.Events(t.Context(), talk, 0, 10); err != nil || len(events) != 2 {
			t.Errorf("%d events, %v", len(events), err)
		}
		s.server.Break(nil)
		wantBlob(t, s.DB, mustRefer(t, s.DB, large(2)), large(2))
	})
}

// A process that dies between any two steps of putting leaves what a sweep removes when it is old, and not before.
func TestKilledWhilePutting(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		kept := mustRefer(t, s.DB, large(1))
		// Dead after the bytes were put, and before the commit: a row that nothing refers to.
		row, err := s.KeepBlob(t.Context(), chat.NewBlob(large(2)))
		if err != nil || row.Place() == "" {
			t.Fatal(row.Place(), err)
		}
		// Dead in the middle of a removal: bytes without a row.
		stray := chat.NewBlob(large(3))
		if err := s.blobs.Put(t.Context(), stray.Hash, stray.Data); err != nil {
			t.Fatal(err)
		}
		// Dead after the row was written: nothing was put.
		if err := s.Write(t.Context(), func(tx database.Tx) error {
			return s.Reserve(tx, chat.NewBlob(large(4)))
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.SweepBlobs(t.Context(), blobs.SweepAfter); n != 0 || err != nil {
			t.Errorf("swept %d that are young, %v", n, err)
		}
		if !s.there(t, row.Hash) || !s.there(t, stray.Hash) {
			t.Error("young bytes are gone")
		}
		s.forward(2 * blobs.SweepAfter)
		if n, err := s.SweepBlobs(t.Context(), blobs.SweepAfter); n != 3 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		if s.there(t, row.Hash) || s.there(t, stray.Hash) || !s.there(t, kept) {
			t.Error("the wrong ones were swept")
		}
		wantBlob(t, s.DB, mustRefer(t, s.DB, large(4)), large(4))
		wantBlob(t, s.DB, kept, large(1))
	})
}

// Bytes that are leaving the bucket just now, in whatever process, are kept in the database when somebody puts them.
func TestPutWhileLeaving(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		hash, err := s.PutBlob(t.Context(), large(1))
		if err != nil {
			t.Fatal(err)
		}
		s.forward(2 * blobs.SweepAfter)
		s.server.Break(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method == http.MethodDelete {
				panic(http.ErrAbortHandler) // it may still arrive
			}
			return false
		})
		if _, err := s.SweepBlobs(t.Context(), blobs.SweepAfter); err != nil {
			t.Fatal(err)
		}
		s.server.Break(nil)
		if got := mustRefer(t, s.DB, large(1)); got != hash {
			t.Fatal(got)
		}
		// Now it arrives.
		if err := s.blobs.Remove(t.Context(), hash); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, s.DB, hash, large(1))

		// A later sweep finishes what was begun, and the bytes stay in the database.
		if err := s.blobs.Put(t.Context(), hash, large(1)); err != nil {
			t.Fatal(err)
		}
		s.forward(2 * blobs.ClaimTime)
		if _, err := s.SweepBlobs(t.Context(), blobs.SweepAfter); err != nil {
			t.Fatal(err)
		}
		if left, err := s.Memos(t.Context(), blobs.LeavingKind); err != nil || len(left) != 0 || s.there(t, hash) {
			t.Errorf("%v, %v, %t", left, err, s.there(t, hash))
		}
		wantBlob(t, s.DB, hash, large(1))
	})
}

// However puts, sweeps and deletions of the same bytes meet, what an event refers to is there in the end.
func TestPutsAndSweepsMeet(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		var all sync.WaitGroup
		ended, end := context.WithCancel(t.Context())
		for range 2 {
			all.Go(func() {
				for ended.Err() == nil {
					if _, err := s.SweepBlobs(ended, -time.Hour); err != nil && ended.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		var puts sync.WaitGroup
		other := s.open(t, nil)
		for worker := range 4 {
			puts.Go(func() {
				for n := range 12 {
					_, err := refer(t, []*store.DB{s.DB, other}[worker%2], large(n%3))
					if err != nil && !errors.Is(err, blobs.ErrSwept) {
						t.Error(err)
					}
					events, err := s.Events(t.Context(), talk, 0, 1000)
					if err != nil {
						t.Error(err)
						return
					}
					if len(events) > 0 && n%3 == 0 {
						_, err = s.Commit(t.Context(), journal.Commit{Thread: talk, Events: []chat.Event{{Body: chat.Deleted{Seq: events[(worker*7+n)%len(events)].Seq, Forget: true}}}})
						if err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		puts.Wait()
		end()
		all.Wait()
		faults, n, err := s.CheckBlobs(t.Context(), true)
		if err != nil || len(faults) > 0 || n == 0 {
			t.Errorf("%d looked at, %v, %v", n, faults, err)
		}
	})
}

// What is missing, cut off or changed in the bucket is found, and a wrong bucket is not taken for lost bytes.
func TestCheckBlobsInTheBucket(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		hashes := []string{mustRefer(t, s.DB, large(1)), mustRefer(t, s.DB, large(2)), mustRefer(t, s.DB, large(3)), mustRefer(t, s.DB, large(4))}
		if faults, n, err := s.CheckBlobs(t.Context(), true); err != nil || len(faults) != 0 || n != 4 {
			t.Fatal(faults, n, err)
		}
		wrong := s.open(t, func(o *store.Options) {
			o.Blobs, _ = s3.New(s3.Options{Bucket: "other", Endpoint: s.server.URL, PathStyle: true, Region: "x", AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
		})
		if faults, _, err := wrong.CheckBlobs(t.Context(), true); err == nil || len(faults) != 0 {
			t.Errorf("with another bucket: %v, %v", faults, err)
		}
		if err := s.blobs.Remove(t.Context(), hashes[0]); err != nil {
			t.Fatal(err)
		}
		s.server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if strings.HasSuffix(r.URL.Path, hashes[1]) {
				r.Header.Del("Authorization")
				w.Header().Set("Content-Length", "7")
				return true
			}
			if strings.HasSuffix(r.URL.Path, hashes[2]) && r.Method == http.MethodGet {
				_, _ = w.Write(large(9))
				return true
			}
			return false
		})
		faults, _, err := s.CheckBlobs(t.Context(), true)
		got := map[string]string{}
		for _, f := range faults {
			got[f.Hash] = f.What
		}
		if err != nil || len(got) != 3 || got[hashes[0]] != blobs.BlobMissing || got[hashes[1]] != blobs.BlobCut || got[hashes[2]] != blobs.BlobChanged {
			t.Errorf("%v, %v", got, err)
		}
		if _, err := s.Blob(t.Context(), hashes[2]); !errors.Is(err, database.ErrBlob) || !errors.Is(err, chat.ErrLost) {
			t.Errorf("%v", err)
		}
		if _, err := s.Blob(t.Context(), hashes[0]); !errors.Is(err, chat.ErrLost) {
			t.Errorf("%v", err)
		}
		if folder, err := s.AcceptLostBlobs(t.Context(), faults); err != nil || folder != "" {
			t.Errorf("%s %v", folder, err)
		}
		s.server.Break(nil)
		if faults, n, err := s.CheckBlobs(t.Context(), true); err != nil || len(faults) != 0 || n != 1 {
			t.Error(faults, n, err)
		}
	})
}

// What people delete leaves the bucket at once, also a line out of a long import.
func TestForgottenBytesLeaveTheBucket(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		hash := mustRefer(t, s.DB, large(1))
		lines := []chat.Line{{ID: "m1", Blocks: chat.TextBlocks(strings.Repeat("secret ", blobs.MaxInline/4))}, {ID: "m2", Blocks: chat.TextBlocks(strings.Repeat("public ", blobs.MaxInline/4))}}
		data, err := json.Marshal(lines)
		if err != nil {
			t.Fatal(err)
		}
		imported := chat.NewBlob(data)
		done, err := s.Commit(t.Context(), journal.Commit{Thread: talk, Blobs: []chat.Blob{imported},
			Events: []chat.Event{{Body: chat.Imported{Source: "x", Blob: imported.Hash, Count: 2}}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, deleted := range []chat.Deleted{{Seq: 1, Forget: true}, {Message: "m1", Forget: true}} {
			if _, err := s.Commit(t.Context(), journal.Commit{Thread: talk, Events: []chat.Event{{Body: deleted}}}); err != nil {
				t.Fatal(err)
			}
		}
		if s.there(t, hash) || s.there(t, imported.Hash) {
			t.Error("deleted bytes are still there")
		}
		events, err := s.Events(t.Context(), talk, done.Events[0].Seq-1, 1)
		if err != nil {
			t.Fatal(err)
		}
		left, err := s.Blob(t.Context(), events[0].Body.(chat.Imported).Blob)
		if err != nil || bytes.Contains(left, []byte("secret")) || !bytes.Contains(left, []byte("public")) {
			t.Errorf("%d bytes, %v", len(left), err)
		}
	})
}

// A second database at the same place, such as a backup that is tried, takes nothing from the first.
func TestOnlyTheOwnerRemoves(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		hash := mustRefer(t, s.DB, large(1))
		if _, err := s.SweepBlobs(t.Context(), blobs.SweepAfter); err != nil { // it is the owner from now on
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "chorus.db")
		if err := (dbcopy.Source{DB: s.DB}).CopyTo(t.Context(), copied, nil); err != nil {
			t.Fatal(err)
		}
		files, err := blobs.Files(t.Context(), copied)
		if data, read := (dbcopy.Source{DB: s.DB}).BytesOutside(t.Context(), hash); err != nil || files[hash] == 0 || read != nil || !bytes.Equal(data, large(1)) {
			t.Errorf("a backup misses bytes: %v, %v, %v", files, err, read)
		}
		tried := s.open(t, func(o *store.Options) { o.URL, o.Path, o.BlobDir = "", copied, t.TempDir() })
		if _, err := tried.Blob(t.Context(), hash); !errors.Is(err, chat.ErrLost) {
			t.Errorf("a copy expects its bytes beside it: %v", err)
		}
		fresh := mustRefer(t, s.DB, large(2))
		if got, err := tried.PutBlob(t.Context(), large(2)); err != nil || got != fresh {
			t.Fatal(err)
		}
		s.forward(2 * blobs.SweepAfter)
		if _, err := tried.SweepBlobs(t.Context(), blobs.SweepAfter); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, s.DB, hash, large(1))
		wantBlob(t, s.DB, fresh, large(2))
	})
}

// Blobs move into a bucket, into another one, into a folder and back, and a move that was cut off goes on.
func TestMoveBlobs(t *testing.T) {
	onBuckets(t, func(t *testing.T, s *bucketFixture) {
		plain := s.open(t, func(o *store.Options) { o.Blobs = nil })
		want := map[string][]byte{mustRefer(t, plain, []byte("small")): []byte("small")}
		for n := range 4 {
			want[mustRefer(t, plain, large(n))] = large(n)
		}
		folder, second := blobstorage.NewFolder(t.TempDir(), nil), bucket(t, s.server, "second")
		from := plain
		for step, to := range []blobstorage.Storage{s.blobs, second, folder, nil, s.blobs} {
			if step == 1 {
				left := 2
				s.server.Break(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/second/") {
						if left--; left < 0 {
							w.WriteHeader(http.StatusServiceUnavailable)
							return true
						}
					}
					return false
				})
				if _, err := dbcopy.MoveBlobs(t.Context(), from, to, nil); err == nil {
					t.Error("a move that was cut off went well")
				}
				s.server.Break(nil)
			}
			done, err := dbcopy.MoveBlobs(t.Context(), from, to, nil)
			if moved := map[bool]int{true: 2, false: 4}[step == 1]; err != nil || done.Moved != moved || len(done.Lost) != 0 {
				t.Fatalf("step %d: %+v, %v", step, done, err)
			}
			from = s.open(t, func(o *store.Options) { o.Blobs = to })
			for hash, data := range want {
				wantBlob(t, from, hash, data)
			}
			if again, err := dbcopy.MoveBlobs(t.Context(), from, to, nil); err != nil || again.Moved != 0 {
				t.Errorf("step %d, again: %+v, %v", step, again, err)
			}
		}
		for _, place := range []blobstorage.Storage{second, folder} {
			if err := place.List(t.Context(), time.Now().Add(time.Hour), func(hash string, _ int64) error { return fmt.Errorf("%s is still there", hash) }); err != nil {
				t.Error(err)
			}
		}
	})
}
