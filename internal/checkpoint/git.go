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

// commit adds the checkpoint to a file of a working copy, commits it, and pushes where there
// is a remote.
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

// addLine adds a line that an earlier try has not added. The file may come from the remote: it is no link that leads elsewhere, and
// of two processes with one working copy neither writes over the other's line.
func addLine(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", path)
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

// errRewritten: what a remote had taken is not there any more. It is told once, so it is not tried again.
var errRewritten = errors.New("the history of its remote was cut off or rewritten")

// push gives the remote what is committed. Others may have pushed there, as nodes with working copies of their own do: then ours goes
// on top of theirs. A remote that has lost what it had taken before gets it again if it takes it, and that is an error all the same.
func (k Keeper) push(ctx context.Context) error {
	upstream := func() string { // as far as it is known; "": it has none yet
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
		// Of a file that two nodes have added to, the lines of both stay.
		if _, err := k.git(ctx, "-c", "merge.default=union", "rebase", "--quiet", "--autostash", has); err != nil {
			_, _ = k.git(ctx, "rebase", "--abort") // there may be none
			return err
		}
	}
	_, err := k.git(ctx, "push", "--quiet")
	return errors.Join(rewritten, err)
}

// git runs in the working copy, asks nobody anything, and starts none of its hooks. Helpers that it has started for the network end with
// it: they would wait for a silent remote for ever.
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
	cmd.WaitDelay = time.Second // a helper may hold the pipe
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		process.KillGroup(cmd)
	}
	switch said := text.Printable(strings.TrimSpace(string(out)), maxSaid); {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("git %s did not end within %s: look whether the remote of %s answers: %s", verb(args), gitTime, k.Git, said)
	case err != nil:
		return "", fmt.Errorf("git %s: %w: %s%s", verb(args), err, said, remedy(string(out)))
	}
	return string(out), nil
}

// ssh is the program by which git reaches a remote, as the environment or the working copy's own settings have it: those are the
// operator's.
func (k Keeper) ssh(ctx context.Context) string {
	if given := os.Getenv("GIT_SSH_COMMAND"); given != "" {
		return given
	}
	set, _ := k.git(ctx, "config", "--get", "core.sshCommand")
	return cmp.Or(strings.TrimSpace(set), "ssh")
}

// remedy is what to do about what ssh said; "" when that is not known.
func remedy(said string) string {
	switch {
	case strings.Contains(said, "REMOTE HOST IDENTIFICATION HAS CHANGED"):
		return "; the host has another key than before: find out why, and only then take the old one out (ssh-keygen -R)"
	case strings.Contains(said, "Host key verification failed"):
		return "; the host's key is not known to the user that runs Chorus, and nobody can be asked here: connect once by hand as that user and compare it"
	case strings.Contains(said, "Permission denied (publickey"):
		return "; the remote takes none of the keys that work without a passphrase: give the user that runs Chorus one for this remote (core.sshCommand = ssh -i …), or an ssh-agent that holds it"
	}
	return ""
}

// maxSaid is how much is told of what git, or a remote through it, says.
const maxSaid = 500

// verb is what git is asked to do.
func verb(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}
