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

// signed are variables that name the author and committer.
var signed = []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}

// Identity returns a git configuration file with the name and address for commits in dir, and nothing
// else of the user's. It is empty if none is set. It is meant for the place of lowest priority
// (GIT_CONFIG_SYSTEM), so that settings made by commands take precedence.
func Identity(ctx context.Context, dir string, environ []string) string {
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--null", "--get-regexp", `^(user\.(name|email)|init\.defaultbranch)$`)
	cmd.Dir, cmd.Env = dir, environ
	out, err := cmd.Output()
	if err != nil { // git is missing, or nothing is set
		return ""
	}
	var text strings.Builder
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		section, name, dotted := strings.Cut(key, ".")
		if !ok || !dotted || strings.ContainsAny(value, "\n\r") {
			continue
		}
		// If a name occurs more than once, the last one applies, as in git.
		text.WriteString("[" + section + "]\n\t" + name + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + "\"\n")
	}
	return text.String()
}

// Names asks git for identities. Outside repositories all folders have the same one, so many
// conversations that begin together ask only once. It is safe for concurrent use.
type Names struct {
	mu    sync.Mutex
	text  string
	asked time.Time
}

// namesTime is how long an answer is valid outside repositories.
const namesTime = 5 * time.Second

// Identity is like the function Identity, but answers from memory where the identity is the same.
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

// inRepository reports whether git may find a repository, and settings in it, for the folder.
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
	return true // unknown, so assume it may
}

// signature passes on what the environment says about author and committer.
func (f *finder) signature() {
	for _, name := range signed {
		if value := f.env[name]; value != "" {
			f.set(name, value)
		}
	}
	slices.Sort(f.view.Env)
}
