package peernotify

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const one, two = chat.ThreadID("cli:here:one@helper"), chat.ThreadID("cli:here:two@helper")

// process is what one process has of a home.
func process(t *testing.T, dir string) (*Peers, *Subscription) {
	t.Helper()
	b := In(dir)
	ear, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ear.Close)
	return b, ear
}

// rung waits until all of them were heard.
func rung(t *testing.T, ear *Subscription, want ...chat.ThreadID) {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for len(want) > 0 {
		select {
		case <-ear.Woken():
		case <-late.C:
			t.Fatalf("never heard %v", want)
		}
		threads, many := ear.Take()
		for _, got := range threads {
			if !slices.Contains(want, got) {
				t.Fatalf("heard %q, want one of %q", got, want)
			}
		}
		if many {
			t.Fatal("too many to remember")
		}
		want = slices.DeleteFunc(want, func(w chat.ThreadID) bool { return slices.Contains(threads, w) })
	}
}

func quiet(t *testing.T, ear *Subscription) {
	t.Helper()
	if threads, many := ear.Take(); len(threads) > 0 || many {
		t.Errorf("heard %q, %v", threads, many)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Every other process hears a ring, the one that rings does not, and nothing is left behind.
func TestRing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run", "bells")
	In(dir).Notify(one) // nobody is there
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("ringing made the folder: %v", err)
	}
	a, earA := process(t, dir)
	_, earB := process(t, dir)
	_, earC := process(t, dir)
	a.Notify(one)
	rung(t, earB, one)
	rung(t, earC, one)
	In(dir).Notify(two) // somebody who does not listen
	for _, ear := range []*Subscription{earA, earB, earC} {
		rung(t, ear, two)
	}
	quiet(t, earA)
	for _, ear := range []*Subscription{earA, earB, earC} {
		ear.Close()
		ear.Close()
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	a.Notify(one)
	quiet(t, earB)
}

// A home may lie deeper than the address of a socket is long.
func TestDeepHome(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a short name for an open folder")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 30), strings.Repeat("deeper", 30))
	_, ear := process(t, dir)
	In(dir).Notify(one)
	rung(t, ear, one)
	ear.Close()
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What processes that were killed left is removed, once it is old enough not to be a
// process that is just starting; what is no bell stays.
func TestDeadBells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"old", "new"} {
		path := filepath.Join(dir, name)
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address(open(t, dir), name), Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil { // a datagram socket stays in the folder
			t.Fatal(err)
		}
		when := time.Now().Add(map[string]time.Duration{"old": -time.Hour, "new": time.Hour}[name])
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	_, ear := process(t, dir)
	In(dir).Notify(one)
	rung(t, ear, one)
	ear.Close()
	if left := names(t, dir); !slices.Equal(left, []string{"file", "new"}) {
		t.Errorf("left: %q", left)
	}
}

func open(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Where no bell can be hung up it is said to whoever wanted one, and ringing does nothing.
func TestNoBells(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/self"} { // the kernel's own folders refuse sockets even to root
		b := In(dir)
		if ear, err := b.Subscribe(); err == nil {
			ear.Close()
			t.Errorf("listens in %s", dir)
		}
		b.Notify(one)
	}
	(*Peers)(nil).Notify(one)
	var none *Subscription
	none.Close()
	if none.Woken() != nil {
		t.Error("a nil ear hears")
	}
}

// Words that name no thread are not heard, however long they are.
func TestStrangeWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, ear := process(t, dir)
	for _, words := range []string{"", "nonsense", "\xff\xff:a:b", "CLI:a:b", "cli:a:b" + strings.Repeat("b", 5000), strings.Repeat("x", 60_000)} {
		send(t, dir, words)
	}
	In(dir).Notify(one)
	rung(t, ear, one)
	quiet(t, ear)
}

// send sends any words to every bell, and tries again where there is no room.
func send(t *testing.T, dir, words string) {
	t.Helper()
	fd, err := newSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	for _, name := range names(t, dir) {
		if err := syscall.Sendto(fd, []byte(words), 0, &syscall.SockaddrUnix{Name: address(open(t, dir), name)}); err != nil {
			t.Fatal(err)
		}
	}
}

// A storm of rings is remembered as what it was about; too many threads at once are all of them.
func TestStorm(t *testing.T) {
	t.Parallel()
	b := In(t.TempDir())
	ear, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	for range 10 * maxThreads {
		ear.put(one)
		ear.put(two)
	}
	rung(t, ear, one, two)
	for i := range 10 * maxThreads {
		ear.put(chat.ThreadID(fmt.Sprintf("cli:here:%d", i)))
	}
	<-ear.Woken()
	if threads, many := ear.Take(); len(threads) > 0 || !many {
		t.Errorf("%d threads, %v", len(threads), many)
	}
	quiet(t, ear)
}

// Whoever does not listen keeps nobody waiting: what finds no room is lost.
func TestRingNeverWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address(open(t, dir), "deaf"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	_, ear := process(t, dir)
	b := In(dir)
	for range 5000 { // more than any queue holds
		b.Notify(one)
	}
	rung(t, ear, one)
	if _, err := os.Stat(filepath.Join(dir, "deaf")); err != nil {
		t.Errorf("a bell that is only full was removed: %v", err)
	}
}
