// Package datadir knows where Chorus stores its files: the home folder and the names below it.
//
// Opening the home creates only the home folder itself (for its owner only, 0700).
// Asking for a path touches nothing. Errors say what to do.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"chorus/internal/atomicfile"
	"chorus/internal/chat"
	"chorus/internal/text"
)

// Find returns the path of the home folder: CHORUS_HOME, or else ~/.chorus. It expands a leading ~,
// since environment files are not read by a shell. The folder need not exist.
func Find(env func(string) string) (string, error) {
	dir := strings.TrimSpace(env("CHORUS_HOME"))
	if dir == "" {
		user, err := userHome(env)
		if err != nil {
			return "", err
		}
		return filepath.Join(user, ".chorus"), nil
	}
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		user, err := userHome(env)
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, dir[1:])
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the home folder %s: %w", dir, err)
	}
	return abs, nil
}

func userHome(env func(string) string) (string, error) {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir := env(name); filepath.IsAbs(dir) {
			return dir, nil
		}
	}
	return "", errors.New("cannot tell where your home directory is; set CHORUS_HOME to a folder that Chorus may use")
}

// Home is an opened home folder.
type Home struct{ dir string }

// Open creates the folder if it does not exist and checks that it can be written.
func Open(dir string) (*Home, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open home folder %s: %w", dir, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("make home folder %s: %w; %s", abs, text.Cause(err), remedy(err))
	}
	if err := checkWritable(abs); err != nil {
		return nil, fmt.Errorf("use home folder %s: %w; %s", abs, text.Cause(err), remedy(err))
	}
	return &Home{dir: abs}, nil
}

// At returns a home folder for inspection. Nothing is created or checked.
func At(dir string) *Home { return &Home{dir: dir} }

// checkWritable writes a file: permission bits say too little on
// network file systems, in containers and for root.
func checkWritable(dir string) error {
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist):
		return "a file is in the way: move it, or set CHORUS_HOME to another folder"
	case errors.Is(err, fs.ErrPermission):
		return "give yourself the right to read and write it (chmod u+rwx), or set CHORUS_HOME to another folder"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: set CHORUS_HOME to a folder on another one"
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return "the disk is full: free some space, or set CHORUS_HOME to a folder on another one"
	default:
		return "set CHORUS_HOME to a folder that can be read and written"
	}
}

// Dir returns the folder itself, as an absolute path.
func (h *Home) Dir() string { return h.dir }

func (h *Home) join(names ...string) string {
	return filepath.Join(append([]string{h.dir}, names...)...)
}

// The files and folders by name. None of them needs to exist.

func (h *Home) DB() string              { return h.join("chorus.db") }
func (h *Home) Blobs() string           { return h.join("blobs") }
func (h *Home) Locks() string           { return h.join("locks") }
func (h *Home) PeerSockets() string     { return h.join("run", "peers") }
func (h *Home) Workers() string         { return h.join("run", "workers") }
func (h *Home) ScheduleSockets() string { return h.join("run", "schedules") }
func (h *Home) Config() string          { return h.join("config") }
func (h *Home) Models() string          { return h.join("available_models.json") }
func (h *Home) Settings() string        { return h.join("settings.json") }
func (h *Home) Identity() string        { return h.join("IDENTITY.md") }
func (h *Home) Skills() string          { return h.join("skills") }
func (h *Home) Events() string          { return h.join("events") }
func (h *Home) MCPServers() string      { return h.join("mcp.json") }
func (h *Home) MCPLogins() string       { return h.join("mcp-logins") }
func (h *Home) MCPStatus() string       { return h.join("cache", "mcp") }
func (h *Home) Processes() string       { return h.join("processes") }
func (h *Home) Images() string          { return h.join("cache", "images") }
func (h *Home) History() string         { return h.join("terminal_history") } // what was typed, for the next session

// ImageCache returns the folder for fetched pictures: images in CACHE_PATH, or else in the home's cache.
func (h *Home) ImageCache(env func(string) string) string {
	if dir := env("CACHE_PATH"); dir != "" {
		return filepath.Join(dir, "images")
	}
	return h.Images()
}

func (h *Home) Logs() string   { return h.join("logs") }
func (h *Home) Agents() string { return h.join("agents") }

// AgentFolders has a note for each agent that has, or had, its folder in this home.
func (h *Home) AgentFolders() string { return h.join("run", "agents") }

// DocumentNotes has a note for each document that has, or had, a copy in this home.
func (h *Home) DocumentNotes() string { return h.join("run", "documents") }

// ForgottenUpTo holds the number of the last document change that was checked for things to forget.
func (h *Home) ForgottenUpTo() string { return h.join("run", "forgotten") }

func (h *Home) Guilds() string   { return h.join("guilds") }
func (h *Home) Template() string { return h.join("template") }
func (h *Home) Trash() string    { return h.join(".trash") }

// Project returns the folder of a project, with its notes, its repositories and the checkouts of its tasks.
func (h *Home) Project(id string) string      { return h.join("projects", id) }
func (h *Home) ProjectNotes(id string) string { return h.join("projects", id, "notes") }
func (h *Home) ProjectRepo(id, repo string) string {
	return h.join("projects", id, "repos", repo+".git")
}

// ProjectCheckout returns where a repository of a project is checked out outside of tasks.
// The last part is git's name for the worktree, which no task has.
func (h *Home) ProjectCheckout(id, repo string) string {
	return h.join("projects", id, "checkouts", repo, "checkout")
}

// TaskDir returns the folder of a task.
func (h *Home) TaskDir(project, task string) string {
	return h.join("projects", project, "tasks", task)
}

// Prompt returns the file with a person's replacement for a built-in agent's prompt.
func (h *Home) Prompt(name string) string { return h.join("prompts", name+".md") }

// AgentDir returns an agent's folder. The name must be valid (chat.ValidAgentName).
func (h *Home) AgentDir(name string) string { return h.join("agents", name) }

// ThreadDir returns a thread's folder, with its mirrors, attachments and scratch space.
func (h *Home) ThreadDir(id chat.ThreadID) string {
	return h.join(filepath.FromSlash(id.Dir()))
}

// Scratch returns the working folder of a thread that has no other.
func (h *Home) Scratch(id chat.ThreadID) string { return filepath.Join(h.ThreadDir(id), "scratch") }

// Outputs returns the folder for the full texts of a thread's long tool results.
func (h *Home) Outputs(id chat.ThreadID) string {
	return h.join("outputs", filepath.FromSlash(id.Dir()))
}

// Ensure creates a folder below the home (0700) and returns it.
func (h *Home) Ensure(dir string) (string, error) {
	if dir != h.dir && !strings.HasPrefix(dir, h.dir+string(filepath.Separator)) {
		return "", fmt.Errorf("make folder %s: it is not below the home folder %s", dir, h.dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make folder %s: %w; %s", dir, text.Cause(err), remedy(err))
	}
	return dir, nil
}

// RemoveFile removes a file, and what killed calls of WriteFile left of it. It is no error if there is nothing. Nobody may
// be writing the file.
func RemoveFile(path string) error {
	if err := atomicfile.Remove(path); err != nil {
		return fmt.Errorf("remove %s: %w; %s", path, text.Cause(err), remedy(err))
	}
	return nil
}

// WriteFile replaces a file in one step. Its errors say what to do.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	if err := atomicfile.Write(path, data, perm); err != nil {
		return fmt.Errorf("write %s: %w; %s", path, text.Cause(err), remedy(err))
	}
	return nil
}
