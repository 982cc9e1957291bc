package agents

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/chat"
)

// embedded is what a new agent begins with. Files below template/ in the home
// replace those of the same name here, and others are added.
//
//go:embed all:template
var embedded embed.FS

// Create makes an agent from the template and the given values (empty fields: the template's). If
// anything fails, no incomplete agent is left. A missing git program is only a warning.
func (r *Store) Create(ctx context.Context, given Agent) (Agent, error) {
	if !chat.ValidAgentName(given.Name) {
		return Agent{}, fmt.Errorf("create agent %.80q: %w", given.Name, ErrName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := r.create(ctx, given)
	if err != nil {
		return Agent{}, fmt.Errorf("create agent %s: %w", given.Name, err)
	}
	return a, nil
}

func (r *Store) create(ctx context.Context, given Agent) (Agent, error) {
	dir := r.Home.AgentDir(given.Name)
	if _, err := r.Home.Ensure(r.Home.Agents()); err != nil {
		return Agent{}, err
	}
	r.sweep()
	if err := r.sync(ctx, given.Name); err != nil { // it may have been created elsewhere
		return Agent{}, err
	}
	switch {
	case exists(filepath.Join(dir, fileName)), r.BuiltIn[given.Name] != nil:
		return Agent{}, ErrExists
	case exists(dir):
		return Agent{}, fmt.Errorf("%s is in the way and is not an agent's folder; move it away", dir)
	}
	tmp, err := os.MkdirTemp(r.Home.Agents(), newPrefix+given.Name+"-")
	if err != nil {
		return Agent{}, err
	}
	a, err := r.build(ctx, tmp, given)
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return Agent{}, errors.Join(err, os.RemoveAll(tmp))
	}
	if err := r.share(ctx, a); errors.Is(err, ErrExists) {
		return Agent{}, err // the folder now contains what was created elsewhere at the same moment
	} else if err != nil {
		return Agent{}, errors.Join(err, os.RemoveAll(dir))
	}
	if err := r.Rows.PutAgent(ctx, a); err != nil {
		return Agent{}, errors.Join(err, os.RemoveAll(dir))
	}
	return a, r.noteFolder(a.Name)
}

// build fills the folder of an agent that is being created.
func (r *Store) build(ctx context.Context, dir string, given Agent) (Agent, error) {
	if err := r.layTemplates(dir, given.Name, true); err != nil {
		return Agent{}, err
	}
	a, err := r.merge(dir, given)
	if err != nil {
		return Agent{}, err
	}
	text, err := document(a)
	if err != nil {
		return Agent{}, err
	}
	return a, r.finish(ctx, dir, a.Name, text)
}

// layTemplates fills a folder with the templates. For an agent that was
// created elsewhere, the docs may come from there.
func (r *Store) layTemplates(dir, agent string, withDocs bool) error {
	for _, name := range []string{docsDir, sessionsDir, processesDir, workspaceDir} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	inside, err := fs.Sub(embedded, "template")
	if err != nil {
		return err
	}
	if err := lay(inside, dir, agent, withDocs); err != nil {
		return fmt.Errorf("lay out the template: %w", err)
	}
	if err := lay(os.DirFS(r.Home.Template()), dir, agent, withDocs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lay out the template in %s: %w", r.Home.Template(), err)
	}
	return nil
}

// finish writes the agent's file and creates its repository.
func (r *Store) finish(ctx context.Context, dir, name string, text []byte) error {
	if err := os.WriteFile(filepath.Join(dir, fileName), text, 0o600); err != nil {
		return err
	}
	if err := r.GitInit(ctx, filepath.Join(dir, workspaceDir)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Warn(fmt.Sprintf("the workspace of agent %s is not a git repository: %v", name, err))
	}
	return nil
}

// merge applies the given values to the template's agent.json.
func (r *Store) merge(dir string, given Agent) (Agent, error) {
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		return Agent{}, err
	}
	a, err := parse(filepath.Join(r.Home.Template(), fileName), data)
	if err != nil {
		return Agent{}, err
	}
	a.Name = given.Name
	a.CreatedAt = r.Now().UTC().Truncate(time.Second)
	a.SystemPrompt = strings.ReplaceAll(a.SystemPrompt, placeholder, given.Name)
	if given.SystemPrompt != "" {
		a.SystemPrompt = given.SystemPrompt
	}
	if given.Model != "" {
		a.Model = given.Model
	}
	if given.Permissions != "" {
		a.Permissions = given.Permissions
	}
	a.Permissions = cmp.Or(a.Permissions, defaultProfile)
	if len(given.Tools) > 0 {
		a.Tools = given.Tools
	}
	a.WebSearch = a.WebSearch || given.WebSearch
	if given.Worker != "" {
		a.Worker = given.Worker
	}
	if a.Extra == nil && len(given.Extra) > 0 {
		a.Extra = map[string]json.RawMessage{}
	}
	maps.Copy(a.Extra, given.Extra)
	if err := r.checkModel(a.Model); err != nil {
		return Agent{}, err
	}
	return a, r.checkProfile(a.Permissions)
}

// placeholder stands for the agent's name in the template.
const placeholder = "{{name}}"

// lay copies a template into a folder. It refuses anything but plain files and
// folders, so that a link cannot bring in files from elsewhere.
func lay(template fs.FS, dir, name string, withDocs bool) error {
	return fs.WalkDir(template, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(path))
		if entry.IsDir() {
			if path == docsDir && !withDocs {
				return fs.SkipDir
			}
			return os.MkdirAll(target, 0o700)
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder; replace it by a copy", path)
		}
		data, err := fs.ReadFile(template, path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".md" {
			data = []byte(strings.ReplaceAll(string(data), placeholder, name))
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600|info.Mode().Perm()&0o100)
	})
}

// gitTimeout is far longer than creating an empty repository takes.
const gitTimeout = 30 * time.Second

var errNoGit = errors.New("the git program was not found; install git and run `git init` there")

func gitInit(ctx context.Context, dir string) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return errNoGit
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, "init", "--quiet", "--initial-branch=main")
	cmd.Dir = dir
	// Nothing else of our environment: no secrets, and no GIT_DIR of a caller's repository.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
