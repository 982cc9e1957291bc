// Package agents stores the agents: for each a folder below the home with its agent.json, docs,
// sessions, processes and a git workspace, and a row in the store with the same contents.
//
// The contents of an agent.json are a document (internal/documents) that the homes of all
// machines on one store share; each home has a folder for the agent.
//
// It promises that a difference between file and row lasts only until somebody reads the agent.
// The file is written first, and a file that differs from the row (a crash in between, a
// person's editor) wins as soon as it is valid. Until then the row, the last good version,
// applies. An agent is created completely or not at all.
package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/documents"
	"chorus/internal/suggest"
)

// The errors that callers distinguish.
var (
	ErrUnknown = errors.New("there is no such agent")
	ErrExists  = errors.New("there is already an agent of that name")
	ErrMoved   = errors.New("somebody else has changed the agent meanwhile")
	ErrName    = errors.New("an agent's name is 2 to 32 of a–z, 0–9 and hyphens, none at its ends")
)

// Rows is the database's side. Agent returns false if there is none.
// Deleting what does not exist is no error.
type Rows interface {
	PutAgent(ctx context.Context, a Agent) error
	Agent(ctx context.Context, name string) (Agent, bool, error)
	Agents(ctx context.Context) ([]Agent, error)
	DeleteAgent(ctx context.Context, name string) error
}

// Config is what a Store needs. Home and Rows must be set.
type Config struct {
	Home *datadir.Home
	Rows Rows
	// Model and Profile return what is wrong with a name, or nil. If the functions are nil, nothing is
	// wrong. They are never called for an empty model, which means the default.
	Model   func(name string) error
	Profile func(name string) error
	// Other parses a setting that is not one of ours. It returns the setting's path in the file and its
	// value. Knows reports whether a name at the top of the file is such a setting. nil: there are none.
	Other func(key, value string) (path string, read json.RawMessage, err error)
	Knows func(name string) bool
	// BuiltIn returns the present form of each built-in agent; nil: there are
	// none. A file for one of them contains only what differs.
	BuiltIn map[string]func() Agent
	// Documents keeps the files of agents equal to those of other homes;
	// nil: there is no other home. It must know Kind.
	Documents *documents.Copies
	// Warn receives problems that do not stop anything.
	Warn func(text string)
	// GitInit makes a folder a repository; nil: the git program.
	GitInit func(ctx context.Context, dir string) error
	Now     func() time.Time
}

// Store stores the agents of one home. It is safe for concurrent use.
type Store struct {
	Config
	mu sync.Mutex // one change at a time; files and rows are read together
}

