package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"chorus/internal/sandbox/process"
	"chorus/internal/text"
)

// commit adds the checkpoint to a file of a working copy, commits it, and pushes if there is a remote.
func (k Keeper) commit(ctx context.Context, p Point) error {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	name := "chorus-audit-" + k.Home + ".jsonl"
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := addLine(filepath.Join(k.Git, name), line); err != nil {
		return err
	}
	if _, err := k.git(ctx, "add", "--", name); err != nil {
		return err
	}
	if _, err := k.git(ctx, "diff", "--cached", "--quiet", "--no-ext-diff", "--", name); err != nil {
		if _, err := k.git(ctx, "commit", "--quiet", "--message", "Checkpoint of the audit log: "+p.What(), "--", name); err != nil {
			return err
		}
	}
	remotes, err := k.git(ctx, "remote")
	if err != nil || strings.TrimSpace(remotes) == "" {
		return err
	}
	return k.push(ctx)
}

// addLine adds a line unless an earlier attempt did. The file may come from the remote, so it must not be a
// link that leads elsewhere. Two processes with one working copy do not overwrite each other's lines.
func addLine(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file", path)
	}
	var before []byte
	if err == nil {
		before, err = io.ReadAll(file)
	}
	if err == nil && !bytes.Contains(before, line) {
		_, err = file.Write(append(line, '\n'))
	}
	return errors.Join(err, file.Close())
}

// errRewritten means that what a remote had accepted is no longer there. It is reported once and not retried.
var errRewritten = errors.New("the history of its remote was cut off or rewritten")

// push pushes the commits to the remote. Others may have pushed there, as nodes with their own
// working copies do; then ours are placed on top. A remote that has lost what it had accepted
// gets it again if it accepts it, but that is an error all the same.
func (k Keeper) push(ctx context.Context) error {
	upstream := func() string { // as far as known; "": it has none yet
		out, _ := k.git(ctx, "rev-parse", "--verify", "--quiet", "@{upstream}")
		return strings.TrimSpace(out)
	}
	had := upstream()
	if _, err := k.git(ctx, "fetch", "--quiet", "--prune", "--no-recurse-submodules"); err != nil {
		return err
	}
	has := upstream()
	var rewritten error
	if _, err := k.git(ctx, "merge-base", "--is-ancestor", had, has); had != "" && err != nil {
		rewritten = fmt.Errorf("%w: commit %s, which it had, is not in it", errRewritten, had)
	}
	if has != "" && rewritten == nil {
		// If two nodes have added to a file, the lines of both stay.
		if _, err := k.git(ctx, "-c", "merge.default=union", "rebase", "--quiet", "--autostash", has); err != nil {
			_, _ = k.git(ctx, "rebase", "--abort") // there may be none
			return err
		}
	}
	_, err := k.git(ctx, "push", "--quiet")
	return errors.Join(rewritten, err)
}

// git runs git in the working copy without asking anybody and without hooks. Helpers that it has
// started for the network end with it: they would wait for a silent remote forever.
func (k Keeper) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", k.Git, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"-c", "user.name=chorus", "-c", "user.email=chorus@localhost", "-c", "commit.gpgSign=false", "-c", "push.gpgSign=false", "-c", "gc.auto=0"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GCM_INTERACTIVE=never", "GIT_EDITOR=true",
		"GIT_ALLOW_PROTOCOL=https:http:ssh:git:file")
	if what := verb(args); what == "fetch" || what == "push" {
		cmd.Env = append(cmd.Env, "GIT_SSH_COMMAND="+k.ssh(ctx)+" -oBatchMode=yes")
	}
	process.LeadTidy(cmd)
	cmd.Cancel = func() error { process.TerminateGroup(cmd); return nil }
	cmd.WaitDelay = time.Second // a helper may hold the pipe open
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		process.KillGroup(cmd)
	}
	switch said := text.Printable(strings.TrimSpace(string(out)), maxSaid); {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("git %s did not end within %s: check whether the remote of %s answers: %s", verb(args), gitTime, k.Git, said)
	case err != nil:
		return "", fmt.Errorf("git %s: %w: %s%s", verb(args), err, said, remedy(string(out)))
	}
	return string(out), nil
}

// ssh returns the program with which git reaches a remote, from the environment or
// the working copy's own settings, which are the operator's.
func (k Keeper) ssh(ctx context.Context) string {
	if given := os.Getenv("GIT_SSH_COMMAND"); given != "" {
		return given
	}
	set, _ := k.git(ctx, "config", "--get", "core.sshCommand")
	return cmp.Or(strings.TrimSpace(set), "ssh")
}

// remedy says what to do about ssh's message, or "" if that is not known.
func remedy(said string) string {
	switch {
	case strings.Contains(said, "REMOTE HOST IDENTIFICATION HAS CHANGED"):
		return "; the host's key has changed: find out why, and only then remove the old one (ssh-keygen -R)"
	case strings.Contains(said, "Host key verification failed"):
		return "; the host's key is not known to the user that runs Chorus, and nobody can be asked here: connect once by hand as that user and compare it"
	case strings.Contains(said, "Permission denied (publickey"):
		return "; the remote takes none of the keys that work without a passphrase: give the user that runs Chorus one for this remote (core.sshCommand = ssh -i …), or an ssh-agent that holds it"
	}
	return ""
}

// maxSaid is how much of the output of git, or of a remote through it, is reported.
const maxSaid = 500

// verb returns what git is asked to do.
func verb(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}
