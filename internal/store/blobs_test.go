package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
)

// A file that was cut or is gone was reported as a damaged database, and putting the same
// bytes again did not bring it back.
func TestALostBlobIsSaidAndMended(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "chorus.db"))
	data := bytes.Repeat([]byte("bytes "), maxInline)
	hash, err := db.PutBlob(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	path := db.blobPath(hash)
	for name, harm := range map[string]func() error{
		"cut":   func() error { return os.Truncate(path, 100) },
		"other": func() error { return os.WriteFile(path, bytes.ToUpper(data), 0o600) },
		"gone":  func() error { return os.Remove(path) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Blob(t.Context(), hash); !errors.Is(err, chat.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := db.PutBlob(t.Context(), data); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Blob(t.Context(), hash); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s, and put again: %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := db.Blob(t.Context(), chat.NewBlob([]byte("never there")).Hash); !errors.Is(err, chat.ErrLost) {
		t.Errorf("never there: %v", err)
	}
}
