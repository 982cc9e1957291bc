package docker

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// mapping maps one directory of this machine to its path in the container. Paths are compared as
// text after cleaning: what a symlink means inside is up to the container.
type mapping struct {
	host, inside string
}

func newMapping(host, inside string) (mapping, error) {
	inside = cmp.Or(inside, filepath.ToSlash(host))
	for _, p := range []string{host, inside} {
		if strings.ContainsAny(p, "\x00\n") {
			return mapping{}, fmt.Errorf("the path %q cannot be used for a container: it has a line break or NUL in it", p)
		}
	}
	if !filepath.IsAbs(host) {
		return mapping{}, fmt.Errorf("the workspace %q must be an absolute path on this machine", host)
	}
	if !path.IsAbs(inside) {
		return mapping{}, fmt.Errorf("the workspace %q must be an absolute path inside the container", inside)
	}
	return mapping{host: filepath.Clean(host), inside: path.Clean(inside)}, nil
}

// in returns the container's name for a path of this machine.
func (m mapping) in(p string) (string, bool) {
	rel, ok := below(m.host, filepath.Clean(p))
	if !ok || !filepath.IsAbs(p) {
		return "", false
	}
	return path.Join(m.inside, filepath.ToSlash(rel)), true
}

// dir returns where a command runs inside. It resolves a directory that
// is reached through a symlink of this machine.
func (m mapping) dir(p string) (string, error) {
	if p == "" {
		return m.inside, nil
	}
	if in, ok := m.in(p); ok {
		return in, nil
	}
	if real, err := filepath.EvalSymlinks(p); err == nil {
		root := m
		if r, err := filepath.EvalSymlinks(m.host); err == nil {
			root.host = r
		}
		if in, ok := root.in(real); ok {
			return in, nil
		}
	}
	return "", fmt.Errorf("%s is not in the container: only what is below %s is there, as %s", p, m.host, m.inside)
}

// argument translates an argument that is, as a whole, a path below the workspace. Text that only
// contains such a path stays unchanged, because nobody can know what it means.
func (m mapping) argument(s string) string {
	if m.host == m.inside || m.host == "/" || filepath.Clean(s) != strings.TrimSuffix(s, "/") {
		return s
	}
	if in, ok := m.in(s); ok {
		return in
	}
	return s
}

// below returns the rest of p below root; both are clean. It returns "." for root itself.
func below(root, p string) (string, bool) {
	if p == root {
		return ".", true
	}
	prefix := strings.TrimSuffix(root, "/") + "/"
	if !strings.HasPrefix(p, prefix) {
		return "", false
	}
	return p[len(prefix):], true
}
