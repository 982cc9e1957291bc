package leaks

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain finds fault with the first run only, as a check for goroutines left behind may.
func TestMain(m *testing.M) {
	code := m.Run()
	if os.Mkdir(filepath.Join(os.Getenv("TINY_DIR"), "leaks"), 0o755) == nil {
		code = 1
	}
	os.Exit(code)
}

func TestFine(t *testing.T) {}
