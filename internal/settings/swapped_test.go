package settings

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An agent's command makes a pipe of .mcp.json, a link out of the workspace and a plain file again, as fast as it can. Whoever
// reads the file gets its text or an error, at once, and never what the link leads to.
func TestServersFileIsSwapped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(at("plain"), []byte(`{"mcpServers":{}}`), 0o644), syscall.Mkfifo(at("pipe"), 0o644), os.WriteFile(at("secret"), []byte("secret"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	swapped, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for i := range 9_000 {
			switch i % 3 {
			case 0:
				_ = os.Link(at("plain"), at("next"))
			case 1:
				_ = os.Link(at("pipe"), at("next"))
			case 2:
				_ = os.Symlink(at("secret"), at("next"))
			}
			_ = os.Rename(at("next"), at(".mcp.json"))
		}
	}()
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-swapped:
					return
				default:
				}
				if data, err := readRepositoryFile(at(".mcp.json")); err == nil && !strings.Contains(string(data), "mcpServers") {
					t.Errorf("%q was read", data)
				}
				runtime.Gosched() // the other one must get on, too
			}
		})
	}
	go func() {
		readers.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(3 * time.Minute):
		t.Error("the file is waited for")
	}
}
