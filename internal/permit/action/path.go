package action

import (
	"cmp"
	"path"
	"strings"
)

// CleanPath returns the one spelling of a path that rules are matched against. A path
// that leaves its root keeps its dots, which no preset allows.
func CleanPath(p string) string {
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

// Within reports whether a clean path is dir or lies in it.
func Within(p, dir string) bool {
	rest, ok := strings.CutPrefix(p, dir)
	return dir != "" && ok && (rest == "" || rest[0] == '/' || dir == "/")
}

// RelativeTo makes an absolute path inside the workspace relative to it. It returns any other path unchanged.
func RelativeTo(p, workspace string) string {
	if workspace == "" || !path.IsAbs(p) {
		return p
	}
	c, ws := path.Clean(p), path.Clean(workspace)
	if !Within(c, ws) {
		return p
	}
	return cmp.Or(strings.TrimPrefix(c[len(ws):], "/"), ".")
}
