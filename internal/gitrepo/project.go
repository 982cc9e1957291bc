package gitrepo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LogEntry is a commit in a list.
type LogEntry struct {
	OID     string    `json:"oid"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
	Subject string    `json:"subject"`
}

// String returns the entry on one line: the commit's short name and its subject.
func (e LogEntry) String() string { return e.OID[:min(len(e.OID), 10)] + " " + e.Subject }

// Change is a file that differs from the last commit.
type Change struct {
	Code string `json:"code"` // git's two letters, for the index and the file; "??" is new
	Path string `json:"path"`
}

// Status is the state of a checkout.
type Status struct {
	Branch        string     `json:"branch"` // "" if no branch is checked out
	Head          string     `json:"head"`   // "" if there is no commit yet
	Upstream      string     `json:"upstream,omitempty"`
	Ahead, Behind int        // of Upstream
	Changes       []Change   `json:"changes"`
	More          int        `json:"more,omitempty"` // number of changes that are not listed
	Recent        []LogEntry `json:"recent_commits"`
}

// Clean reports whether there is nothing to commit.
func (s Status) Clean() bool { return len(s.Changes)+s.More == 0 }

// String lists the changes as git does, one per line, or returns "(clean)".
func (s Status) String() string {
	if s.Clean() {
		return "(clean)"
	}
	var b strings.Builder
	for _, c := range s.Changes {
		fmt.Fprintf(&b, "%s %s\n", c.Code, oneLine(c.Path))
	}
	if s.More > 0 {
		fmt.Fprintf(&b, "… and %d more\n", s.More)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const (
	maxChanges = 500  // in a status; nobody reads more
	maxLog     = 1000 // commits in one list
	recent     = 5    // commits in a status
)

// Log returns the last commits of a branch, at most n; "" is the default branch.
func (r *Repo) Log(ctx context.Context, rev string, n int) ([]LogEntry, error) {
	if rev == "" {
		branch, err := r.DefaultBranch(ctx)
		if err != nil {
			return nil, err
		}
		rev = branch
	}
	oid, err := r.commit(ctx, rev)
	if err != nil {
		return nil, err
	}
	return r.log(ctx, oid, n)
}

func (r *Repo) log(ctx context.Context, oid string, n int) ([]LogEntry, error) {
	out, err := r.git(ctx, command{args: []string{
		"log", "-z", "--no-show-signature", "--no-color", "--no-decorate", "--encoding=UTF-8", "--format=%H%x1f%an%x1f%at%x1f%s", "--max-count=" + strconv.Itoa(min(max(n, 1), maxLog)), oid, "--",
	}})
	if err != nil {
		return nil, explain(err)
	}
	var all []LogEntry
	for _, line := range split(out) {
		parts := strings.SplitN(strings.ToValidUTF8(line, "\uFFFD"), "\x1f", 4)
		if len(parts) < 4 {
			continue
		}
		seconds, _ := strconv.ParseInt(parts[2], 10, 64)
		all = append(all, LogEntry{OID: parts[0], Author: oneLine(parts[1]), At: time.Unix(seconds, 0).UTC(), Subject: oneLine(parts[3])})
	}
	return all, nil
}

// CreateBranch creates a branch that begins at from, another branch or a commit.
// An existing one is not changed, and created is false.
func (r *Repo) CreateBranch(ctx context.Context, name, from string) (created bool, err error) {
	if err := CheckBranch(name); err != nil {
		return false, err
	}
	oid, err := r.commit(ctx, from)
	if err != nil {
		return false, err
	}
	release, err := r.lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	_, err = r.git(ctx, command{args: []string{"update-ref", "--no-deref", "-m", "chorus: branch", "refs/heads/" + name, oid, zeros(oid)}})
	if err == nil {
		return true, nil
	}
	if _, there := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+name+"^{commit}"); there == nil {
		return false, nil
	}
	if strings.Contains(err.Error(), "cannot create") || strings.Contains(err.Error(), "cannot lock ref") {
		return false, fail(ErrBadName, "the branch %s cannot exist beside the branches that there are: choose another name (%s)", name, err.Error())
	}
	return false, explain(err)
}

// Status returns the state of the checkout, with its last commits.
func (t *Tree) Status(ctx context.Context) (Status, error) {
	if err := t.trusted(); err != nil {
		return Status{}, err
	}
	config, err := t.repo.noPrograms(ctx, false)
	if err != nil {
		return Status{}, err
	}
	out, err := t.git(ctx, command{args: []string{"status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty"}, config: config})
	if err != nil {
		return Status{}, explain(err)
	}
	s := parseStatus(out)
	if s.Head != "" {
		if s.Recent, err = t.repo.log(ctx, s.Head, recent); err != nil {
			return Status{}, err
		}
	}
	return s, nil
}

// parseStatus reads porcelain format version 2.
func parseStatus(out string) Status {
	s := Status{Changes: []Change{}}
	for _, line := range split(out) {
		kind, rest, _ := strings.Cut(line, " ")
		var c Change
		switch kind {
		case "#":
			s.header(rest)
			continue
		case "1": // XY sub mH mI mW hH hI path
			if f := strings.SplitN(rest, " ", 8); len(f) == 8 {
				c = Change{f[0], f[7]}
			}
		case "u": // XY sub m1 m2 m3 mW h1 h2 h3 path
			if f := strings.SplitN(rest, " ", 10); len(f) == 10 {
				c = Change{f[0], f[9]}
			}
		case "?":
			c = Change{"??", rest}
		}
		switch {
		case c.Code == "":
		case len(s.Changes) >= maxChanges:
			s.More++
		default:
			c.Code = strings.ReplaceAll(c.Code, ".", " ")
			s.Changes = append(s.Changes, c)
		}
	}
	return s
}

func (s *Status) header(line string) {
	key, value, _ := strings.Cut(line, " ")
	switch key {
	case "branch.oid":
		if value != "(initial)" {
			s.Head = value
		}
	case "branch.head":
		if value != "(detached)" {
			s.Branch = value
		}
	case "branch.upstream":
		s.Upstream = value
	case "branch.ab":
		_, _ = fmt.Sscanf(value, "+%d -%d", &s.Ahead, &s.Behind)
	}
}

// CreateBranch creates a branch at the checkout's current commit and
// switches to it. If it exists, it only switches.
func (t *Tree) CreateBranch(ctx context.Context, name string) (created bool, err error) {
	head, err := t.ask(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return false, fail(ErrNoSuchBranch, "%s has no commit yet: commit something first", t.path)
	}
	if created, err = t.repo.CreateBranch(ctx, name, head); err != nil {
		return false, err
	}
	_, err = t.Checkout(ctx, name)
	return created, err
}

// Checkout switches to a branch and returns the previous one. If
// uncommitted changes would be lost, it fails with ErrDirty.
func (t *Tree) Checkout(ctx context.Context, branch string) (before string, err error) {
	if err := t.trusted(); err != nil {
		return "", err
	}
	if _, err := t.repo.commit(ctx, branch); err != nil {
		return "", err
	}
	if oidForm().MatchString(branch) {
		return "", fail(ErrBadName, "%s is a commit: give a branch", branch)
	}
	if before, err = t.branch(ctx); err != nil {
		return "", err
	}
	config, err := t.repo.noPrograms(ctx, true)
	if err != nil {
		return "", err
	}
	release, err := t.repo.lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	_, err = t.git(ctx, command{args: []string{"switch", "--quiet", "--guess", "--end-of-options", branch}, config: config})
	if err != nil && strings.Contains(err.Error(), "already checked out at") {
		return "", fail(ErrInUse, "the branch %s is checked out in another worktree: %s", branch, err.Error())
	}
	return before, explain(err)
}

// Push pushes a branch to the remote; "" is the current branch. A
// linked checkout is never pushed (ErrNeverPushed).
func (t *Tree) Push(ctx context.Context, branch string) (pushed string, err error) {
	if branch == "" {
		if branch, err = t.branch(ctx); err != nil {
			return "", err
		}
		if branch == "" {
			return "", fail(ErrWrongBranch, "no branch is checked out at %s: say which one is to be pushed", t.path)
		}
	}
	return branch, t.repo.PushBranch(ctx, branch)
}

// FastForward moves the current branch to base, if nothing was changed or
// committed here since it left base. Otherwise it does nothing.
func (t *Tree) FastForward(ctx context.Context, base string) error {
	s, err := t.Status(ctx)
	if err != nil || !s.Clean() || s.Branch == "" || s.Head == "" {
		return err
	}
	to, err := t.repo.commit(ctx, base)
	if err != nil || to == s.Head {
		return err
	}
	if inside, err := t.repo.contains(ctx, to, s.Head); err != nil || !inside {
		return err
	}
	config, err := t.repo.noPrograms(ctx, true)
	if err != nil {
		return err
	}
	release, err := t.repo.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = t.git(ctx, command{args: []string{"merge", "--quiet", "--ff-only", "--no-verify", "--no-verify-signatures", to}, config: config})
	return explain(err)
}
