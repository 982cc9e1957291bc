package git

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/gitrepo"
	"chorus/internal/pattern"
	"chorus/internal/permit/canonical"
	"chorus/internal/text"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

type commitIn struct {
	Message string   `json:"message" jsonschema:"what changed and why"`
	Paths   []string `json:"paths,omitempty" jsonschema:"only these files or directories"`
}

type pushIn struct {
	Branch string `json:"branch,omitempty" jsonschema:"default: the current one"`
	Remote string `json:"remote,omitempty" jsonschema:"default: origin"`
}

// commitArgs returns the commit as it is judged. The words of its message do not matter.
func (r *repo) commitArgs(in commitIn) []string {
	args := []string{"commit"}
	if len(in.Paths) > 0 {
		args = append(args, "--")
	}
	for _, name := range in.Paths {
		if place, err := r.roots.Find(name); err == nil {
			name = place.String()
		}
		args = append(args, canonical.Word(name))
	}
	return args
}

// args returns the push as it is judged and shown.
func (in pushIn) args() []string {
	return []string{"push", canonical.Word(cmp.Or(in.Remote, "origin")), canonical.Word(cmp.Or(in.Branch, "HEAD"))}
}

func (r *repo) commit(ctx context.Context, in commitIn) (tool.Result, error) {
	message := strings.TrimSpace(strings.ReplaceAll(in.Message, "\x00", ""))
	if message == "" {
		return tool.Fail("The message is empty."), nil
	}
	var paths []string
	for _, name := range in.Paths {
		path, failed := r.inRepository(name)
		if failed != "" {
			return tool.Fail(failed), nil
		}
		paths = append(paths, path)
	}
	branch, failed, err := r.branch(ctx)
	if err != nil || failed != "" {
		return failure(failed), err
	}
	c := &commit{repo: r, paths: paths, hides: tool.CallFrom(ctx).Hides}
	if failed, err = c.stage(ctx); err != nil || failed != "" {
		return failure(failed), err
	}
	staged, failed, err := c.list(ctx, append([]string{"diff", "--cached", "--name-only", "--no-renames", "--relative", "--no-ext-diff", "--no-textconv", "--"}, paths...)...)
	if err != nil || failed != "" {
		return failure(failed), err
	}
	if len(staged) == 0 {
		return tool.OK("Nothing to commit." + c.left()), nil
	}
	oid, failed, err := c.record(ctx, message, staged)
	if err != nil || failed != "" {
		return failure(failed), err
	}
	return tool.OK(fmt.Sprintf("Committed %s to %s as %s.%s", text.Count(len(staged), "file"), branch, oid, c.left())), nil
}

