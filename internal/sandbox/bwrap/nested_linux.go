package bwrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"chorus/internal/plainfile"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap/gitfind"
)

// Repositories in folders below a root. One with settings or hooks that start something
// is guarded by mounts as the root's own is. One that only has what is harmless is a
// command's to change and to delete, which mounts would forbid: it is looked at after
// each command, as a new one is, and what git outside would start is set aside.

const (
	maxFolders = 50_000 // of a root that are looked at
	maxMounted = 256    // repositories that are guarded by mounts
)

// guardNested protects the repositories in folders below the root.
func (v *view) guardNested(t *tree) error {
	for _, path := range t.needMounts() {
		gitDir, common := resolveGit(path)
		if common == "" || slices.Contains(v.guarded, common) || !slices.ContainsFunc(v.places(common), v.writableAt) {
			continue
		}
		var err error
		if filepath.Base(path) == ".git" {
			err = v.guardTree(filepath.Dir(path))
		} else {
			err = v.guardGit(gitDir)
		}
		if err != nil {
			return err
		}
	}
	v.trees = append(v.trees, t)
	return nil
}

// begin notes that the command starts now; settle looks at what it left.
func (v *view) begin() {
	for _, t := range v.trees {
		v.begun = append(v.begun, t.begin())
	}
}

// lookAgain has the next command look for repositories, since it may come much later than this.
func (v *view) lookAgain() {
	for _, t := range v.trees {
		t.lookAgain()
	}
}

func (v *view) settleNested() (notes []string, err error) {
	for i, begun := range v.begun {
		found, failed := v.trees[i].end(v, begun)
		notes, err = append(notes, found...), errors.Join(err, failed)
	}
	v.begun = nil
	return notes, err
}

// trees are the roots whose repositories are known, by path.
type trees struct {
	mu   sync.Mutex
	root map[string]*tree
}

// of is the tree of a root.
func (t *trees) of(root string) *tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.root[root]; found != nil {
		return found
	}
	if t.root == nil || len(t.root) >= maxAll {
		t.forget()
	}
	t.root[root] = &tree{root: root, find: gitfind.New(root, maxFolders)}
	return t.root[root]
}

// forget drops what is known of roots where nothing runs: after each command everything
// was looked at, so the next one may take what it finds for settled.
func (t *trees) forget() {
	kept := map[string]*tree{}
	for root, known := range t.root {
		if known.busy() {
			kept[root] = known
		}
	}
	t.root = kept
}

// tree is a root with the repositories in folders below it.
type tree struct {
	root string

	mu      sync.Mutex
	find    *gitfind.Tree
	looked  bool
	used    bool                 // a command has run in it
	partly  bool                 // it has more folders than are looked at
	said    bool                 // and that was said
	known   map[string]*nestedAt // by path
	running []*time.Time         // since when commands run in here
}

// nestedAt is a repository below a root, as it was when it was last looked at.
type nestedAt struct {
	state    gitState
	harmless bool
}

// gitState is what decides which programs git starts: the identity and the time of change of
// every file that it asks. Nobody can set that time.
type gitState struct {
	dotGit  fileID
	common  string // where settings and hooks are, resolved; "" when nowhere
	gitDir  string
	files   [6]fileTime
	touched unix.StatxTimestamp // the .git itself: every commit changes that
}

type fileTime struct {
	id      fileID
	changed unix.StatxTimestamp
}

func stateOf(path string) (s gitState) {
	at, err := statusOf(path)
	if err != nil {
		return s
	}
	s.dotGit, s.touched = idOf(at), at.Ctime
	s.gitDir, s.common = resolveGit(path)
	for i, file := range []string{
		filepath.Join(s.gitDir, "config.worktree"), filepath.Join(s.gitDir, "commondir"),
		filepath.Join(s.common, "config"), filepath.Join(s.common, "hooks"), filepath.Join(s.common, "config.worktree"), filepath.Join(s.common, "commondir"),
	} {
		if s.gitDir == "" {
			break
		}
		if status, err := statusOf(file); err == nil {
			s.files[i] = fileTime{idOf(status), status.Ctime}
		}
	}
	return s
}

// resolveGit follows a .git as git does: to its folder, and to the one with settings and hooks.
func resolveGit(path string) (gitDir, common string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", ""
	case info.IsDir():
		if gitDir, err = withoutLinks(path); err != nil {
			return "", ""
		}
	default:
		if gitDir = gitFile(path); gitDir == "" {
			return "", ""
		}
	}
	text, err := plainfile.Read(filepath.Join(gitDir, "commondir"), smallFile)
	if err != nil {
		return gitDir, gitDir
	}
	common = strings.TrimRight(string(text), "\r\n")
	if !filepath.IsAbs(common) {
		common = filepath.Join(gitDir, common)
	}
	if common, err = withoutLinks(common); err != nil {
		return gitDir, gitDir
	}
	return gitDir, common
}

// same says whether git would be told the same as before.
func (s gitState) same(old gitState) bool {
	s.touched, old.touched = unix.StatxTimestamp{}, unix.StatxTimestamp{}
	return s == old
}

