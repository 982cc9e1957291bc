package hosttools

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// identityTime is far more than git needs to read a few files.
const identityTime = 5 * time.Second

// signed are variables that name whoever commits.
var signed = []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}

// Identity is a git configuration file with the name that commits in dir are made in, and
// nothing else of the user's; empty where nobody said. It is meant for the weakest place
// (GIT_CONFIG_SYSTEM), so that what commands set themselves holds.
func Identity(ctx context.Context, dir string, environ []string) string {
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--null", "--get-regexp", `^(user\.(name|email)|init\.defaultbranch)$`)
	cmd.Dir, cmd.Env = dir, environ
	out, err := cmd.Output()
	if err != nil { // no git, or nothing is set
		return ""
	}
	var text strings.Builder
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		section, name, dotted := strings.Cut(key, ".")
		if !ok || !dotted || strings.ContainsAny(value, "\n\r") {
			continue
		}
		// The last one of a name holds, here as there.
		text.WriteString("[" + section + "]\n\t" + name + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + "\"\n")
	}
	return text.String()
}

// Names asks git for identities. Outside of repositories all folders have the same one, which is asked for once where many
// conversations begin together. Safe for concurrent use.
type Names struct {
	mu    sync.Mutex
	text  string
	asked time.Time
}

// namesTime is how long an answer holds outside of repositories.
const namesTime = 5 * time.Second

// Identity is Identity, from memory where that is the same.
func (n *Names) Identity(ctx context.Context, dir string, environ []string) string {
	if inRepository(dir, environ) {
		return Identity(ctx, dir, environ)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.asked) < namesTime {
		return n.text
	}
	text := Identity(ctx, dir, environ)
	if ctx.Err() == nil {
		n.text, n.asked = text, time.Now()
	}
	return text
}

// inRepository says whether git may find a repository for the folder, and settings in it.
func inRepository(dir string, environ []string) bool {
	if slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, "GIT_DIR=") }) {
		return true
	}
	for at := resolved(dir); at != ""; at = filepath.Dir(at) {
		if exists(filepath.Join(at, ".git")) || exists(filepath.Join(at, "HEAD")) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
	return true // nothing is known of it
}

// signature passes on what the environment says about who commits.
func (f *finder) signature() {
	for _, name := range signed {
		if value := f.env[name]; value != "" {
			f.set(name, value)
		}
	}
	slices.Sort(f.view.Env)
}
