package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"chorus/internal/text"
)

// Scopes say where a skill comes from, narrowest first. Of two skills with one name, the narrower is used.
const (
	Repository = "repository"
	Channel    = "channel"
	Agent      = "agent"
	Transport  = "transport"
	Global     = "global"
	User       = "user"
)

// Source is a folder of skills.
type Source struct {
	Scope string
	Dir   string
	// Inside is where its skills must really be, whatever links say; "": anywhere. A repository's
	// skills must be in the repository; people may link their own from anywhere.
	Inside string
}

// Where determines which folders are searched. Fields that do not apply are "".
type Where struct {
	Workspace  string // the working folder
	Repository string // the top of its repository
	Channel    string // folders of the home that have a folder skills
	Agent      string
	Transport  string
	Global     string
	UserHome   string
	ConfigHome string // the person's XDG_CONFIG_HOME
}

// usual are the folders of a repository and of a person that contain skills.
var usual = []string{".agents", ".chorus", ".claude"}

// Sources returns the folders, highest precedence first.
func (w Where) Sources() []Source {
	var out []Source
	add := func(scope, dir, inside string) {
		if dir != "" && !slices.ContainsFunc(out, func(s Source) bool { return s.Dir == dir }) {
			out = append(out, Source{scope, dir, inside})
		}
	}
	for _, top := range []string{w.Workspace, w.Repository} {
		for _, name := range usual {
			if top != "" && top != w.UserHome { // a session in the home directory has no repository's skills
				add(Repository, filepath.Join(top, name, "skills"), cmp.Or(w.Repository, w.Workspace))
			}
		}
	}
	for _, own := range []struct{ scope, dir string }{{Channel, w.Channel}, {Agent, w.Agent}, {Transport, w.Transport}, {Global, w.Global}} {
		if own.dir != "" {
			add(own.scope, filepath.Join(own.dir, "skills"), "")
		}
	}
	if w.UserHome != "" {
		add(User, filepath.Join(w.UserHome, ".agents", "skills"), "")
	}
	if w.ConfigHome != "" {
		add(User, filepath.Join(w.ConfigHome, "agents", "skills"), "")
		add(User, filepath.Join(w.ConfigHome, "chorus", "skills"), "")
	}
	if w.UserHome != "" {
		add(User, filepath.Join(w.UserHome, ".claude", "skills"), "")
	}
	return out
}

// Limits of a search.
const (
	maxEntries = 5000  // of one folder of skills
	MaxSkills  = 500   // of one folder of skills
	maxAll     = 20000 // files of all skills of one search
)

// Found is a skill that was found, or something that looks like one.
type Found struct {
	Skill
	Source Source
	Folder string // its name, even if the skill has none
	Dir    string // where it really is
	Tree   Tree
	Wrong  string // why it cannot be used, as the end of a sentence: "its front matter has no name"
}

// Finder finds skills, and caches what it read as long as nothing changes. The zero
// value is ready to use. It may be used from any goroutine.
type Finder struct {
	mu      sync.Mutex
	folders map[string]*folder
	skills  map[string]*known
}

// folder is the contents of a folder of skills.
type folder struct {
	stamps []stamped
	at     time.Time
	real   string
	names  []string
	links  map[string]bool
	wrong  string // what of it is left out, and why
}

// known is a skill as it was read.
type known struct {
	stamps []stamped
	at     time.Time
	real   string
	found  Found
}

