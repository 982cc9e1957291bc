package workrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/lockfile"
	"chorus/internal/pattern"
	"chorus/internal/work"
)

// Members are the processes that work on the tasks of a home. Each holds a lock while it lives, so
// that a killed process is known to be gone at once. The lock's file says who it is, and the file's
// time is the last heartbeat. Nothing is written to the database for this.
type Members struct {
	Dir string
	Now func() time.Time
}

// Membership is this process's place among the workers.
type Membership interface {
	// Draining announces that this worker takes no more tasks.
	Draining() error
	// Leave ends the membership. Others take over its remaining tasks.
	Leave()
}

// heartbeat is how often a member signals that it is alive.
const heartbeat = 5 * time.Second

// ErrNameTaken means that a worker with that name is running.
var ErrNameTaken = errors.New("a worker of that name is at work already; choose another with --name")

// validName restricts names to what works as a file name and for people.
var validName = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)

// Member is this process among the workers.
type Member struct {
	members *Members
	lock    *lockfile.Lock
	path    string
	mu      sync.Mutex
	who     work.Worker
	stop    chan struct{}
	beats   sync.WaitGroup
}

// Join makes this process a worker until Leave.
func (m *Members) Join(who work.Worker) (Membership, error) {
	if !validName().MatchString(who.Name) {
		return nil, fmt.Errorf("%q is not a valid worker name: use letters, digits, dots and hyphens, at most 63", who.Name)
	}
	who.Since = m.Now()
	words, err := json.Marshal(who)
	if err != nil {
		return nil, err
	}
	path := m.path(who.Name)
	lock, err := lockfile.Try(path, words)
	for tries := 0; errors.Is(err, lockfile.ErrHeld) && tries < 5; tries++ { // somebody may only be checking
		time.Sleep(10 * time.Millisecond)
		lock, err = lockfile.Try(path, words)
	}
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, ErrNameTaken
	}
	if err != nil {
		return nil, fmt.Errorf("join the workers: %w", err)
	}
	own := &Member{members: m, lock: lock, path: path, who: who, stop: make(chan struct{})}
	own.beats.Go(own.beat)
	return own, nil
}

func (m *Members) path(name string) string { return filepath.Join(m.Dir, name+".lock") }

func (o *Member) beat() {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-o.stop:
			return
		case <-tick.C:
			now := o.members.Now()
			_ = os.Chtimes(o.path, now, now) // the next one may work; a single missed heartbeat does no harm
		}
	}
}

// Draining announces that this worker takes no more tasks.
func (o *Member) Draining() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.who.Draining = true
	words, err := json.Marshal(o.who)
	if err != nil {
		return err
	}
	return os.WriteFile(o.path, words, 0o600)
}

// Leave ends the membership. Others take over its remaining tasks.
func (o *Member) Leave() {
	close(o.stop)
	o.beats.Wait()
	o.lock.Release()
}

// Alive reports whether a worker with that name is running.
func (m *Members) Alive(name string) bool { return name != "" && lockfile.Held(m.path(name)) }

// List returns the running workers by name.
func (m *Members) List() ([]work.Worker, error) {
	files, err := os.ReadDir(m.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	var out []work.Worker
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".lock")
		if !ok || !m.Alive(name) {
			continue
		}
		var who work.Worker
		info, err := f.Info()
		if err != nil || json.Unmarshal(lockfile.Words(m.path(name)), &who) != nil {
			continue // it has just left
		}
		who.Heartbeat = info.ModTime()
		out = append(out, who)
	}
	slices.SortFunc(out, func(a, b work.Worker) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
