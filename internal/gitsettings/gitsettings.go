// Package gitsettings reads only those settings of a git repository that decide where else
// git looks for programs to start. For all other settings, use git.
package gitsettings

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"chorus/internal/plainfile"
)

// Settings are the settings of a repository that decide where else git looks for programs to start.
type Settings struct {
	Hooks       []string // core.hooksPath, as written
	Includes    []string // absolute paths of included files
	PerWorktree bool     // each worktree may have separate settings
}

// MaxSize limits how much of a configuration is read. maxIncludes limits how deep includes may be nested.
const (
	MaxSize     = 1 << 20
	maxIncludes = 8
)

// Read reads a configuration that commands cannot change, so anything odd in it is a mistake and not an attack.
func Read(file string) (s Settings) {
	s.read(file, 0)
	return s
}

func (s *Settings) read(file string, depth int) {
	if depth > maxIncludes {
		return
	}
	data, err := plainfile.Read(file, MaxSize)
	if err != nil {
		return
	}
	for _, e := range parse(string(data)) {
		switch {
		case e.section == "core" && e.name == "hookspath" && e.value != "":
			s.Hooks = append(s.Hooks, e.value)
		case e.section == "extensions" && e.name == "worktreeconfig":
			s.PerWorktree = !strings.EqualFold(e.value, "false")
		case (e.section == "include" || e.section == "includeif") && e.name == "path" && e.value != "":
			path := absolute(e.value, filepath.Dir(file))
			s.Includes = append(s.Includes, path)
			s.read(path, depth+1)
		}
	}
}

// Named returns the hook folders and settings files that these name, for the
// working tree with the top tree. They may not exist.
func (s Settings) Named(tree string) (hooks, files []string) {
	for _, path := range s.Hooks {
		hooks = append(hooks, absolute(path, tree))
	}
	return hooks, s.Includes
}

// absolute returns a path as git resolves it: below a home directory ("~" is that of the
// user who runs git, assumed to be ours), below git's installation folder, or relative to
// base. If the home does not exist, git reads nothing.
func absolute(path, base string) string {
	path = strings.TrimPrefix(path, ":(optional)") // of git 2.52 and later
	if rest, ok := strings.CutPrefix(path, "%(prefix)/"); ok {
		if dir := installed(); dir != "" {
			return filepath.Join(dir, rest)
		}
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		name, rest, _ := strings.Cut(rest, "/")
		if home := homeOf(name); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// homeOf returns somebody's home, our own for an empty name, or "" if there is none.
func homeOf(name string) string {
	if name == "" {
		home, _ := os.UserHomeDir()
		return home
	}
	known, err := user.Lookup(name)
	if err != nil {
		return ""
	}
	return known.HomeDir
}

// askTime is far more than git needs to read one line.
const askTime = 5 * time.Second

// installed is the value of git's %(prefix), which depends on how git was built or where it was
// unpacked; "" without git. It is determined once, and only for the rare settings that use it.
var installed = sync.OnceValue(func() string {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--file", "-", "--type=path", "--get", "ask.prefix")
	cmd.Dir, cmd.Stdin = "/", strings.NewReader("[ask]\nprefix = %(prefix)/\n")
	out, err := cmd.Output()
	if dir := strings.TrimSuffix(string(out), "\n"); err == nil && filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return ""
})

// Tree returns the top of the working tree that a repository has next to its
// own folder. For a bare one it is the folder itself.
func Tree(gitDir string) string {
	if filepath.Base(gitDir) == ".git" {
		return filepath.Dir(gitDir)
	}
	return gitDir
}

// setting is one line of a configuration. section and name are in lower case.
type setting struct{ section, name, value string }

// parse reads the lines of a git configuration.
func parse(text string) []setting {
	var out []setting
	section := ""
	for row := range strings.Lines(text) {
		row = strings.TrimSpace(row)
		if rest, ok := strings.CutPrefix(row, "["); ok {
			head, after, _ := strings.Cut(rest, "]")
			name, _, _ := strings.Cut(head, " ")
			name, _, _ = strings.Cut(name, ".")
			section, row = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(after)
		}
		if row == "" || row[0] == '#' || row[0] == ';' {
			continue
		}
		name, value, _ := strings.Cut(row, "=")
		out = append(out, setting{section, strings.ToLower(strings.TrimSpace(name)), unquote(strings.TrimSpace(value))})
	}
	return out
}

// unquote removes quotes and a comment from a value.
func unquote(value string) string {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(value):
			i++
			out.WriteByte(value[i])
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(out.String())
		default:
			out.WriteByte(c)
		}
	}
	return strings.TrimSpace(out.String())
}
