package store_test

import (
	"flag"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/blobstorage/s3"
	"chorus/internal/blobstorage/s3test"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

// TestMain keeps the model check to a few seconds unless somebody asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		checks := "40"
		if raceDetector { // which makes SQLite ten times slower
			checks = "10"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	// The server that the tests share ends with this program.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("chorus/internal/store/pgtest.(*Cluster).Start.func1"))
}

func TestSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() storetest.Store {
		path := filepath.Join(t.TempDir(), "chorus.db")
		storetest.Fresh(t, path)
		return func() storetest.Store {
			db, err := store.Open(t.Context(), store.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			return storetest.Of(db)
		}
	})
}

// The whole suite with large blobs in a bucket.
func TestSuiteWithABucket(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	storetest.Run(t, func(t *testing.T) func() storetest.Store {
		path := filepath.Join(t.TempDir(), "chorus.db")
		storetest.Fresh(t, path)
		return func() storetest.Store {
			blobs, err := s3.New(s3.Options{Bucket: s3test.Bucket, Prefix: filepath.Base(filepath.Dir(filepath.Dir(path))), Endpoint: server.URL, Region: "x", PathStyle: true,
				AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
			if err != nil {
				t.Fatal(err)
			}
			db, err := store.Open(t.Context(), store.Options{Path: path, Blobs: blobs})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			return storetest.Of(db)
		}
	})
}
