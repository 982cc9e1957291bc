package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	tries     = 3
	oneTry    = 10 * time.Second // a target that is slower is down
	gitTime   = 30 * time.Second // a push over a slow line
	firstWait = time.Second
)

// Send gives a checkpoint to the configured targets. Every target is tried a few times; an
// error names each that did not take it.
func (k Keeper) Send(ctx context.Context, p Point) error {
	var errs []error
	if k.URL != "" {
		if err := k.again(ctx, func() error { return k.post(ctx, p) }); err != nil {
			errs = append(errs, fmt.Errorf("the checkpoint of %s of the audit log was not taken by audit.checkpointUrl: %w", p.What(), err))
		}
	}
	if k.Git != "" {
		if err := k.again(ctx, func() error { return k.commit(ctx, p) }); err != nil {
			errs = append(errs, fmt.Errorf("the checkpoint of %s of the audit log was not committed to audit.checkpointGit: %w", p.What(), err))
		}
	}
	return errors.Join(errs...)
}

// again tries a few times with pauses that double.
func (k Keeper) again(ctx context.Context, do func() error) (err error) {
	pause := k.Pause
	if pause == 0 {
		pause = firstWait
	}
	for try := range tries {
		if try > 0 {
			select {
			case <-time.After(pause << (try - 1)):
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			}
		}
		if err = do(); err == nil {
			return nil
		}
	}
	return err
}

func (k Keeper) post(ctx context.Context, p Point) error {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("it is no address of the form https://host/path")
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%w", errors.Unwrap(err)) // the address may hold a key
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}

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
	file := filepath.Join(k.Git, name)
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !bytes.Contains(before, line) { // an earlier try got so far
		if err := os.WriteFile(file, append(before, append(line, '\n')...), 0o600); err != nil {
			return err
		}
	}
	if _, err := k.git(ctx, "add", "--", name); err != nil {
		return err
	}
	if _, err := k.git(ctx, "diff", "--cached", "--quiet", "--", name); err != nil {
		if _, err := k.git(ctx, "commit", "--quiet", "--message", "Checkpoint of the audit log: "+p.What(), "--", name); err != nil {
			return err
		}
	}
	remotes, err := k.git(ctx, "remote")
	if err != nil || strings.TrimSpace(remotes) == "" {
		return err
	}
	_, err = k.git(ctx, "push", "--quiet")
	return err
}

// git runs in the working copy, asks nobody anything, and starts none of its hooks.
func (k Keeper) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", k.Git, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"-c", "user.name=chorus", "-c", "user.email=chorus@localhost", "-c", "commit.gpgSign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_SSH_COMMAND=ssh -o BatchMode=yes")
	cmd.WaitDelay = time.Second // a helper may hold the pipe
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
