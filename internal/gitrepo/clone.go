package gitrepo

import (
	"context"
	"slices"
	"strings"
)

// remoteRefs is where the branches of a clone's remote are stored. They are separate
// from the branches of tasks, so that a fetch can never touch those.
const remoteRefs = "refs/remotes/origin/"

// Clone makes a bare copy of a remote at dir. An existing one is opened without asking the remote;
// Fetch updates it. If it was made from another url, the error is ErrRemoteMismatch.
func Clone(ctx context.Context, url, dir string, opt Options) (*Repo, error) {
	if err := CheckURL(url, opt.LocalURLs); err != nil {
		return nil, err
	}
	r, err := build(ctx, KindClone, dir, opt, func(r *Repo) error {
		if _, err := r.runner.git(ctx, command{dir: "/", args: []string{"init", "-q", "--bare", "--template=", "--", r.dir}}); err != nil {
			return err
		}
		for _, set := range [][2]string{{"remote.origin.url", url}, {"remote.origin.fetch", "+refs/heads/*:" + remoteRefs + "*"}} {
			if _, err := r.git(ctx, command{args: []string{"config", "--", set[0], set[1]}}); err != nil {
				return err
			}
		}
		return r.fetch(ctx)
	})
	if err != nil {
		return nil, err
	}
	return r, r.VerifyRemote(ctx, url)
}

// Fetch updates a clone from its remote. For the other kinds it does nothing.
func (r *Repo) Fetch(ctx context.Context) error {
	if r.kind != KindClone {
		return nil
	}
	release, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	return explain(r.fetch(ctx))
}

func (r *Repo) fetch(ctx context.Context) error {
	if _, err := r.git(ctx, command{args: []string{"fetch", "--prune", "--no-write-fetch-head", "--quiet", "origin"}, network: true}); err != nil {
		return err
	}
	// The remote may have renamed its default branch. A remote without commits has none, which is no error.
	_, err := r.git(ctx, command{args: []string{"remote", "set-head", "origin", "--auto"}, network: true})
	if exited(err, 1) || exited(err, 128) {
		return nil
	}
	return err
}

// fetchBranch updates one branch of the remote.
func (r *Repo) fetchBranch(ctx context.Context, branch string) error {
	_, err := r.git(ctx, command{network: true, args: []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", "origin", "+refs/heads/" + branch + ":" + remoteRefs + branch,
	}})
	if err != nil && strings.Contains(err.Error(), "couldn't find remote ref") {
		return fail(ErrNoSuchBranch, "the remote has no branch %s: push it there, or choose another default branch", branch)
	}
	return explain(err)
}

// RemoteURL returns where a clone comes from or, for a link, its origin. "" if there is no remote.
func (r *Repo) RemoteURL(ctx context.Context) (string, error) {
	out, err := r.ask(ctx, "config", "--get", "remote.origin.url")
	if exited(err, 1) {
		return "", nil
	}
	return out, explain(err)
}

// VerifyRemote returns ErrRemoteMismatch if the repository's remote is not the one at
// url. A different protocol for the same repository is fine.
func (r *Repo) VerifyRemote(ctx context.Context, url string) error {
	have, err := r.RemoteURL(ctx)
	if err != nil {
		return err
	}
	if have == "" {
		return fail(ErrRemoteMismatch, "the repository at %s has no remote, but %s is expected: type `git -C %s remote add origin <url>`, or change the repository's url", r.dir, redacted(url), r.dir)
	}
	if !SameRemote(have, url) {
		return fail(ErrRemoteMismatch, "the repository at %s belongs to %s and not to %s: choose another folder, or change the repository's url", r.dir, redacted(have), redacted(url))
	}
	return nil
}

// DefaultBranch determines the branch into which work is merged: what the remote
// says, otherwise main, master, the only branch, or init.defaultBranch. If none of
// these exists, it fails with ErrNoSuchBranch.
func (r *Repo) DefaultBranch(ctx context.Context) (string, error) {
	all, err := r.refs(ctx)
	if err != nil {
		return "", err
	}
	prefix := "refs/heads/"
	if r.kind == KindClone {
		prefix = remoteRefs
	}
	var have []string
	for ref := range all {
		if name, ok := strings.CutPrefix(ref, prefix); ok && name != "HEAD" {
			have = append(have, name)
		}
	}
	head := remoteRefs + "HEAD"
	if r.kind == KindInit {
		head = "HEAD"
	}
	var wanted []string
	if ref, err := r.ask(ctx, "symbolic-ref", "--quiet", head); err == nil {
		wanted = append(wanted, strings.TrimPrefix(strings.TrimPrefix(ref, remoteRefs), "refs/heads/"))
	}
	wanted = append(wanted, "main", "master")
	if len(have) == 1 {
		wanted = append(wanted, have[0])
	}
	if name, err := r.ask(ctx, "config", "--get", "init.defaultBranch"); err == nil {
		wanted = append(wanted, name)
	}
	for _, name := range wanted {
		if slices.Contains(have, name) {
			return name, nil
		}
	}
	slices.Sort(have)
	if len(have) == 0 {
		return "", fail(ErrNoSuchBranch, "the repository at %s has no commits yet: push or commit something first", r.dir)
	}
	return "", fail(ErrNoSuchBranch, "the repository at %s has none of the branches main and master: say which of %s is the default branch", r.dir, names(have))
}

// refs returns all branches with their commits, by full name.
func (r *Repo) refs(ctx context.Context) (map[string]string, error) {
	out, err := r.ask(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/", remoteRefs)
	if err != nil {
		return nil, explain(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		if oid, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			all[ref] = oid
		}
	}
	return all, nil
}

// commit returns the commit for a branch or the name of a commit. If the remote has a branch with
// the same name, ours is used, unless a clone's remote contains it and more.
func (r *Repo) commit(ctx context.Context, rev string) (string, error) {
	if oidForm().MatchString(rev) {
		oid, err := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
		if err != nil {
			return "", fail(ErrNoSuchBranch, "the repository at %s has no commit %s", r.dir, rev)
		}
		return oid, nil
	}
	if err := CheckBranch(rev); err != nil {
		return "", err
	}
	var found []string
	for _, ref := range []string{"refs/heads/" + rev, remoteRefs + rev} {
		oid, err := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
		if err == nil {
			found = append(found, oid)
		} else if !exited(err, 1) {
			return "", explain(err)
		}
	}
	switch len(found) {
	case 0:
		return "", fail(ErrNoSuchBranch, "the repository at %s has no branch %s: see `git branch --all` there, or create it", r.dir, rev)
	case 2:
		if newer, err := r.contains(ctx, found[1], found[0]); err != nil || newer && r.kind == KindClone {
			return found[1], err
		}
	}
	return found[0], nil
}
