package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MergeRequest is the input of Prepare.
type MergeRequest struct {
	Target string // the branch to merge into
	Head   string // the branch or commit to merge
	// Local says that the target is another task's branch: it is moved here,
	// even in a clone, and must not be checked out.
	Local    bool
	At       time.Time
	Message  string
	Trailers []Trailer
	By       Person
}

// Prepared is a merge that was computed but not applied yet. It can
// be stored; Apply and State need nothing else.
type Prepared struct {
	Target string   `json:"target"`
	Base   string   `json:"base"` // the target's commit when it was prepared
	Head   string   `json:"head"` // the commit that is merged
	OID    string   `json:"oid"`  // the merge commit; Base if there was nothing to merge
	Branch string   `json:"branch,omitempty"`
	Local  bool     `json:"local,omitempty"` // see MergeRequest
	Files  []string `json:"files"`           // the files that change in the target
}

// MergeState is the state of a merge.
type MergeState string

// The states of a merge.
const (
	Merged  MergeState = "merged"  // the target contains it: nothing is left to do
	Waiting MergeState = "waiting" // the target has not moved: Apply moves it
	Moved   MergeState = "moved"   // the target has something else: prepare again
)

// Prepare computes a merge without touching any branch or file. The merge is always a commit
// with two parents, even if the target could be fast-forwarded, and it is the same commit
// whenever the same request is prepared from the same commits. Conflicts give ErrConflict,
// with the files. For a clone the remote is asked first.
func (r *Repo) Prepare(ctx context.Context, req MergeRequest) (Prepared, error) {
	words, err := message(req.Message, req.Trailers)
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{Target: req.Target, Local: req.Local, Files: []string{}}
	if !oidForm().MatchString(req.Head) {
		p.Branch = req.Head
	}
	release, err := r.lock(ctx) // two concurrent fetches of one branch would interfere
	if err != nil {
		return Prepared{}, err
	}
	p.Base, err = r.target(ctx, req.Target, req.Local)
	release()
	if err != nil {
		return Prepared{}, err
	}
	if p.Head, err = r.commit(ctx, req.Head); err != nil {
		return Prepared{}, err
	}
	inside, err := r.contains(ctx, p.Base, p.Head)
	if err != nil {
		return Prepared{}, err
	}
	if inside {
		p.OID = p.Base
		return p, nil
	}
	tree, err := r.mergeTree(ctx, p.Base, p.Head, req.Target, req.Head)
	if err != nil {
		return Prepared{}, err
	}
	oid, err := r.git(ctx, command{
		args: []string{"commit-tree", tree, "-p", p.Base, "-p", p.Head, "-F", "-"}, env: signature(req.By, req.By, req.At), stdin: words,
	})
	if err != nil {
		return Prepared{}, explain(err)
	}
	p.OID = strings.TrimSpace(oid)
	r.step("merge written")
	changed, err := r.git(ctx, command{args: []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", p.Base, p.OID}})
	if err != nil {
		return Prepared{}, explain(err)
	}
	p.Files = append(p.Files, split(changed)...)
	return p, nil
}

// target returns the commit of the target branch; for a clone, the remote's.
func (r *Repo) target(ctx context.Context, branch string, local bool) (string, error) {
	if err := CheckBranch(branch); err != nil {
		return "", err
	}
	ref := "refs/heads/" + branch
	if r.kind == KindClone && !local {
		if err := r.fetchBranch(ctx, branch); err != nil {
			return "", err
		}
		ref = remoteRefs + branch
	}
	oid, err := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if exited(err, 1) {
		return "", fail(ErrNoSuchBranch, "the repository at %s has no branch %s: create it, or choose another default branch", r.dir, branch)
	}
	return oid, explain(err)
}

// contains reports whether a commit is in the history of another one.
func (r *Repo) contains(ctx context.Context, history, commit string) (bool, error) {
	_, err := r.git(ctx, command{args: []string{"merge-base", "--is-ancestor", commit, history}})
	if exited(err, 1) {
		return false, nil
	}
	return err == nil, explain(err)
}

// mergeTree merges two commits in memory. The names are used in the error for a conflict.
func (r *Repo) mergeTree(ctx context.Context, ours, theirs, into, branch string) (string, error) {
	config, err := r.noPrograms(ctx, false)
	if err != nil {
		return "", err
	}
	out, err := r.git(ctx, command{args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs}, config: config})
	fields := split(out)
	switch {
	case exited(err, 1) && len(fields) > 0:
		files := fields[1:]
		return "", &Error{
			Kind: ErrConflict, Files: files,
			Text: fmt.Sprintf("%s cannot be merged into %s: both changed %s. Merge %s into %s, resolve the conflict and commit, then merge again", branch, into, names(files), into, branch),
		}
	case exited(err, 129):
		return "", fail(ErrTooOld, "merging needs git 2.38 or newer: %s", err.Error())
	case err != nil:
		return "", explain(err)
	case len(fields) != 1:
		return "", fmt.Errorf("git merge-tree gave %d fields instead of a tree", len(fields))
	}
	return fields[0], nil
}

// State asks git for the state of a merge; for a clone it asks the remote.
func (r *Repo) State(ctx context.Context, p Prepared) (MergeState, error) {
	release, err := r.lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	state, err := r.state(ctx, p)
	if state == Merged && r.kind == KindLink {
		r.unlockIndex() // a process that was killed right after the merge may have left it locked
	}
	return state, err
}

func (r *Repo) state(ctx context.Context, p Prepared) (MergeState, error) {
	if err := p.check(); err != nil {
		return "", err
	}
	now, err := r.target(ctx, p.Target, p.Local)
	if err != nil {
		return "", err
	}
	inside, err := r.contains(ctx, now, p.Head)
	switch {
	case err != nil:
		return "", err
	case inside:
		return Merged, nil
	case now == p.Base:
		return Waiting, nil
	}
	return Moved, nil
}

// check prevents stored values from being taken for options.
func (p Prepared) check() error {
	for _, oid := range []string{p.Base, p.Head, p.OID} {
		if !oidForm().MatchString(oid) {
			return fail(ErrBadName, "%q is not the name of a commit", oid)
		}
	}
	return CheckBranch(p.Target)
}

// Apply applies a prepared merge: it moves the target of a bare repository, pushes it to the remote
// of a clone, or updates a linked checkout. Applying it again changes nothing. ErrMoved means that
// it must be prepared again; ErrDirty, for a linked checkout, that a person has to merge, with the
// command; ErrRejected that the remote refuses it.
func (r *Repo) Apply(ctx context.Context, p Prepared) error {
	release, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	state, err := r.state(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case state == Merged:
		if r.kind == KindLink {
			r.unlockIndex()
		}
		return nil
	case state == Moved:
		return moved(p)
	case p.Local:
		return r.moveTask(ctx, p)
	case r.kind == KindClone:
		return r.push(ctx, p)
	case r.kind == KindLink:
		return r.applyLink(ctx, p)
	}
	return r.move(ctx, p)
}

func moved(p Prepared) error {
	return fail(ErrMoved, "%s has moved since the merge was prepared: prepare it again", p.Target)
}

// move moves the target's ref if it has not moved.
func (r *Repo) move(ctx context.Context, p Prepared) error {
	_, err := r.git(ctx, command{args: []string{"update-ref", "--no-deref", "-m", "chorus: merge", "refs/heads/" + p.Target, p.OID, p.Base}})
	if err != nil && strings.Contains(err.Error(), "but expected") {
		return moved(p)
	}
	r.step("ref moved")
	return explain(err)
}

// moveTask moves another task's branch. A worktree with that branch would keep the
// old files, and its task would undo the merge with them.
func (r *Repo) moveTask(ctx context.Context, p Prepared) error {
	trees, err := r.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range trees {
		if w.Branch == p.Target && !w.Gone {
			return fail(ErrInUse, "the branch %s is checked out at %s: remove that worktree first", p.Target, w.Path)
		}
	}
	return r.move(ctx, p)
}

// push moves the remote's branch if it has not moved.
func (r *Repo) push(ctx context.Context, p Prepared) error {
	_, err := r.git(ctx, command{network: true, args: []string{
		"push", "--porcelain", "--no-verify", "--force-with-lease=refs/heads/" + p.Target + ":" + p.Base, "--end-of-options", "origin", p.OID + ":refs/heads/" + p.Target,
	}})
	if err == nil {
		r.step("pushed")
		return nil
	}
	if err = pushError(err, p.Target); !errors.Is(err, ErrRejected) {
		return err
	}
	// Somebody else may have been faster; only then does preparing it again help.
	if state, stateErr := r.state(ctx, p); stateErr == nil && state == Moved {
		return moved(p)
	}
	return err
}

// pushError explains why a push failed.
func pushError(err error, branch string) error {
	var e *exitError
	if !errors.As(err, &e) {
		return err
	}
	for line := range strings.Lines(e.out + "\n" + e.said) {
		if strings.Contains(line, "[rejected]") || strings.Contains(line, "[remote rejected]") {
			said := strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "!\t "))
			if words := remoteWords(e.said); words != "" {
				said += "; the remote says: " + words
			}
			return fail(ErrRejected, "the remote did not accept %s: %s. Fetch and merge what it has, or ask for the right to push there", branch, oneLine(said))
		}
	}
	return explain(err)
}

