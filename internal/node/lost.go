package node

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/room"
	"chorus/internal/schedule"
	"chorus/internal/store/nodes"
)

const (
	// sayWaitsAfter is how long a node may be away before its channels are told. A restart takes less.
	sayWaitsAfter = 10 * time.Second
	lostTime      = 10 * time.Second // limit for writes about a thread whose node is gone
)

// lostLabels records since when no node carries a label, as far as this
// process has checked, and what was said about it.
type lostLabels struct {
	mu    sync.Mutex
	since map[string]time.Time
	told  map[string]map[chat.ThreadID]bool
}

// gone returns how long a label has been without a node.
func (l *lostLabels) gone(label string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = map[string]time.Time{}
	}
	began, known := l.since[label]
	if !known {
		began = now
		l.since[label] = now
	}
	return now.Sub(began)
}

// back forgets that a label was without a node.
func (l *lostLabels) back(label string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, label)
	delete(l.told, label)
}

// first reports whether nothing was said yet about a thread that waits for a label.
func (l *lostLabels) first(label string, thread chat.ThreadID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil {
		l.told = map[string]map[chat.ThreadID]bool{}
	}
	if l.told[label] == nil {
		l.told[label] = map[chat.ThreadID]bool{}
	}
	was := l.told[label][thread]
	l.told[label][thread] = true
	return !was
}

// withoutNode handles a thread whose files are on no living node. It moves the thread here
// with an empty folder if that is allowed; otherwise the thread waits.
func (m *Member) withoutNode(row journal.Thread) error {
	gone := m.lost.gone(row.Placement, m.Now())
	if m.movesHere(row) && gone >= m.MoveAfter {
		return m.moveHere(row)
	}
	waits := fmt.Errorf("this conversation waits for node %s, which has its files (%s); `chorus node label NODE --add %s` lets another node continue it", row.Placement, row.Dir, row.Placement)
	if gone >= sayWaitsAfter && !m.movesHere(row) && m.lost.first(row.Placement, row.ID) {
		m.sayInChannel(row, "waits", row.Placement, fmt.Sprintf("⏳ This conversation waits for node %s, which has its files and is currently unavailable. What you write is kept and answered when the node is back.", row.Placement))
	}
	return waits
}

// movesHere reports whether a thread may continue here without its files: its
// folder was made only for it, and this is a server.
func (m *Member) movesHere(row journal.Thread) bool {
	return m.MoveLost && m.Serving() && ownScratch(row)
}

// ownScratch reports whether a thread works in a folder that was made only for it, in the home of any node.
func ownScratch(row journal.Thread) bool {
	return strings.HasSuffix(filepath.ToSlash(row.Dir), "/"+row.ID.Dir()+"/scratch")
}

// movedThread is the kind of memo that tells a thread's model where it was moved from.
const movedThread = "moved-thread"

// moveHere gives a thread a new folder on this node. If several nodes try this, one succeeds.
func (m *Member) moveHere(row journal.Thread) error {
	ctx, cancel := context.WithTimeout(context.Background(), lostTime)
	defer cancel()
	dir, err := m.Home.Ensure(m.Home.Scratch(row.ID))
	if err != nil {
		return err
	}
	n, err := m.joined()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("This conversation was moved from node %s, which is gone, to node %s. The files that were in its folder (%s) did not come with it: the folder is empty now. Commands that ran there are lost.", row.Placement, n.Name(), row.Dir)
	moved, err := m.DB.MoveThread(ctx, row.ID, row.Placement, n.Name(), dir, movedThread, text)
	if err != nil {
		return fmt.Errorf("move the conversation from node %s: %w", row.Placement, err)
	}
	if !moved { // another node was faster
		return engine.ErrElsewhere
	}
	m.Log.Info("a thread was moved here, its node is gone", "component", "nodes", "event", "thread_moved", "thread", row.ID, "from", row.Placement, "to", n.Name())
	m.sayInChannel(row, "moved", row.Placement, fmt.Sprintf("↪️ Node %s is gone. This conversation continues on node %s, with an empty folder.", row.Placement, n.Name()))
	return nil
}

// MovedNote tells a model that the files of a conversation are gone. It returns "" if they are not.
func (m *Member) MovedNote(ctx context.Context, thread chat.ThreadID) (string, error) {
	text, err := m.DB.Recall(ctx, movedThread, string(thread))
	return string(text), err
}

// sayInChannel posts a text in the channel of a conversation, once per occurrence. It does nothing
// if this process has no suitable bot; the node that has it posts the text.
func (m *Member) sayInChannel(row journal.Thread, what, node, text string) {
	thread := row.ID
	if !m.Channels.HasBot(thread.Transport()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lostTime)
	defer cancel()
	since := m.lostSince(ctx, node)
	target := schedule.Target{Adapter: thread.Transport(), Channel: m.channelOf(ctx, row), Agent: thread.Agent()}
	if err := m.Channels.Announce(ctx, target, fmt.Sprintf("node/%s/%s/%s/%s", what, node, since, thread), text); err != nil {
		m.Log.Warn("a channel was not told what became of its conversation: "+err.Error(), "component", "nodes", "event", "node_lost_not_told", "thread", thread)
	}
}

// channelOf returns where a conversation is shown: where somebody last said something in it, or
// else the channel that it belongs to. The conversation's own name may be that of a message.
func (m *Member) channelOf(ctx context.Context, row journal.Thread) string {
	const newest = 100 // events to check
	_, _, channel := room.PlaceParts(row.ID.Place())
	list, err := m.DB.Events(ctx, row.ID, max(0, row.Next-1-newest), newest)
	if err != nil {
		return channel
	}
	for _, e := range list {
		if said, ok := e.Body.(chat.Received); ok {
			channel = cmp.Or(said.Post, said.Channel, channel)
		}
	}
	return channel
}

// lostSince returns the last process that carried a label, so that each
// loss of it is reported once by each reporter.
func (m *Member) lostSince(ctx context.Context, label string) string {
	list, err := nodes.List(ctx, m.DB)
	if err != nil {
		return ""
	}
	last := nodes.Info{}
	for _, n := range list {
		if n.Dead && slices.Contains(n.Labels, label) && n.Died.After(last.Died) {
			last = n
		}
	}
	return last.ID
}

// ProjectWaits returns the node that has the files of a project if no living node has them.
func (m *Member) ProjectWaits(ctx context.Context, project string) (string, error) {
	if m == nil {
		return "", nil
	}
	label, err := m.DB.Recall(ctx, ProjectPlace, project)
	if err != nil || len(label) == 0 {
		return "", err
	}
	list, err := nodes.List(ctx, m.DB)
	if err != nil || slices.ContainsFunc(list, func(n nodes.Info) bool { return !n.Dead && slices.Contains(n.Labels, string(label)) }) {
		return "", err
	}
	return string(label), nil
}

// BotNode returns the node that has bots of a platform, or "".
func (m *Member) BotNode(platform string) string {
	ctx, cancel := context.WithTimeout(context.Background(), lostTime)
	defer cancel()
	list, err := nodes.List(ctx, m.DB)
	if err != nil {
		return ""
	}
	for _, n := range list {
		if !n.Dead && slices.ContainsFunc(n.Owns, func(name owner.Name) bool { return strings.HasPrefix(string(name), string(owner.Bot(platform, ""))) }) {
			return n.Name
		}
	}
	return ""
}
