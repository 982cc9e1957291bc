package hosttools

import (
	"context"
	"os/exec"
	"slices"
	"strings"
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

// signature passes on what the environment says about who commits.
func (f *finder) signature() {
	for _, name := range signed {
		if value := f.env[name]; value != "" {
			f.set(name, value)
		}
	}
	slices.Sort(f.view.Env)
}