// branch returns the branch that is checked out.
func (r *repo) branch(ctx context.Context) (name, failed string, err error) {
	out, failed, err := r.plain(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if failed == nothing {
		failed = "No branch is checked out. Make one first: git switch -c NAME"
	}
	return strings.TrimSpace(out), failed, err
}

// commit is a commit in progress.
type commit struct {
	*repo
	paths   []string
	hides   func(string) bool
	options []string // disable the repository's own filters
	skipped []string // nested repositories
	hidden  map[string]bool
}

// list returns names as git quotes them, so that they can be passed
// back to git, without those that must not be read.
func (c *commit) list(ctx context.Context, args ...string) (names []string, failed string, err error) {
	out, failed, err := c.plain(ctx, slices.Concat(c.options, []string{"-c", "core.quotePath=true"}, args)...)
	if err != nil || failed != "" {
		return nil, failed, err
	}
	for line := range strings.Lines(out) {
		quoted := strings.TrimSuffix(line, "\n")
		name := quoted
		if strings.HasPrefix(quoted, `"`) {
			if name, err = strconv.Unquote(quoted); err != nil {
				return nil, "git names a file in a way that cannot be read: " + quoted, nil
			}
		}
		switch {
		case strings.HasSuffix(name, "/"):
			c.skipped = append(c.skipped, strings.TrimSuffix(name, "/"))
		case c.hides != nil && c.hides(files.Place{Root: files.Workspace, Path: path.Join(c.folder, name)}.String()):
			c.hidden[name] = true
		default:
			names = append(names, quoted)
		}
	}
	return names, "", nil
}

// stage adds what changed to the index. `git add` would enter nested repositories and use their settings.
func (c *commit) stage(ctx context.Context) (failed string, err error) {
	c.hidden = map[string]bool{}
	if c.options, failed, err = c.withoutFilters(ctx, true); err != nil || failed != "" {
		return failed, err
	}
	open, failed, err := c.plain(ctx, "ls-files", "--unmerged")
	if err != nil || failed != "" {
		return failed, err
	}
	if open != "" {
		return "A merge is not finished: resolve the conflicts, git add the files, then commit.", nil
	}
	changed, failed, err := c.list(ctx, append([]string{"ls-files", "--modified", "--deleted", "--"}, c.paths...)...)
	if err != nil || failed != "" {
		return failed, err
	}
	added, failed, err := c.list(ctx, append([]string{"ls-files", "--others", "--exclude-standard", "--"}, c.paths...)...)
	if err != nil || failed != "" {
		return failed, err
	}
	if changed = append(changed, added...); len(changed) == 0 {
		return "", nil
	}
	_, failed, err = c.command(ctx, invocation{args: append(c.options, "update-index", "--add", "--remove", "--replace", "--stdin"), stdin: strings.Join(changed, "\n") + "\n"})
	if strings.Contains(failed, "filter '") {
		failed += "\nThe repository's own configuration names this filter, which is not run here. Commit with bash instead."
	}
	return failed, err
}

// record makes the commit and returns its short name. If not everything in
// the index is meant, it commits only the named files.
func (c *commit) record(ctx context.Context, message string, staged []string) (oid, failed string, err error) {
	identity, failed, err := c.identity(ctx)
	if err != nil || failed != "" {
		return "", failed, err
	}
	made := invocation{args: append(c.options, "-c", "gc.auto=0", "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message="+message), env: identity}
	if len(c.paths) > 0 || len(c.hidden) > 0 {
		made.args = append(made.args, "--only", "--pathspec-from-file=-")
		made.stdin = strings.Join(staged, "\n") + "\n"
	}
	if _, failed, err = c.command(ctx, made); err != nil || failed != "" {
		return "", failed, err
	}
	oid, failed, err = c.plain(ctx, "rev-parse", "--short", "HEAD")
	return strings.TrimSpace(oid), failed, err
}

// identity returns the committer if git has not been told: a sandbox does not have the user's settings.
func (r *repo) identity(ctx context.Context) (env []string, failed string, err error) {
	_, failed, err = r.plain(ctx, "config", "--get", "user.email")
	if failed == nothing {
		return []string{"GIT_AUTHOR_NAME=Chorus", "GIT_AUTHOR_EMAIL=chorus@localhost", "GIT_COMMITTER_NAME=Chorus", "GIT_COMMITTER_EMAIL=chorus@localhost"}, "", nil
	}
	return nil, failed, err
}

// left says what was not committed.
func (c *commit) left() string {
	var b strings.Builder
	if n := len(c.hidden); n > 0 {
		fmt.Fprintf(&b, "\n[Left out because a rule keeps them from being read unasked: %d.]", n)
	}
	if len(c.skipped) > 0 {
		fmt.Fprintf(&b, "\n[Left out because they are separate repositories: %s.]", text.OneLine(strings.Join(c.skipped, ", ")))
	}
	return b.String()
}

var remoteName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$`)

// starts matches the settings by which a push starts programs or goes elsewhere.
const starts = `^(core\.(sshcommand|gitproxy|askpass)|credential(\..*)?\.helper|remote\..*\.(vcs|receivepack|uploadpack)|url\..*\.(insteadof|pushinsteadof)|gpg\..*|push\.gpgsign)$`

func (r *repo) push(ctx context.Context, in pushIn) (tool.Result, error) {
	remote, branch := cmp.Or(in.Remote, "origin"), in.Branch
	if !remoteName().MatchString(remote) {
		return tool.Fail(fmt.Sprintf("%q is not the name of a remote. See `git remote`.", text.Clip(remote, 80))), nil
	}
	if branch == "" || branch == "HEAD" {
		now, failed, err := r.branch(ctx)
		if err != nil || failed != "" {
			return failure(failed), err
		}
		branch = now
	}
	if err := gitrepo.CheckBranch(branch); err != nil {
		return tool.Fail(err.Error()), nil
	}
	if failed, err := r.mayPush(ctx, remote); err != nil || failed != "" {
		return failure(failed), err
	}
	ref := "refs/heads/" + branch
	out, failed, err := r.command(ctx, invocation{
		args:    []string{"-c", "push.recurseSubmodules=no", "-c", "push.followTags=false", "push", "--porcelain", "--no-verify", "--no-force", "--end-of-options", remote, ref + ":" + ref},
		env:     []string{"GIT_ALLOW_PROTOCOL=https:http:ssh:git:file", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_SSH_COMMAND=ssh -oBatchMode=yes"},
		timeout: pushTimeout,
	})
	if err != nil || failed != "" {
		if strings.Contains(failed, "does not match any") {
			failed = "There is no branch " + branch + "."
		}
		return failure(failed), err
	}
	if strings.Contains(out, "[up to date]") {
		return tool.OK(remote + " already has " + branch + " as it is here."), nil
	}
	return tool.OK("Pushed " + branch + " to " + remote + "."), nil
}

// mayPush returns why the repository's own settings could make a push do something else than it says, or "".
func (r *repo) mayPush(ctx context.Context, remote string) (failed string, err error) {
	out, failed, err := r.plain(ctx, "config", "--show-scope", "--name-only", "--get-regexp", starts)
	if err != nil || failed != "" && failed != nothing {
		return failed, err
	}
	for line := range strings.Lines(out) {
		scope, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if scope == "local" || scope == "worktree" {
			return "The repository's own configuration has " + text.OneLine(name) + ", which could start a program or push elsewhere. Push with bash instead.", nil
		}
	}
	if _, failed, err = r.plain(ctx, "config", "--get", "remote."+remote+".url"); failed == nothing {
		return "There is no remote " + remote + ". See `git remote`.", nil
	}
	return failed, err
}
