package workrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/work"
)

// SharedMembers are the processes that work on the tasks of a database that several nodes
// share. Each owns its name while its node lives; a memo says who it is.
type SharedMembers struct {
	Owner owner.Owner
	Memos Memos
	// Held returns the names that live nodes own.
	Held func(ctx context.Context) (map[owner.Name]bool, error)
	Now  func() time.Time
}

// Memos stores who the workers are.
type Memos interface {
	Remember(ctx context.Context, kind, key string, value []byte) error
	Memos(ctx context.Context, kind string) ([]journal.Memo, error)
	Forget(ctx context.Context, kind, key string) error
}

const (
	workerMemo = "worker"
	memberTime = 5 * time.Second // for one database query
	memberLook = time.Second     // between attempts to get a lost name back
)

// Join makes this process a worker until Leave.
func (m *SharedMembers) Join(who work.Worker) (Membership, error) {
	if !validName().MatchString(who.Name) {
		return nil, fmt.Errorf("%q is not a valid worker name: use letters, digits, dots and hyphens, at most 63", who.Name)
	}
	who.Since = m.Now()
	ctx, cancel := context.WithTimeout(context.Background(), memberTime)
	defer cancel()
	held, err := m.Owner.Take(ctx, owner.Worker(who.Name))
	if errors.Is(err, owner.ErrHeld) {
		return nil, ErrNameTaken
	}
	if err == nil {
		if err = m.write(ctx, who); err != nil {
			held.Release()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("join the workers: %w", err)
	}
	own := &sharedMember{members: m, who: who}
	staying, stop := context.WithCancel(context.Background())
	own.stop = stop
	own.stays.Go(func() { own.stay(staying, held) })
	return own, nil
}

func (m *SharedMembers) write(ctx context.Context, who work.Worker) error {
	words, err := json.Marshal(who)
	if err != nil {
		return err
	}
	return m.Memos.Remember(ctx, workerMemo, who.Name, words)
}

// sharedMember is this process among the workers.
type sharedMember struct {
	members *SharedMembers
	who     work.Worker
	stop    context.CancelFunc
	stays   sync.WaitGroup
}

// stay keeps the name, and takes it again after losing it: others may have the tasks by then, but not the name.
func (o *sharedMember) stay(ctx context.Context, held owner.Held) {
	for {
		select {
		case <-ctx.Done():
			held.Release()
			return
		case <-held.Context().Done():
		}
		held.Release()
		for held = nil; held == nil; {
			var err error
			if held, err = owner.Await(ctx, o.members.Owner, owner.Worker(o.who.Name), memberLook); err == nil {
				break
			}
			if !await.For(ctx, memberLook) {
				return
			}
		}
	}
}

// Draining announces that this worker takes no more tasks.
func (o *sharedMember) Draining() error {
	ctx, cancel := context.WithTimeout(context.Background(), memberTime)
	defer cancel()
	o.who.Draining = true
	return o.members.write(ctx, o.who)
}

// Leave ends the membership. Others take over its remaining tasks.
func (o *sharedMember) Leave() {
	o.stop()
	o.stays.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), memberTime)
	defer cancel()
	_ = o.members.Memos.Forget(ctx, workerMemo, o.who.Name) // it is listed only while it owns the name
}

// Alive reports whether a worker with that name is running. In doubt it returns true,
// because a healthy worker's tasks must not be taken from it.
func (m *SharedMembers) Alive(name string) bool {
	if name == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), memberTime)
	defer cancel()
	held, err := m.Held(ctx)
	return err != nil || held[owner.Worker(name)]
}

// List returns the running workers by name.
func (m *SharedMembers) List() ([]work.Worker, error) {
	ctx, cancel := context.WithTimeout(context.Background(), memberTime)
	defer cancel()
	held, err := m.Held(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	memos, err := m.Memos.Memos(ctx, workerMemo)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	var out []work.Worker
	for _, memo := range memos {
		var who work.Worker
		if !held[owner.Worker(memo.Key)] || json.Unmarshal(memo.Value, &who) != nil {
			continue
		}
		who.Heartbeat = m.Now() // its node is alive
		out = append(out, who)
	}
	slices.SortFunc(out, func(a, b work.Worker) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
