package approved

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/lockfile"
	"chorus/internal/skill"
)

// A view is the folder in which agents of one place read skills. It contains copies, by name, of the approved
// skills that are on there, with the paths in their texts changed to the view's own. The view's folder stays
// as long as the place does, so that sandboxes which have mounted it see what is put into it.

// ViewDir returns the view of a place. It need not exist.
func (l *Library) ViewDir(where skill.Where) string { return l.viewDir(where.Sources()) }

func (l *Library) viewDir(sources []skill.Source) string {
	var key strings.Builder
	for _, s := range sources {
		key.WriteString(s.Dir)
		key.WriteByte(0)
	}
	return filepath.Join(l.Home.Dir(), "cache", "skills", ShortID(key.String()))
}

// Looked is the result of a look at a place's skills.
type Looked struct {
	On       []Skill  // what the view contains
	All      []Skill  // everything that was found, on or not
	Problems []string // sentences for people
}

// View updates the view of a place and lists its contents. If nothing
// has changed, it only checks the times of files.
func (l *Library) View(where skill.Where) (Looked, error) {
	sources := where.Sources()
	list, problems := l.find(sources)
	out := Looked{All: list, Problems: problems}
	wanted := map[string]string{}
	for _, s := range list {
		if s.Status == On {
			out.On = append(out.On, s)
			wanted[s.Name] = s.Record.Digest
		}
	}
	dir := l.viewDir(sources)
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.views[dir]; ok && maps.Equal(held, wanted) {
		return out, nil
	}
	if _, ok := l.views[dir]; !ok && len(wanted) == 0 {
		if _, err := os.Stat(manifestOf(dir)); errors.Is(err, os.ErrNotExist) { // nothing was ever put there
			return out, nil
		}
	}
	made, failed, err := l.sync(dir, out.On)
	if err != nil {
		return Looked{All: list, Problems: problems}, fmt.Errorf("skills are left out: %w", err)
	}
	if l.views == nil {
		l.views = map[string]map[string]string{}
	}
	l.views[dir] = made
	if len(failed) > 0 {
		out.Problems = append(out.Problems, failed...)
		delete(l.views, dir) // so that it is tried again
	}
	out.On = slices.DeleteFunc(out.On, func(s Skill) bool { return made[s.Name] == "" })
	return out, nil
}

// viewed is a skill in a view: what was approved, and the digest of its form in the view.
type viewed struct {
	Approved string `json:"approved"`
	Here     string `json:"here"`
}

func manifestOf(dir string) string { return dir + ".json" }

// viewTime is how long another process may be busy with a view: it copies a few megabytes.
const viewTime = 10 * time.Second

// sync makes a view contain exactly these skills. A skill that cannot be
// put there is named, and the others are not affected.
func (l *Library) sync(dir string, on []Skill) (made map[string]string, failed []string, err error) {
	if _, err := l.Home.Ensure(dir); err != nil {
		return nil, nil, err
	}
	var lock *lockfile.Lock
	for late := time.Now().Add(viewTime); ; time.Sleep(10 * time.Millisecond) {
		if lock, err = lockfile.Try(dir+".lock", nil); err == nil {
			break
		}
		if !errors.Is(err, lockfile.ErrHeld) || time.Now().After(late) {
			return nil, nil, err
		}
	}
	defer lock.Release()
	manifest := map[string]viewed{}
	if data, err := os.ReadFile(manifestOf(dir)); err == nil {
		_ = json.Unmarshal(data, &manifest) // anything missing from it is made again
	}
	kept := map[string]viewed{}
	made = map[string]string{}
	for _, s := range on {
		at, before := filepath.Join(dir, s.Name), manifest[s.Name]
		if before.Approved == s.Record.Digest {
			if tree, err := skill.ReadTree(at); err == nil && tree.Digest == before.Here {
				kept[s.Name], made[s.Name] = before, s.Record.Digest
				continue
			}
		}
		here, err := l.put(at, s)
		if err != nil {
			failed = append(failed, fmt.Sprintf("the skill %s is left out: %v", s.Name, err))
			continue
		}
		kept[s.Name], made[s.Name] = viewed{s.Record.Digest, here}, s.Record.Digest
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if _, ok := kept[e.Name()]; !ok {
			if err := discard(filepath.Join(dir, e.Name())); err != nil {
				return nil, nil, err
			}
		}
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, nil, err
	}
	return made, failed, datadir.WriteFile(manifestOf(dir), data, 0o600)
}

// discard removes a folder from a view in one step, so that nobody sees half of it.
func discard(at string) error {
	gone, err := os.MkdirTemp(filepath.Dir(filepath.Dir(at)), ".old-*")
	if err != nil {
		return err
	}
	if err := os.Rename(at, filepath.Join(gone, "x")); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = os.RemoveAll(gone)
		return err
	}
	return os.RemoveAll(gone)
}

// put copies an approved skill into a view, adapts its paths, and returns the digest of the result.
func (l *Library) put(at string, s Skill) (string, error) {
	from := filepath.Join(l.copies(), s.Record.Digest)
	tree, err := skill.ReadTree(from)
	if err != nil && s.Tree.Digest == s.Record.Digest {
		// It was approved on another machine. The skill here is the same,
		// or is found to differ while it is copied.
		if err = l.keep(s); err == nil {
			tree, err = skill.ReadTree(from)
		}
	}
	if err != nil || tree.Digest != s.Record.Digest {
		return "", errors.New("the copy that was approved is gone or was changed; approve it again")
	}
	if err := discard(at); err != nil {
		return "", err
	}
	// The new folder is made outside the view, on the same file system.
	made, err := os.MkdirTemp(filepath.Dir(filepath.Dir(at)), ".new-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(made) }()
	whole := filepath.Join(made, s.Name)
	if err := os.Mkdir(whole, 0o755); err != nil {
		return "", err
	}
	err = copyTree(from, whole, tree, func(name string, data []byte) []byte {
		if path.Ext(name) != ".md" {
			return data
		}
		return []byte(skill.Translate(string(data), s.Name, s.Dir, at))
	})
	if err != nil {
		return "", err
	}
	here, err := skill.ReadTree(whole)
	if err != nil {
		return "", err
	}
	return here.Digest, os.Rename(whole, at)
}
