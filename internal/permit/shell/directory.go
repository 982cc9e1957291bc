package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// cwd holds the directories that a script may be in at some point. A failing cd leaves the script
// where it was, so there may be several. A relative path is judged in each.
type cwd struct {
	dirs    []string // relative to where the command starts, or absolute; empty means the start
	unknown bool     // it may be anywhere
}

// maxPlaces limits dirs. A script that may be in more directories is treated as being anywhere.
const maxPlaces = 4

var startDir = []string{""}

func (c cwd) places() []string {
	if len(c.dirs) == 0 {
		return startDir
	}
	return c.dirs
}

// or returns the union of two sets of directories.
func (c cwd) or(d cwd) cwd {
	if c.unknown || d.unknown {
		return cwd{unknown: true}
	}
	out := slices.Clone(c.places())
	for _, dir := range d.places() {
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	if len(out) > maxPlaces {
		return cwd{unknown: true}
	}
	return cwd{dirs: out}
}

// joinDir returns a path relative to where the command starts.
func joinDir(dir, p string) string {
	if dir == "" || path.IsAbs(p) || strings.HasPrefix(p, "~") || strings.HasPrefix(p, homeMark) {
		return p
	}
	if strings.HasSuffix(p, "/") {
		return path.Join(dir, p) + "/"
	}
	return path.Join(dir, p)
}

// moveTo changes the directory, provided that the current statement succeeds.
func (w *walker) moveTo(to cwd) {
	w.cwd = to
	w.visited = append(w.visited, to)
}

// chdir follows a cd, so that later relative paths are resolved against the new directory.
func (w *walker) chdir(p *Part, words []word) {
	to := slices.DeleteFunc(slices.Clone(words[1:]), func(x word) bool { return x.value == "-P" || x.value == "-L" || x.value == "--" })
	if len(to) != 1 || !to[0].known || to[0].home || strings.HasPrefix(to[0].value, "-") || strings.HasPrefix(to[0].value, "+") {
		w.moveTo(cwd{unknown: true})
		return
	}
	dir := path.Clean(to[0].value)
	if path.IsAbs(dir) {
		w.moveTo(cwd{dirs: []string{dir}})
		return
	}
	if w.cwd.unknown {
		return
	}
	below := dir != ".." && !strings.HasPrefix(dir, "../")
	var dirs []string
	for _, from := range w.cwd.places() {
		at := path.Join(from, dir)
		if at == "." {
			at = ""
		}
		below = below && !path.IsAbs(at)
		if !slices.Contains(dirs, at) {
			dirs = append(dirs, at)
		}
	}
	w.moveTo(cwd{dirs: dirs})
	if below {
		p.Kind = KindPlain
	}
}

// settled walks a whole statement. A cd in it may have failed, and what follows
// runs in either case, so both directories remain possible.
func (w *walker) settled(f func()) {
	before, visited := w.cwd, w.visited
	w.visited = nil
	f()
	after := before
	for _, v := range w.visited {
		after = after.or(v)
	}
	w.visited = append(visited, w.visited...)
	if len(w.visited) > maxPlaces {
		w.visited = []cwd{{unknown: true}}
	}
	w.cwd = after
}

// changesDirectory reports whether some command below a node may change the directory.
func (w *walker) changesDirectory(n syntax.Node) bool {
	if !w.moving {
		return false // no walk needed for most scripts
	}
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			for _, a := range c.Args {
				switch w.readOne(a).value {
				case "cd", "pushd", "popd":
					found = true
				}
			}
		}
		return !found
	})
	return found
}
