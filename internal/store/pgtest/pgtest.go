// Package pgtest gives tests a real PostgreSQL: the distribution's, as a private cluster on loopback.
//
// No two tests share a database, and the server dies with the test program however that ends. A
// test that cannot have a server logs clearly that it checked nothing; with CI=true it fails.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxWait is how long creating or starting a cluster may take on a busy machine.
const maxWait = 2 * time.Minute

// The cluster that the tests of one program share, and the number of its last database.
var (
	shared    = sync.OnceValues(func() (*Cluster, error) { return start(os.TempDir(), "-F") })
	databases atomic.Int64
)

// Database returns the URL of a new, empty database in the cluster that all
// tests of this program share. It is dropped with the test.
func Database(t testing.TB) string {
	t.Helper()
	need(t)
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return c.Database(t)
}

// New starts a cluster that the test may stop, kill and start again. Like a real server it syncs to disk.
func New(t testing.TB) *Cluster {
	t.Helper()
	need(t)
	c, err := start(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		_ = os.RemoveAll(c.dir)
	})
	return c
}

// Start is New for programs other than tests. The returned function stops the server and removes its folder.
func Start() (*Cluster, func(), error) {
	c, err := start(os.TempDir())
	if err != nil {
		return nil, nil, err
	}
	return c, func() {
		c.Kill()
		_ = os.RemoveAll(c.dir)
	}, nil
}

func need(t testing.TB) {
	t.Helper()
	_, err := program("initdb")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skipf("SKIPPED: %v, so nothing was tried on PostgreSQL", err)
	}
}

// Cluster is a running server with a folder of its own.
type Cluster struct {
	dir   string
	port  int
	flags []string
	as    *syscall.Credential // the user to run as: PostgreSQL refuses root

	mu   sync.Mutex
	stop func(syscall.Signal) // nil while it does not run
}

// URL returns the address of a database of this cluster.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

// Addr returns where the server listens.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// Database creates a new, empty database and drops it with the test.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("chorus_%d", databases.Add(1))
	if err := c.exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") }) // the server may be gone
	return c.URL(name)
}

func (c *Cluster) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// Stop shuts the server down as an administrator would: connections are closed, and nothing committed is lost.
func (c *Cluster) Stop() { c.signal(syscall.SIGINT) }

// Kill ends the server and all its processes at once.
func (c *Cluster) Kill() { c.signal(syscall.SIGQUIT) }

func (c *Cluster) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop(s)
		c.stop = nil
	}
}

// Start starts a server that was stopped or killed, on its previous port, and waits until it answers.
func (c *Cluster) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return nil
	}
	postgres, err := program("postgres")
	if err != nil {
		return err
	}
	args := append([]string{"-D", filepath.Join(c.dir, "data"), "-k", c.dir, "-h", "127.0.0.1", "-p", strconv.Itoa(c.port),
		"-c", "max_connections=200", "-c", "shared_buffers=32MB", "-c", "autovacuum=off"}, c.flags...)
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(postgres, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent(c.as)
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The server is told to end when the thread that started it ends, so this thread must stay.
		runtime.LockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	c.stop = func(s syscall.Signal) {
		_ = cmd.Process.Signal(s)
		select {
		case <-ended:
		case <-time.After(maxWait):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	if err := c.answers(ended); err != nil {
		c.stop(syscall.SIGQUIT)
		c.stop = nil
		return fmt.Errorf("%w: %s", err, c.tail())
	}
	return nil
}

// answers waits until the server accepts connections.
func (c *Cluster) answers(ended <-chan struct{}) error {
	deadline := time.Now().Add(maxWait)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			err = conn.Close(ctx)
		}
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("PostgreSQL ended while it started")
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		}
	}
}

// tail returns the end of the server's log, to explain a failure.
func (c *Cluster) tail() string {
	text, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-1000):])
}

// start creates a cluster and starts it.
func start(parent string, flags ...string) (*Cluster, error) {
	sweep(parent)
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, flags: flags, as: as}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	if err := makeData(filepath.Join(dir, "data"), as); err != nil {
		return nil, err
	}
	// Somebody else may take the free port before we use it.
	for range 5 {
		if c.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = c.Start(); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// program finds one of PostgreSQL's programs, which Debian does not put into the path.
func program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL (%s) is not installed; apt install postgresql", name)
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}

// unprivileged returns the user for the server if the tests run as root; nil means the current user.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root, and: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// prefix begins the name of every cluster's folder; the id of the process that made it follows.
const prefix = "chorus-pgtest-"

// sweep removes the folders of test programs that have ended.
func sweep(parent string) {
	found, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range found {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}
