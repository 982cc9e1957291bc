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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const one, two = Topic("cli:here:one@helper"), Topic("cli:here:two@helper")

// process is what one process has of a home.
func process(t *testing.T, dir string) (*Datagrams, *Subscription) {
	t.Helper()
	b := In(dir)
	sub, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	return b, sub
}

// waitFor waits until all of them were received.
func waitFor(t *testing.T, sub *Subscription, want ...Topic) {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for len(want) > 0 {
		select {
		case <-sub.Woken():
		case <-late.C:
			t.Fatalf("never received %v", want)
		}
		threads, many := sub.Take()
		for _, got := range threads {
			if !slices.Contains(want, got) {
				t.Fatalf("received %q, want one of %q", got, want)
			}
		}
		if many {
			t.Fatal("too many to remember")
		}
		want = slices.DeleteFunc(want, func(w Topic) bool { return slices.Contains(threads, w) })
	}
}

func quiet(t *testing.T, sub *Subscription) {
	t.Helper()
	if threads, many := sub.Take(); len(threads) > 0 || many {
		t.Errorf("received %q, %v", threads, many)
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

// Every other process receives a notification, the sender does not, and nothing is left behind.
func TestNotify(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run", "peers")
	In(dir).Notify(one) // nobody is there
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("notifying made the folder: %v", err)
	}
	a, subA := process(t, dir)
	_, subB := process(t, dir)
	_, subC := process(t, dir)
	a.Notify(one)
	waitFor(t, subB, one)
	waitFor(t, subC, one)
	In(dir).Notify(two) // somebody who does not listen
	for _, sub := range []*Subscription{subA, subB, subC} {
		waitFor(t, sub, two)
	}
	quiet(t, subA)
	for _, sub := range []*Subscription{subA, subB, subC} {
		sub.Close()
		sub.Close()
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	a.Notify(one)
	quiet(t, subB)
}

// A home may lie deeper than the address of a socket is long.
func TestDeepHome(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a short name for an open folder")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 30), strings.Repeat("deeper", 30))
	_, sub := process(t, dir)
	In(dir).Notify(one)
	waitFor(t, sub, one)
	sub.Close()
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What processes that were killed left is removed, once it is old enough not to be a
// process that is just starting; what is no socket stays.
func TestSocketsOfKilledProcesses(t *testing.T) {
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
	_, sub := process(t, dir)
	In(dir).Notify(one)
	waitFor(t, sub, one)
	sub.Close()
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

// Where no socket can be opened, whoever subscribes gets the error, and notifying does nothing.
func TestNoSocketPossible(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/self"} { // the kernel's own folders refuse sockets even to root
		b := In(dir)
		if sub, err := b.Subscribe(); err == nil {
			sub.Close()
			t.Errorf("listens in %s", dir)
		}
		b.Notify(one)
	}
	var none *Subscription
	none.Close()
	if none.Woken() != nil {
		t.Error("a nil subscription receives")
	}
}

// Words that are no topic are ignored, however long they are.
func TestOtherDatagrams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, sub := process(t, dir)
	for _, words := range []string{"", "non sense", "\xff\xff:a:b", "CLI:a:b", "cli:a:b" + strings.Repeat("b", 5000), "+", "++cli:a:b", strings.Repeat("x", 60_000)} {
		send(t, dir, words)
	}
	In(dir).Notify(one)
	waitFor(t, sub, one)
	quiet(t, sub)
}

// send sends any text to every socket, and tries again where there is no room.
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

// Many notifications are remembered as the threads they named; too many threads at once are all of them.
func TestManyNotifications(t *testing.T) {
	t.Parallel()
	b := In(t.TempDir())
	sub, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for range 10 * maxTopics {
		sub.Put(one)
		sub.Put(two)
	}
	waitFor(t, sub, one, two)
	for i := range 10 * maxTopics {
		sub.Put(Topic(fmt.Sprintf("cli:here:%d", i)))
	}
	<-sub.Woken()
	if threads, many := sub.Take(); len(threads) > 0 || !many {
		t.Errorf("%d threads, %v", len(threads), many)
	}
	quiet(t, sub)
}

// A process that does not read keeps nobody waiting: what its queue cannot hold is lost.
func TestNotifyNeverWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address(open(t, dir), "deaf"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	_, sub := process(t, dir)
	b := In(dir)
	for range 5000 { // more than any queue holds
		b.Notify(one)
	}
	waitFor(t, sub, one)
	if _, err := os.Stat(filepath.Join(dir, "deaf")); err != nil {
		t.Errorf("a socket that is only full was removed: %v", err)
	}
}
