package blobs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/store/storetest"
)

// A lost or changed blob was found by nobody until a conversation failed because of it.
func TestCheckBlobs(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: filepath.Join(t.TempDir(), "chorus.db")})
	var hashes []string
	for n := range 5 {
		data := bytes.Repeat([]byte{byte(n + 1)}, blobs.MaxInline+100)
		if n == 4 {
			data = data[:100] // within the database
		}
		hash, err := db.PutBlob(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
		_, err = db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Create: &journal.Thread{},
			Events: []chat.Event{{Body: chat.Received{Blocks: chat.Blocks{chat.Image{Blob: hash, MediaType: "image/png"}}}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if faults, n, err := db.CheckBlobs(t.Context(), true); err != nil || len(faults) != 0 || n != 5 {
		t.Fatal(faults, n, err)
	}
	if err := errors.Join(os.Remove(db.BlobPath(hashes[0])), os.Truncate(db.BlobPath(hashes[1]), 10)); err != nil {
		t.Fatal(err)
	}
	storetest.Flip(t, db.BlobPath(hashes[2]), 50)
	storetest.Script(t, db.Path(), `UPDATE blobs SET data = x'00' WHERE data IS NOT NULL`)
	want := map[string]string{hashes[0]: blobs.BlobMissing, hashes[1]: blobs.BlobCut}
	for _, thorough := range []bool{false, true} {
		if thorough {
			want[hashes[2]], want[hashes[4]] = blobs.BlobChanged, blobs.BlobChanged
		}
		faults, _, err := db.CheckBlobs(t.Context(), thorough)
		if err != nil || len(faults) != len(want) {
			t.Fatal(faults, err)
		}
		for _, f := range faults {
			if f.What != want[f.Hash] || f.Thread != "cli:home:one@main" || f.Threads != 1 || f.Bytes == 0 {
				t.Errorf("%+v, want %s", f, want[f.Hash])
			}
		}
		if !thorough {
			continue
		}
		folder, err := db.AcceptLostBlobs(t.Context(), faults)
		if err != nil || folder == "" {
			t.Fatal(folder, err)
		}
		if kept, err := os.ReadDir(folder); err != nil || len(kept) != 2 {
			t.Errorf("%v %v", kept, err)
		}
	}
	if faults, n, err := db.CheckBlobs(t.Context(), true); err != nil || len(faults) != 0 || n != 1 {
		t.Errorf("after they were accepted: %v %d %v", faults, n, err)
	}
	if _, err := db.Blob(t.Context(), hashes[2]); !errors.Is(err, journal.ErrUnknown) {
		t.Errorf("%v", err)
	}
}
