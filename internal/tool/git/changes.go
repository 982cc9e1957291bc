package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/sandbox"
)

// Summary is what has changed in the directory since the last commit, a line for each
// file, new ones too, with the same promise as the tools; empty when nothing has. An error is in
// git's own words, or says that git could not be used.
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
		case name == "" || strings.HasSuffix(name, "/"): // a repository inside is its own
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

// Changes is the diff of what has changed in the directory since the last commit, new files included, for somebody who may read all of them.
func Changes(ctx context.Context, run sandbox.Executor, dir string) (string, error) {
	r := &repo{run: run, dir: dir}
	out, err := r.sinceLastCommit(ctx)
	if err != nil {
		return "", err
	}
	added, _, failed, err := r.newFiles(ctx, nil)
	return strings.TrimRight(out+added, "\n"), errors.Join(err, said(failed))
}

// sinceLastCommit compares the files that git knows with the last commit. Where there is none yet, everything is new.
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

// said is what git said as an error; "" is none.
func said(failed string) error {
	if failed == "" {
		return nil
	}
	return errors.New(failed)
}
