package files

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Two threads with a workspace each of their own making, and one folder behind both.
func TestThreadsWaitForEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	locks := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		one, two := NewLocks(), NewLocks()
		one.dir, two.dir = locks, locks // as in two processes
		for _, c := range []struct {
			name string
			mine *Locks
			want string
		}{
			{"in one process", one, "another conversation (discord:g/c:1@helper) since "},
			{"in two processes", two, fmt.Sprintf("another conversation (discord:g/c:1@helper) in process %d since ", os.Getpid())},
		} {
			first, err := NewRoots(dir)
			if err != nil {
				t.Fatal(err)
			}
			first.WithLocks(one, "discord:g/c:1@helper")
			second, err := NewRoots(link)
			if err != nil {
				t.Fatal(err)
			}
			second.WithLocks(c.mine, "discord:g/c:2@helper")
			d, err := first.target(Place{Workspace, "notes.md"})
			if err != nil {
				t.Fatal(err)
			}
			release, err := first.locks.acquire(t.Context(), first.who, d.key)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			res, err := Write(second).Run(t.Context(), []byte(`{"path":"notes.md","content":"x"}`))
			if err != nil || !res.Failed || time.Since(began) < lockWait {
				t.Fatalf("%s: %v, %v after %s", c.name, res, err, time.Since(began))
			}
			if text := res.Blocks.Text(); !strings.Contains(text, "notes.md is being changed by "+c.want) || !strings.Contains(text, "Waited 30 s and changed nothing") {
				t.Errorf("%s: the model reads %q", c.name, text)
			}
			release()
			if res, err := Write(second).Run(t.Context(), []byte(`{"path":"notes.md","content":"x"}`)); err != nil || res.Failed {
				t.Errorf("%s: a lock that was given back is not free: %v, %v", c.name, res, err)
			}
			_ = first.Close()
			_ = second.Close()
		}
	})
	if left, err := os.ReadDir(locks); err != nil || len(left) > 0 {
		t.Errorf("the folder of locks holds %v, %v", left, err)
	}
}

// holderEnv makes this test binary the process that holds a lock until it is killed.
const holderEnv = "CHORUS_TEST_HOLD"

// holdLock is that process.
func holdLock(dir string) {
	held, err := takeFile(filepath.Join(dir, "file-x.lock"), holding{Who: "one that dies", Since: time.Now()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin) // the pipe stays open until this process is killed
	runtime.KeepAlive(held)
}

// A process that is killed leaves no lock behind.
func TestAKilledHolderLetsGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // see holdLock
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	path := filepath.Join(dir, "file-x.lock")
	if _, err := takeFile(path, holding{}); err == nil {
		t.Fatal("two processes hold one lock")
	}
	if h := heldBy(path); h.Who != "one that dies" || h.Pid != cmd.Process.Pid {
		t.Errorf("it is held by %+v", h)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	got, err := takeFile(path, holding{})
	if err != nil {
		t.Fatal(err)
	}
	got.Release()
}
