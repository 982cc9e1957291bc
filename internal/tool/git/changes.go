package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/sandbox"
)

// Summary lists what has changed in the directory since the last commit, one line for each
// file, including new ones; "" if nothing has. It keeps the promises of the tools. An error
// is git's own message, or says that git could not be used.
func Summary(ctx context.Context, run sandbox.Executor, dir string) (string, error) {
	r := &repo{run: run, dir: dir}
	out, err := r.sinceLastCommit(ctx, "--stat")
	if err != nil {
		return "", err
	}
	list, failed, err := r.plain(ctx, "ls-files", "--others", "--exclude-standard")
	if err != nil || failed != "" {
		return "", errors.Join(err, said(failed))
	}
	shown, left := 0, 0
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\n"), "\n") {
		switch {
		case name == "" || strings.HasSuffix(name, "/"): // a nested repository is separate
		case shown == mostNew:
			left++
		default:
			shown++
			out += " " + name + " | new\n"
		}
	}
	if left > 0 {
		out += fmt.Sprintf(" and %d more new files\n", left)
	}
	return strings.TrimRight(out, "\n"), nil
}

// Changes returns the diff of everything in the directory since the last commit,
// including new files, for somebody who may read all of it.
func Changes(ctx context.Context, run sandbox.Executor, dir string) (string, error) {
	r := &repo{run: run, dir: dir}
	out, err := r.sinceLastCommit(ctx)
	if err != nil {
		return "", err
	}
	added, _, failed, err := r.newFiles(ctx, nil)
	return strings.TrimRight(out+added, "\n"), errors.Join(err, said(failed))
}

// sinceLastCommit compares the files that git tracks with the last
// commit. If there is no commit yet, everything is new.
func (r *repo) sinceLastCommit(ctx context.Context, options ...string) (string, error) {
	_, failed, err := r.plain(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	if err != nil || failed != "" && failed != nothing {
		return "", errors.Join(err, said(failed))
	}
	against := [][]string{{"HEAD"}}
	if failed == nothing {
		against = [][]string{{"--cached"}, nil} // what was added, and what was changed since
	}
	whole := ""
	for _, more := range against {
		args := append([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"}, options...)
		out, failed, err := r.git(ctx, append(args, more...)...)
		if err != nil || failed != "" {
			return "", errors.Join(err, said(failed))
		}
		whole += out
	}
	return whole, nil
}

// said turns git's error message into an error; "" is nil.
func said(failed string) error {
	if failed == "" {
		return nil
	}
	return errors.New(failed)
}