// remoteWords returns the lines that the remote itself wrote.
func remoteWords(said string) string {
	var words []string
	for line := range strings.Lines(said) {
		if line, ok := strings.CutPrefix(line, "remote:"); ok && strings.TrimSpace(line) != "" {
			words = append(words, strings.TrimSpace(line))
		}
	}
	return strings.Join(words, " ")
}

// PushBranch pushes a branch to the remote of a clone. If the remote already has it,
// nothing happens. A rewritten branch replaces what this repository pushed before, but
// never somebody else's work: that is ErrRejected.
func (r *Repo) PushBranch(ctx context.Context, branch string) error {
	if r.kind == KindLink {
		return fail(ErrNeverPushed, "%s is a linked checkout, which Chorus never pushes: type `git -C %s push` yourself", r.dir, r.dir)
	}
	if r.kind != KindClone {
		return fail(ErrNoRemote, "the repository at %s has no remote to push to: add it again as a clone of one", r.dir)
	}
	if err := CheckBranch(branch); err != nil {
		return err
	}
	release, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	oid, err := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch+"^{commit}")
	if exited(err, 1) {
		return fail(ErrNoSuchBranch, "the repository at %s has no branch %s of its own to push", r.dir, branch)
	}
	if err != nil {
		return explain(err)
	}
	known, err := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", remoteRefs+branch)
	if err != nil && !exited(err, 1) {
		return explain(err)
	}
	lease := "--force-with-lease=refs/heads/" + branch + ":" + known
	_, err = r.git(ctx, command{network: true, args: []string{"push", "--porcelain", "--no-verify", lease, "--end-of-options", "origin", oid + ":refs/heads/" + branch}})
	if err == nil {
		r.step("branch pushed")
		return nil
	}
	if err = pushError(err, branch); !errors.Is(err, ErrRejected) {
		return err
	}
	// Killed after an earlier push: the remote has it, and only our record of that is missing.
	if r.fetchBranch(ctx, branch) == nil {
		if now, _ := r.ask(ctx, "rev-parse", "--verify", "--quiet", remoteRefs+branch); now == oid {
			return nil
		}
	}
	return err
}
