package documents

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/datadir"
	"chorus/internal/digest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that remembers every text that was ever written to it.
type memory struct {
	mu    sync.Mutex
	docs  map[string]Document
	seq   int64
	texts map[string]bool
	id    string
}

var _ Store = (*memory)(nil)

func newMemory() *memory {
	return &memory{docs: map[string]Document{}, texts: map[string]bool{}, id: "a database"}
}

func (m *memory) Get(_ context.Context, name string) (Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.docs[name]
	d.Name = name
	return d, nil
}

func (m *memory) Head(ctx context.Context, name string) (Head, error) {
	d, err := m.Get(ctx, name)
	return d.Head, err
}

func (m *memory) change(to Document) (Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.docs[to.Name].Version != to.Version-1 {
		return Head{}, ErrMoved
	}
	m.seq++
	to.Seq = m.seq
	m.docs[to.Name] = to
	m.texts[string(to.Body)] = true
	return to.Head, nil
}

func (m *memory) Put(_ context.Context, name string, body []byte, on int64, _ string) (Head, error) {
	return m.change(Document{Head{Name: name, Version: on + 1, Digest: digest.Of(body)}, body})
}

func (m *memory) Delete(_ context.Context, name string, on int64, _ string) (Head, error) {
	return m.change(Document{Head: Head{Name: name, Version: on + 1, Deleted: true}})
}

func (m *memory) List(_ context.Context, prefix string) ([]Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Head
	for _, name := range slices.Sorted(maps.Keys(m.docs)) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, m.docs[name].Head)
		}
	}
	return out, nil
}

func (m *memory) Changed(context.Context, int64) ([]Head, error) { return nil, nil }

func (m *memory) Last(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seq, nil
}

func (m *memory) Identity(context.Context) (string, error) { return m.id, nil }

// node is one home on a store.
type node struct {
	*Copies
	t      testing.TB
	warned []string
}

func newNode(t testing.TB, s Store) *node {
	t.Helper()
	return at(t, s, t.TempDir())
}

// at is the next process of a home.
func at(t testing.TB, s Store, dir string) *node {
	t.Helper()
	home, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t}
	n.Copies = &Copies{Home: home, Store: s, By: "a node", Kinds: []Kind{
		{Patterns: []string{"settings.json", "guilds/*.json", "agents/*/agent.json"}},
		{Patterns: []string{"models.json"}, Spare: true},
		{Trees: []string{"skills"}},
		{Trees: []string{"agents/*/docs"}, With: func(name string) string { return strings.Join(strings.Split(name, "/")[:2], "/") + "/agent.json" }}},
		Warn: func(text string) { n.warned = append(n.warned, text) }}
	return n
}

func (n *node) edit(name, text string) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.Path(name)), 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(n.Path(name), []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) delete(name string) {
	n.t.Helper()
	if err := os.Remove(n.Path(name)); err != nil {
		n.t.Fatal(err)
	}
}

// sync is what a ring or the sweep does.
func (n *node) sync() {
	n.t.Helper()
	if err := n.SyncAll(n.t.Context(), ""); err != nil {
		n.t.Fatal(err)
	}
}

// text is what the file says; "" where there is none.
func (n *node) text(name string) string {
	n.t.Helper()
	data, err := os.ReadFile(n.Path(name))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	return string(data)
}

func (n *node) expect(name, want string) {
	n.t.Helper()
	if got := n.text(name); got != want {
		n.t.Errorf("%s says %q, want %q", name, got, want)
	}
}

// beside are the texts that were put aside.
func (n *node) beside(name string) []string {
	n.t.Helper()
	paths, err := filepath.Glob(n.Path(name) + ".replaced-*")
	if err != nil {
		n.t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			n.t.Fatal(err)
		}
		out = append(out, string(data))
	}
	return out
}