// New returns a store. It touches nothing.
func New(c Config) *Store {
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
	if c.GitInit == nil {
		c.GitInit = gitInit
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Store{Config: c}
}

// The parts of an agent's folder.
const (
	fileName     = "agent.json"
	docsDir      = "docs"
	sessionsDir  = "sessions"
	processesDir = "processes"
	workspaceDir = "workspace"
)

// Workspace returns where an agent works.
func (r *Store) Workspace(name string) string {
	return filepath.Join(r.Home.AgentDir(name), workspaceDir)
}

func (r *Store) file(name string) string { return filepath.Join(r.Home.AgentDir(name), fileName) }

// Exists reports whether there is an agent of that name: somebody created it, or it is built in.
func (r *Store) Exists(name string) bool {
	_, builtIn := r.BuiltIn[name]
	return builtIn || r.Made(name)
}

// Made reports whether an agent has its own folder.
func (r *Store) Made(name string) bool {
	info, err := os.Stat(r.Home.AgentDir(name))
	return chat.ValidAgentName(name) && err == nil && info.IsDir()
}

// AsBuilt reports whether an agent is built in and still has its built-in tools.
func (r *Store) AsBuilt(a Agent) bool {
	define, ok := r.BuiltIn[a.Name]
	if !ok {
		return false
	}
	def := define()
	return slices.Equal(a.Tools, def.Tools) && slices.Equal(a.RareTools, def.RareTools)
}

// Get finds an agent and repairs differences. With a *FileError the agent is
// the last good version; with any other error it is empty.
func (r *Store) Get(ctx context.Context, name string) (Agent, error) {
	if !chat.ValidAgentName(name) {
		return Agent{}, fmt.Errorf("agent %.80q: %w", name, ErrName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.get(ctx, name)
}

func (r *Store) get(ctx context.Context, name string) (Agent, error) {
	if err := errors.Join(r.checkNotes(), r.sync(ctx, name)); err != nil {
		return Agent{}, err
	}
	row, known, err := r.Rows.Agent(ctx, name)
	if err != nil {
		return Agent{}, fmt.Errorf("look up agent %s: %w", name, err)
	}
	return r.heal(ctx, name, row, known)
}

// heal makes the row equal to the file or, if only the file is missing, the file equal to the row. If
// a folder once existed here and is gone, its row is removed: the agent's destruction was
// interrupted, or somebody deleted it by hand. If the folder never existed here, it is created:
// others who use the same store created the agent in their own homes.
func (r *Store) heal(ctx context.Context, name string, row Agent, known bool) (Agent, error) {
	data, err := os.ReadFile(r.file(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.healMissing(ctx, name, row, known)
	case err != nil:
		return row, &FileError{Path: r.file(name), Err: err}
	}
	a, err := parse(r.file(name), data)
	if err == nil {
		err = r.check(&a, name)
	}
	if err != nil {
		return row, err
	}
	if known && same(a, row) {
		return a, r.noteFolder(name)
	}
	if err := r.Rows.PutAgent(ctx, a); err != nil {
		return Agent{}, fmt.Errorf("take over %s: %w", r.file(name), err)
	}
	if err := r.noteFolder(name); err != nil {
		return Agent{}, err
	}
	for key := range a.Extra {
		if r.Knows != nil && r.Knows(key) {
			continue
		}
		if meant := suggest.Best(key, configurable); meant != "" {
			r.Warn(fmt.Sprintf("%s: %q means nothing to Chorus; did you mean %q?", r.file(name), key, meant))
		}
	}
	return a, nil
}

func (r *Store) healMissing(ctx context.Context, name string, row Agent, known bool) (Agent, error) {
	if _, err := os.Stat(r.Home.AgentDir(name)); known && err == nil {
		if err := r.writeFile(row); err != nil {
			return Agent{}, err
		}
		return row, nil
	}
	removed, err := r.removed(ctx, name)
	if err != nil {
		return Agent{}, err
	}
	if known && !removed && !r.hadFolder(name) {
		if err := r.layOutKnown(ctx, row); err != nil {
			return Agent{}, fmt.Errorf("lay out agent %s, which was made elsewhere: %w", name, err)
		}
		return row, nil
	}
	if known {
		if err := r.Rows.DeleteAgent(ctx, name); err != nil {
			return Agent{}, fmt.Errorf("forget agent %s, whose folder is gone: %w", name, err)
		}
	}
	if err := r.forgetFolder(name); err != nil {
		return Agent{}, err
	}
	if define, ok := r.BuiltIn[name]; ok {
		return define(), nil
	}
	return Agent{}, fmt.Errorf("agent %s: %w; `chorus agent list` shows those there are", name, ErrUnknown)
}

// check completes the contents of a file and rejects what is impossible.
func (r *Store) check(a *Agent, name string) error {
	wrong := func(err error) error { return &FileError{Path: r.file(name), Err: err} }
	switch a.Name {
	case name:
	case "":
		a.Name = name
	default:
		return wrong(fmt.Errorf("its name is %q but its folder is %q; write %q as its name", a.Name, name, name))
	}
	if define, ok := r.BuiltIn[name]; ok {
		def := define()
		a.Permissions = cmp.Or(a.Permissions, def.Permissions)
		if len(a.Tools) == 0 && len(a.RareTools) == 0 {
			a.Tools, a.RareTools = def.Tools, def.RareTools
		}
	}
	a.Permissions = cmp.Or(a.Permissions, defaultProfile)
	if err := r.checkModel(a.Model); err != nil {
		return wrong(fmt.Errorf("model: %w", err))
	}
	if err := r.checkProfile(a.Permissions); err != nil {
		return wrong(fmt.Errorf("permissions: %w", err))
	}
	return nil
}

// defaultProfile is the profile of a new agent.
const defaultProfile = "standard"

func (r *Store) checkModel(name string) error {
	if name == "" || r.Model == nil {
		return nil
	}
	return r.Model(name)
}

func (r *Store) checkProfile(name string) error {
	if r.Profile == nil {
		return nil
	}
	return r.Profile(name)
}

func (r *Store) writeFile(a Agent) error {
	data, err := r.fileText(a)
	if err != nil {
		return err
	}
	return datadir.WriteFile(r.file(a.Name), data, 0o600)
}

// fileText returns the contents of an agent's file.
func (r *Store) fileText(a Agent) ([]byte, error) {
	if define, ok := r.BuiltIn[a.Name]; ok { // unchanged built-in values may change with the program
		def := define()
		if a.Permissions == def.Permissions {
			a.Permissions = ""
		}
		if slices.Equal(a.Tools, def.Tools) && slices.Equal(a.RareTools, def.RareTools) {
			a.Tools, a.RareTools = nil, nil
		}
	}
	return document(a)
}

// List returns all agents by name and repairs differences. An agent whose file is
// broken appears in its last good version, and Warn is told why.
func (r *Store) List(ctx context.Context) ([]Agent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.checkNotes(), r.syncAll(ctx)); err != nil {
		return nil, err
	}
	rows, err := r.Rows.Agents(ctx)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	byName := map[string]Agent{}
	for _, a := range rows {
		if chat.ValidAgentName(a.Name) { // anything else could be a path
			byName[a.Name] = a
		}
	}
	names, err := r.folders()
	if err != nil {
		return nil, err
	}
	names = slices.AppendSeq(slices.AppendSeq(names, maps.Keys(byName)), maps.Keys(r.BuiltIn))
	slices.Sort(names)
	var list []Agent
	for _, name := range slices.Compact(names) {
		row, known := byName[name]
		a, err := r.heal(ctx, name, row, known)
		var broken *FileError
		switch {
		case errors.As(err, &broken):
			r.Warn(err.Error())
		case errors.Is(err, ErrUnknown):
			continue
		case err != nil:
			return nil, err
		}
		if a.Name != "" {
			list = append(list, a)
		}
	}
	return list, nil
}

// folders returns the names of the agents that have a folder.
func (r *Store) folders() ([]string, error) {
	entries, err := os.ReadDir(r.Home.Agents())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && chat.ValidAgentName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Configure changes one setting, given as text: systemPrompt, model, permissions, tools (names separated by
// commas; empty: all), webSearch, or one that Other knows. It accepts the older spellings of the keys.
func (r *Store) Configure(ctx context.Context, name, key, value string) (Agent, error) {
	return r.change(ctx, name, func(a *Agent) error { return r.set(a, key, value) })
}

// Unset removes one setting, so that the value for everybody applies to the agent.
func (r *Store) Unset(ctx context.Context, name, key string) (Agent, error) {
	return r.change(ctx, name, func(a *Agent) error { return r.unset(a, key) })
}

// Mark stores a connector's data about the agent under a name that is not a setting.
func (r *Store) Mark(ctx context.Context, name, key string, value any) (Agent, error) {
	return r.change(ctx, name, func(a *Agent) error {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		a.Extra = maps.Clone(a.Extra)
		if a.Extra == nil {
			a.Extra = map[string]json.RawMessage{}
		}
		a.Extra[key] = raw
		return nil
	})
}

func (r *Store) change(ctx context.Context, name string, how func(*Agent) error) (Agent, error) {
	if !chat.ValidAgentName(name) {
		return Agent{}, fmt.Errorf("agent %.80q: %w", name, ErrName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := r.get(ctx, name)
	if err == nil && !exists(r.file(name)) { // built in: this change creates its file
		a = unwritten(a)
		a.CreatedAt = r.Now().UTC().Truncate(time.Microsecond)
		err = r.layOut(name)
	}
	if err != nil {
		return Agent{}, fmt.Errorf("configure agent %s: %w", name, err)
	}
	if err := r.rewrite(ctx, &a, how); err != nil {
		return Agent{}, fmt.Errorf("configure agent %s: %w", name, err)
	}
	if err := r.Rows.PutAgent(ctx, a); err != nil {
		return Agent{}, fmt.Errorf("configure agent %s: %s is written and will be taken over at the next look, but the store refused: %w", name, r.file(name), err)
	}
	return a, nil
}

// layOut creates the folder of a built-in agent.
func (r *Store) layOut(name string) error {
	for _, part := range []string{docsDir, sessionsDir, processesDir, workspaceDir} {
		if _, err := r.Home.Ensure(filepath.Join(r.Home.AgentDir(name), part)); err != nil {
			return err
		}
	}
	return nil
}

// Destroy removes an agent. A built-in agent returns to its built-in form.
// With keepFiles its folder goes to .trash in the home.
func (r *Store) Destroy(ctx context.Context, name string, keepFiles bool) error {
	if !chat.ValidAgentName(name) {
		return fmt.Errorf("agent %.80q: %w", name, ErrName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.get(ctx, name); err != nil {
		if _, ok := errors.AsType[*FileError](err); !ok { // a broken file is no reason to keep it
			return fmt.Errorf("destroy agent %s: %w", name, err)
		}
	}
	if !r.Made(name) {
		return fmt.Errorf("destroy agent %s: it is built in and has no files", name)
	}
	// The folder goes first: if we stop here, the row has no folder and the next read
	// removes it. In the other order, the file would bring the row back.
	gone, err := r.moveAway(name, keepFiles)
	if err != nil {
		return fmt.Errorf("destroy agent %s: %w", name, err)
	}
	err = r.removeDocument(ctx, name)
	if err == nil {
		err = r.Rows.DeleteAgent(ctx, name)
	}
	if err != nil {
		back := os.Rename(gone, r.Home.AgentDir(name))
		return fmt.Errorf("destroy agent %s: %w", name, errors.Join(err, back))
	}
	if err := r.forgetFolder(name); err != nil { // without its row it means nothing
		r.Warn(err.Error())
	}
	if keepFiles {
		return nil
	}
	if err := os.RemoveAll(gone); err != nil {
		r.Warn(fmt.Sprintf("agent %s is gone, but its folder could not be removed whole; delete %s yourself: %v", name, gone, err))
	}
	return nil
}

func (r *Store) moveAway(name string, keep bool) (string, error) {
	target := free(filepath.Join(r.Home.Agents(), gonePrefix+name))
	if keep {
		trash, err := r.Home.Ensure(r.Home.Trash())
		if err != nil {
			return "", err
		}
		target = free(filepath.Join(trash, name))
	}
	return target, os.Rename(r.Home.AgentDir(name), target)
}

// free returns the path or, if it is taken, the first free numbered one.
func free(path string) string {
	name := path
	for n := 2; exists(name); n++ {
		name = fmt.Sprintf("%s.%d", path, n)
	}
	return name
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Folders that are being created or removed. Agents cannot have these names.
const (
	newPrefix  = ".new-"
	gonePrefix = ".gone-"
)

// leftover is how old such a folder must be to count as left by a crash, and not as another process's work.
const leftover = time.Hour

// sweep removes what crashes have left.
func (r *Store) sweep() {
	entries, err := os.ReadDir(r.Home.Agents())
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		old := err == nil && r.Now().Sub(info.ModTime()) > leftover
		if old && (strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), gonePrefix)) {
			_ = os.RemoveAll(filepath.Join(r.Home.Agents(), e.Name()))
		}
	}
}
