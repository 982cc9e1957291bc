package files

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// swap exchanges a file or folder with a link, over and over, until it is stopped.
func swap(t *testing.T, p *place, name, target string) (stop func()) {
	t.Helper()
	p.link(name+".link", target)
	one, other := filepath.Join(p.dir, name), filepath.Join(p.dir, name+".link")
	var done atomic.Bool
	ended := make(chan error, 1)
	go func() {
		var err error
		for !done.Load() && err == nil {
			err = unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		}
		ended <- err
	}()
	return func() {
		done.Store(true)
		if err := <-ended; err != nil {
			t.Errorf("the swapping ended early: %v", err)
		}
	}
}

// What was judged is what is written: a folder that becomes a link in between leads nowhere.
func TestSwappedFolderIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, tool, args string }{
		{"write", "write", `{"path":"docs/evil","content":"x"}`},
		{"write in a new folder", "write", `{"path":"docs/sub/evil","content":"x"}`},
		{"edit", "edit", `{"path":"docs/kept","old_string":"#","new_string":"#x"}`},
		{"add", "apply_patch", `{"patch":"*** Begin Patch\n*** Add File: docs/sub/evil\n+x\n*** End Patch\n"}`},
		{"delete", "apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: docs/kept\n*** End Patch\n"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, map[string]string{".git/hooks/kept": "#\n", "docs/kept": "#\n"})
			found, args, err := p.set.Resolve(c.tool, []byte(c.args))
			if err != nil {
				t.Fatal(err)
			}
			touches := found.Access(args) // judged while docs is a folder
			stop := swap(t, p, "docs", ".git/hooks")
			defer stop()
			done := 0
			for range 500 {
				if res := runJudged(t, found, args, touches); !res.Failed {
					done++
				}
				hooks, err := os.ReadDir(filepath.Join(p.dir, ".git/hooks"))
				if err != nil || len(hooks) != 1 || p.get(".git/hooks/kept") != "#\n" {
					t.Fatalf("the call reached through the link: %v %v %q", hooks, err, p.get(".git/hooks/kept"))
				}
				if c.name != "edit" {
					reset(p)
				}
			}
			if done == 0 {
				t.Error("no call came through, so nothing was tried")
			}
		})
	}
}

// reset makes the folder what it was, under whichever name it has now.
func reset(p *place) {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"docs", "docs.link"} {
		if dir, err := enter(root, name, false); err == nil {
			_ = dir.RemoveAll("sub")
			_ = dir.WriteFile("kept", []byte("#\n"), 0o644)
			_ = dir.Close()
		}
	}
}

// What was judged is what is read.
func TestSwappedFileIsNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{".env": "API=secret\n", "notes.txt": "plain\n"})
	found, args, err := p.set.Resolve("read", []byte(`{"path":"notes.txt"}`))
	if err != nil {
		t.Fatal(err)
	}
	touches := found.Access(args)
	stop := swap(t, p, "notes.txt", ".env")
	defer stop()
	read := 0
	for range 1000 {
		text := runJudged(t, found, args, touches).Blocks.Text()
		if strings.Contains(text, "secret") {
			t.Fatal("the secret was read through the link")
		}
		if strings.Contains(text, "plain") {
			read++
		}
	}
	if read == 0 {
		t.Error("the file itself was never read, so nothing was tried")
	}
}