// Find searches the folders. problems are about the folders themselves. If several skills have the same
// name, all are in the list, in the order of their folders. now is the time of the search: what was written
// shortly before is read again by the next one, because file times are coarse.
func (f *Finder) Find(sources []Source, now time.Time) (list []Found, problems []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.folders == nil {
		f.folders, f.skills = map[string]*folder{}, map[string]*known{}
	}
	seen := map[string]bool{}
	files := 0
	for _, source := range sources {
		dir := f.folder(source.Dir, now)
		if dir == nil {
			continue
		}
		if dir.wrong != "" {
			problems = append(problems, dir.wrong)
		}
		for _, name := range dir.names {
			k := f.skill(source, dir, name, now)
			if k == nil || seen[k.real] {
				continue
			}
			seen[k.real] = true
			one := k.found
			one.Source = source
			if files += len(k.stamps); files > maxAll {
				one.Wrong = fmt.Sprintf("there are more than %d files in all skills together; remove some skills", maxAll)
			}
			list = append(list, one)
		}
	}
	return list, problems
}

// folder reads a folder of skills unless it is unchanged. It returns nil if there is none.
func (f *Finder) folder(dir string, now time.Time) *folder {
	if old := f.folders[dir]; old != nil && unchanged(old.stamps, old.at) {
		return old
	}
	delete(f.folders, dir)
	made := &folder{at: now, links: map[string]bool{}}
	own, err := stampOf(dir)
	if err != nil {
		return nil
	}
	if made.real, err = filepath.EvalSymlinks(dir); err != nil {
		return nil
	}
	made.stamps = []stamped{{dir, own}}
	if made.real != dir {
		there, err := stampOf(made.real)
		if err != nil {
			return nil
		}
		made.stamps = append(made.stamps, stamped{made.real, there})
	}
	// A command may have put a pipe there, and opening it would block.
	file, err := os.OpenFile(made.real, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		made.wrong = fmt.Sprintf("%s is left out: %v", dir, text.Cause(err))
		f.folders[dir] = made
		return made
	}
	defer func() { _ = file.Close() }()
	entries, err := file.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil // a file, perhaps
	}
	if len(entries) == maxEntries {
		made.wrong = fmt.Sprintf("%s has %d entries or more; only some are looked at", dir, maxEntries)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		link := e.Type()&os.ModeSymlink != 0
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() && !link {
			continue
		}
		if len(made.names) == MaxSkills {
			made.wrong = fmt.Sprintf("%s has more than %d skills; those behind %s are left out", dir, MaxSkills, made.names[MaxSkills-1])
			break
		}
		made.names = append(made.names, e.Name())
		made.links[e.Name()] = link
	}
	f.folders[dir] = made
	return made
}

// skill reads one skill unless it is unchanged. It returns nil if there is none.
func (f *Finder) skill(source Source, dir *folder, name string, now time.Time) *known {
	at := filepath.Join(source.Dir, name)
	real := filepath.Join(dir.real, name)
	old := f.skills[at]
	if old != nil && (dir.links[name] || old.real == real) && unchanged(old.stamps, old.at) {
		return old
	}
	delete(f.skills, at)
	k := &known{at: now, real: real}
	if dir.links[name] {
		own, err := stampOf(real)
		if err != nil {
			return nil
		}
		k.stamps = append(k.stamps, stamped{real, own})
		if k.real, err = filepath.EvalSymlinks(real); err != nil {
			return nil
		}
	}
	if _, err := stampOf(filepath.Join(k.real, File)); err != nil {
		return nil
	}
	k.found = Found{Folder: name, Dir: k.real}
	inside := source.Inside
	if inside != "" {
		if there, err := filepath.EvalSymlinks(inside); err == nil {
			inside = there
		}
		if k.real != inside && !strings.HasPrefix(k.real, strings.TrimSuffix(inside, "/")+"/") {
			k.found.Wrong = "it is a link that leads out of the repository"
			f.skills[at] = k
			return k
		}
	}
	r := &reading{dir: k.real}
	err := r.read()
	k.stamps = append(k.stamps, r.stamps...)
	if err == nil {
		k.found.Tree = r.tree
		k.found.Skill, err = Parse(name, r.main)
	}
	if err != nil {
		k.found.Wrong = err.Error()
	}
	k.found.Name = cmp.Or(k.found.Name, name)
	f.skills[at] = k
	return k
}