// changedSince says whether anything in it was changed after the time; all says that the .git
// itself counts, because it is another one than before.
func (s gitState) changedSince(start time.Time, all bool) bool {
	after := func(t unix.StatxTimestamp) bool { return !time.Unix(t.Sec, int64(t.Nsec)).Before(start) }
	if all && after(s.touched) {
		return true
	}
	return slices.ContainsFunc(s.files[:], func(f fileTime) bool { return f != fileTime{} && after(f.changed) })
}

// needMounts are the repositories that need mounts. What was there before the first
// command is nobody's doing here.
func (t *tree) needMounts() (mounted []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.looked {
		t.looked = true
		known := map[string]*nestedAt{}
		for _, p := range t.look() {
			if known[p.Path] = t.known[p.Path]; known[p.Path] == nil || !stateOf(p.Path).same(known[p.Path].state) {
				known[p.Path] = newNested(p.Path)
			}
		}
		t.known = known
	}
	for path, n := range t.known {
		if !n.harmless {
			mounted = append(mounted, path)
		}
	}
	slices.Sort(mounted)
	if len(mounted) > maxMounted {
		t.partly, mounted = true, mounted[:maxMounted]
	}
	return mounted
}

// lookAgain forgets that the tree was looked at, unless a command has begun in it since: what that did must be told from what others did.
func (t *tree) lookAgain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked = t.looked && t.used
}

func (t *tree) look() []gitfind.Place {
	places, complete := t.find.Look()
	t.partly = t.partly || !complete
	return places
}

func newNested(path string) *nestedAt {
	n := &nestedAt{state: stateOf(path)}
	n.harmless = n.state.gitDir == "" || startsNothing(n.state.common) && !exists(filepath.Join(n.state.gitDir, "config.worktree"))
	return n
}

// startsNothing says whether settings and hooks of a git folder are harmless.
func startsNothing(gitDir string) bool {
	if hasHooks(filepath.Join(gitDir, "hooks")) || exists(filepath.Join(gitDir, "config.worktree")) {
		return false
	}
	config := filepath.Join(gitDir, "config")
	if !exists(config) {
		return true
	}
	_, all := harmlessSettings(config, nil)
	return all
}

// begin notes that a command starts. The clock of a file system may be a tick behind.
func (t *tree) begin() *time.Time {
	start := time.Now().Add(-20 * time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.used = true, true // what it finds from now on may be its own
	t.running = append(t.running, &start)
	return &start
}

func (t *tree) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running) > 0
}

// end looks at what a command left, and says what had to be set aside. v is what it saw, and begun
// what begin gave. What another one makes, that still runs, may be found here as well.
func (t *tree) end(v *view, begun *time.Time) (notes []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start := *slices.MinFunc(t.running, func(a, b *time.Time) int { return a.Compare(*b) })
	t.running = slices.DeleteFunc(t.running, func(other *time.Time) bool { return other == begun })
	known := make(map[string]*nestedAt, len(t.known))
	for _, p := range t.look() {
		note, n, failed := t.settle(v, p, start)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("look at what the command left in %s: %w", p.Path, failed))
			continue
		}
		if note != "" {
			notes = append(notes, note)
		}
		known[p.Path] = n
	}
	t.known = known
	if t.partly && !t.said {
		t.said = true
		notes = append(notes, fmt.Sprintf("[sandbox: %s has more than %d folders or %d repositories; settings and hooks of git in the others are not guarded]", t.root, maxFolders, maxMounted))
	}
	return notes, err
}

// settle looks at one place.
func (t *tree) settle(v *view, p gitfind.Place, start time.Time) (note string, n *nestedAt, err error) {
	old, state := t.known[p.Path], stateOf(p.Path)
	if old != nil && state.same(old.state) {
		old.state = state
		return "", old, nil
	}
	another := old == nil || old.state.dotGit != state.dotGit || old.state.gitDir != state.gitDir || old.state.common != state.common
	if !p.Unread && !state.changedSince(start, another) {
		return "", newNested(p.Path), nil // somebody else's
	}
	note, err = v.clearNested(t.root, state)
	return note, newNested(p.Path), err
}

// clearNested sets aside what the command may have left in a repository below the root.
func (v *view) clearNested(root string, s gitState) (note string, err error) {
	var notes []string
	for _, dir := range slices.Compact([]string{s.gitDir, s.common}) {
		if dir == "" || slices.Contains(v.guarded, dir) || !slices.ContainsFunc(v.places(dir), v.writableAt) {
			continue
		}
		// A worktree leads to its repository; anything else that leads away does not.
		var keep []string
		if dir == s.gitDir && dir != s.common && (slices.Contains(v.guarded, s.common) || isGitDir(s.common)) && sandbox.Within(dir, s.common) {
			keep = []string{"commondir"}
		}
		note, err := clearGitDir(dir, root, keep...)
		if err != nil {
			return "", err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return strings.Join(notes, "\n"), nil
}
