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
		"GIT_SSH_COMMAND="+cmp.Or(os.Getenv("GIT_SSH_COMMAND"), "ssh")+" -oBatchMode=yes", "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file")
	process.LeadTidy(cmd)
	cmd.Cancel = func() error { process.TerminateGroup(cmd); return nil }
	cmd.WaitDelay = time.Second // a helper may hold the pipe
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		process.KillGroup(cmd)
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", verb(args), err, text.Printable(strings.TrimSpace(string(out)), maxSaid))
	}
	return string(out), nil
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
