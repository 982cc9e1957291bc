// Package hosttools finds what commands in a sandbox need of a developer's machine besides their workspace:
// programs in the PATH, toolchains, the enclosing repository, the name for commits. All of it is shown
// read-only (except a repository's .git). The user's home itself, any directory that contains it, keys, and
// the paths in Options.Hide are never shown. The package only reads, and starts nothing but git.
package hosttools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/sandbox"
)

// Options say where to look.
type Options struct {
	Environ []string // the server's
	Home    string   // the user's home; if empty, nothing of it is shown
	Dir     string   // the workspace
	Hide    []string // never shown: the server's home
	Roots   []string // further paths that somebody named; a path that ends in :rw is writable
	Network bool     // something can be reached, so our own caches can be filled
	Root    bool     // the server runs as root, whom file modes do not stop
}

// View is what was found.
type View struct {
	Roots    []sandbox.Root
	Env      []string // NAME=value
	Problems []string // named roots that are left out, and why
}

// Keys returns the folders and files of a home that no command may see, wherever it works.
func Keys(home string) []string {
	names := []string{
		".ssh", ".aws", ".gnupg", ".kube", ".azure", ".password-store", ".docker/config.json", ".config/gcloud", ".config/gh", ".config/hub",
		".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".pgpass", ".vault-token",
		".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties",
		".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history",
	}
	out := []string{"/run/docker.sock", "/var/run/docker.sock", "/run/podman", "/run/user"}
	if home == "" {
		return out
	}
	for _, name := range names {
		out = append(out, filepath.Join(home, name))
	}
	return out
}

// The system's own folders are visible anyway, or must not be.
var (
	seen  = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu"}
	never = []string{"/proc", "/sys", "/dev", "/run", "/etc", "/boot", "/var"}
)

// finder collects a View.
type finder struct {
	Options
	env  map[string]string
	home string   // Options.Home, resolved
	hide []string // the existing keys and paths of Options.Hide, resolved
	view View
}

// Find returns what commands in a workspace need.
func Find(o Options) View {
	f := &finder{Options: o, env: map[string]string{}, home: resolved(o.Home)}
	for _, path := range append(Keys(o.Home), o.Hide...) {
		if hidden := resolved(path); hidden != "" {
			f.hide = append(f.hide, hidden)
		}
	}
	for _, entry := range o.Environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			f.env[name] = value
		}
	}
	f.repository()
	f.programs()
	f.toolchains()
	f.signature()
	for _, text := range o.Roots {
		f.named(text)
	}
	return f.view
}

// resolved returns the directory or file behind a path, or "" if there is none.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(real) {
		return ""
	}
	return real
}

// refuses returns why a path must not be shown, or "".
func (f *finder) refuses(real string) string {
	switch {
	case real == "/" || slices.ContainsFunc(never, func(dir string) bool { return sandbox.Within(real, dir) }):
		return "it is the machine itself"
	case f.home != "" && sandbox.Within(f.home, real):
		return "it is your home, or contains it: name the directories below it that are needed"
	}
	if slices.ContainsFunc(f.hide, func(hidden string) bool { return sandbox.Within(real, hidden) }) {
		return "it contains keys, or belongs to Chorus"
	}
	return ""
}

// show adds a directory read-only if it exists, may be shown and is not shown already.
func (f *finder) show(path string) bool {
	real := resolved(path)
	if real == "" || f.refuses(real) != "" {
		return false
	}
	system := func(path string) bool {
		return slices.ContainsFunc(seen, func(dir string) bool { return sandbox.Within(path, dir) })
	}
	switch {
	case system(path) && system(real):
		return true
	case system(path): // a symlink that leads out of it
		path = real
	}
	for _, dir := range []string{f.Dir, resolved(f.Dir)} {
		// A workspace is visible anyway, and a link that a command could
		// have put there must not lead elsewhere.
		if dir != "" && (sandbox.Within(path, dir) || sandbox.Within(real, dir)) {
			return sandbox.Within(real, dir)
		}
	}
	if slices.ContainsFunc(f.view.Roots, func(r sandbox.Root) bool { return sandbox.Within(path, r.Path) && sandbox.Within(real, r.Path) }) {
		return true
	}
	f.view.Roots = append(f.view.Roots, sandbox.Root{Path: filepath.Clean(path)})
	return true
}

// named adds a root from the configuration.
func (f *finder) named(text string) {
	path, writable := strings.CutSuffix(strings.TrimSpace(text), ":rw")
	path = strings.TrimSuffix(path, ":ro")
	if rest, ok := strings.CutPrefix(path, "~/"); ok && f.Home != "" {
		path = filepath.Join(f.Home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Dir, path)
	}
	real := resolved(path)
	why := "there is nothing"
	if real != "" {
		why = f.refuses(real)
	}
	if why != "" {
		f.view.Problems = append(f.view.Problems, "sandboxRoots: "+text+" is left out: "+why)
		return
	}
	f.view.Roots = append(f.view.Roots, sandbox.Root{Path: filepath.Clean(path), Writable: writable})
}

// repository shows the repository above a workspace that is only a part of it. It is
// shown whole, because git would otherwise take the rest for deleted.
func (f *finder) repository() {
	dir := resolved(f.Dir)
	if dir == "" || exists(filepath.Join(dir, ".git")) {
		return
	}
	for up := filepath.Dir(dir); f.refuses(up) == ""; up = filepath.Dir(up) {
		dotGit := filepath.Join(up, ".git")
		info, err := os.Lstat(dotGit)
		switch {
		case err != nil:
			continue
		case info.IsDir() && exists(filepath.Join(dotGit, "HEAD")) && exists(filepath.Join(dotGit, "objects")):
			f.view.Roots = append(f.view.Roots, sandbox.Root{Path: up}, sandbox.Root{Path: dotGit, Writable: true})
		case info.Mode().IsRegular(): // a worktree: the executor finds its main repository
			f.view.Roots = append(f.view.Roots, sandbox.Root{Path: up})
		}
		return
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
