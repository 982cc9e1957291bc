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

// Repositories in folders below a root. A repository whose settings or hooks start something is
// guarded by mounts, like the root's own. A repository with only harmless settings may be changed and
// deleted by a command, which mounts would prevent. It is checked after each command, like a new one,
// and anything that git outside would start is set aside.

const (
	maxFolders = 50_000 // folders of a root that are searched
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

// begin records that the command starts now. settle later checks what it left.
func (v *view) begin() {
	for _, t := range v.trees {
		v.begun = append(v.begun, t.begin())
	}
}

// lookAgain makes the next command search for repositories again,
// because it may come much later than this one.
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

// trees holds the roots whose repositories are known, by path.
type trees struct {
	mu   sync.Mutex
	root map[string]*tree
}

// of returns the tree of a root.
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

// forget drops roots in which nothing runs. Everything was checked after
// each command, so the next one may trust what it finds.
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
	partly  bool                 // it has more folders than are searched
	said    bool                 // people were told so
	known   map[string]*nestedAt // by path
	running []*time.Time         // start times of the commands that run here
}

// nestedAt is a repository below a root, as it was when last checked.
type nestedAt struct {
	state    gitState
	harmless bool
}

// gitState is what determines which programs git starts: the identity and change time
// of every file that git consults. Nobody can set that time.
type gitState struct {
	dotGit  fileID
	common  string // where settings and hooks are, resolved; "" if nowhere
	gitDir  string
	files   [6]fileTime
	touched unix.StatxTimestamp // time of the .git itself, which every commit changes
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

// same reports whether git would read the same as before.
func (s gitState) same(old gitState) bool {
	s.touched, old.touched = unix.StatxTimestamp{}, unix.StatxTimestamp{}
	return s == old
}

// changedSince reports whether any of the files was changed after the time. With all, the
// .git itself counts too, because it is a different one than before.
func (s gitState) changedSince(start time.Time, all bool) bool {
	after := func(t unix.StatxTimestamp) bool { return !time.Unix(t.Sec, int64(t.Nsec)).Before(start) }
	if all && after(s.touched) {
		return true
	}
	return slices.ContainsFunc(s.files[:], func(f fileTime) bool { return f != fileTime{} && after(f.changed) })
}

// needMounts returns the repositories that need mounts. Commands are not
// responsible for what existed before the first one.
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

// lookAgain forgets that the tree was searched, unless a command has started in
// it since: its changes must be told from those of others.
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

// startsNothing reports whether the settings and hooks of a git folder are harmless.
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

// begin records that a command starts. It allows for a file system clock that is one tick behind.
func (t *tree) begin() *time.Time {
	start := time.Now().Add(-20 * time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.used = true, true // anything found from now on may be the command's own
	t.running = append(t.running, &start)
	return &start
}

func (t *tree) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running) > 0
}

// end checks what a command left and returns what had to be set aside. v is what the command saw, and begun
// is what begin returned. It may also find what another, still running command makes.
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

// settle checks one place.
func (t *tree) settle(v *view, p gitfind.Place, start time.Time) (note string, n *nestedAt, err error) {
	old, state := t.known[p.Path], stateOf(p.Path)
	if old != nil && state.same(old.state) {
		old.state = state
		return "", old, nil
	}
	another := old == nil || old.state.dotGit != state.dotGit || old.state.gitDir != state.gitDir || old.state.common != state.common
	if !p.Unread && !state.changedSince(start, another) {
		return "", newNested(p.Path), nil // not made by the command
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
		// A worktree leads to its repository. Anything else that leads away does not stay.
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
