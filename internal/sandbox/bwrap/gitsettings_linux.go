package bwrap

import (
	"os"
	"path/filepath"
	"strings"
)

// gitSettings are what of a repository's configuration decides where else git looks for
// programs to start.
type gitSettings struct {
	hooks       []string // core.hooksPath, as written
	includes    []string // files whose settings apply too; absolute
	perWorktree bool     // each worktree may have settings of its own
}

// The most that is read of a configuration, and how deep one may lead to the next.
const (
	maxSettings = 1 << 20
	maxIncludes = 8
)

// readSettings reads a configuration that commands cannot change, so what is odd in it
// is an oversight and no attack.
func readSettings(file string) (s gitSettings) {
	s.read(file, 0)
	return s
}

func (s *gitSettings) read(file string, depth int) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSettings || depth > maxIncludes {
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for _, e := range parseSettings(string(data)) {
		switch {
		case e.section == "core" && e.name == "hookspath" && e.value != "":
			s.hooks = append(s.hooks, e.value)
		case e.section == "extensions" && e.name == "worktreeconfig":
			s.perWorktree = !strings.EqualFold(e.value, "false")
		case (e.section == "include" || e.section == "includeif") && e.name == "path" && e.value != "":
			path := e.value
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(file), path)
			}
			s.includes = append(s.includes, path)
			s.read(path, depth+1)
		}
	}
}

// paths are where on this machine git looks, resolved; what is not there is left out.
func (s gitSettings) paths(gitDir string) []string {
	tree := gitDir // of a bare repository
	if filepath.Base(gitDir) == ".git" {
		tree = filepath.Dir(gitDir)
	}
	var out []string
	add := func(path string) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			out = append(out, real)
		}
	}
	for _, path := range s.hooks {
		if !filepath.IsAbs(path) {
			path = filepath.Join(tree, path)
		}
		add(path)
	}
	for _, path := range s.includes {
		add(path)
	}
	return out
}

// setting is one line of a configuration; section and name in lower case.
type setting struct{ section, name, value string }

// parseSettings reads the lines of a git configuration.
func parseSettings(text string) []setting {
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

// unquote takes quotes and a comment off a value.
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
