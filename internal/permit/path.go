package permit

import (
	"path"
	"strings"
)

// cleanPath is the one spelling of a path that rules are tried against. A path
// that climbs out of its root keeps its dots, which no preset allows.
func cleanPath(p string) string {
	if p == "" {
		return "."
	}
	if root, rest, ok := strings.Cut(p, "/"); ok && strings.HasPrefix(root, "@") {
		rest = path.Clean(rest)
		if rest == ".." || strings.HasPrefix(rest, "../") {
			return root + "/" + rest
		}
		if rest == "." {
			return root
		}
		return root + "/" + strings.TrimPrefix(rest, "/")
	}
	c := path.Clean(p)
	if strings.HasPrefix(c, "@") && !strings.HasPrefix(p, "@") {
		// "./@docs/x" is a file of the workspace, not of the root @docs.
		return "./" + c
	}
	return c
}

// within says whether a clean path is the directory or lies in it.
func within(p, dir string) bool {
	rest, ok := strings.CutPrefix(p, dir)
	return dir != "" && ok && (rest == "" || rest[0] == '/' || dir == "/")
}

// relativeTo is an absolute path as the workspace's own, if it lies there.
func relativeTo(p, workspace string) string {
	if workspace == "" || !path.IsAbs(p) {
		return p
	}
	c, ws := path.Clean(p), path.Clean(workspace)
	if !within(c, ws) {
		return p
	}
	if rest := strings.TrimPrefix(c[len(ws):], "/"); rest != "" {
		return rest
	}
	return "."
}
