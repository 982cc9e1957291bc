// Package git lets an agent inspect the repository it works in, commit to it and push it. It
// promises that no hook, filter, pager or other program named in the repository's own configuration
// is run, that inspecting takes no lock, and that a push never forces.
package git

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/text"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

var (
	//go:embed git_status.md
	statusProse string
	//go:embed git_diff.md
	diffProse string
	//go:embed git_commit.md
	commitProse string
	//go:embed git_push.md
	pushProse string
)

const (
	// timeout is for one git command: inspecting is quick, even in large repositories.
	timeout = 60 * time.Second
	// pushTimeout allows for a slow line and a remote that checks what it receives.
	pushTimeout = 5 * time.Minute
)

type repo struct {
	run    sandbox.Executor
	roots  *files.Roots
	keep   tool.Keep
	dir    string // where git runs; "": in the workspace
	folder string // the same, relative to the workspace
}

// workspace returns the directory where git runs.
func (r *repo) workspace() string {
	if r.dir != "" {
		return r.dir
	}
	return r.roots.Dir(files.Workspace)
}

type statusIn struct{}

type diffIn struct {
	Staged bool   `json:"staged,omitempty" jsonschema:"changes that would be committed"`
	Path   string `json:"path,omitempty" jsonschema:"only this file or directory"`
}

// Tools returns git_status, git_diff, git_commit and git_push on the workspace.
// keep stores a diff that is too long to show; it may be nil.
func Tools(run sandbox.Executor, roots *files.Roots, keep tool.Keep) []tool.Tool {
	r := &repo{run: run, roots: roots, keep: keep}
	return []tool.Tool{
		tool.New(tool.Func[statusIn]{
			Name: "git_status", Description: statusProse, ReadOnly: true, Risk: tool.Low,
			Aliases: []tool.Alias{tool.Also("GitStatus")},
			Access:  func(statusIn) []tool.Access { return []tool.Access{{Tool: "git", Detail: "status"}} },
			Label:   func(statusIn) string { return "git status" },
			Run:     r.status,
		}),
		tool.New(tool.Func[diffIn]{
			Name: "git_diff", Description: diffProse, ReadOnly: true, Risk: tool.Low,
			Aliases: []tool.Alias{tool.Renamed("GitDiff", map[string]string{"file": "path"})},
			Access: func(in diffIn) []tool.Access {
				return []tool.Access{{Tool: "git", Detail: strings.Join(r.diffArgs(in), " ")}}
			},
			Label: func(in diffIn) string { return "git " + strings.Join(r.diffArgs(in), " ") },
			Run:   r.diff,
		}),
		tool.New(tool.Func[commitIn]{
			Name: "git_commit", Description: commitProse, Rare: true, Risk: tool.Medium, JudgedAs: []string{"git"},
			Access: func(in commitIn) []tool.Access {
				return []tool.Access{{Tool: "git", Detail: strings.Join(r.commitArgs(in), " ")}}
			},
			Label: func(in commitIn) string { return "git commit: " + text.Clip(text.OneLine(in.Message), 60) },
			Run:   r.commit,
		}),
		tool.New(tool.Func[pushIn]{
			Name: "git_push", Description: pushProse, Rare: true, Risk: tool.High, JudgedAs: []string{"git"},
			Access: func(in pushIn) []tool.Access {
				return []tool.Access{{Tool: "git", Detail: strings.Join(in.args(), " ")}}
			},
			Label: func(in pushIn) string { return "git " + strings.Join(in.args(), " ") },
			Run:   r.push,
		}),
	}
}

func (r *repo) status(ctx context.Context, _ statusIn) (tool.Result, error) {
	out, failed, err := r.git(ctx, "status", "--porcelain=v1", "--branch", "--ignore-submodules=dirty", "--no-renames")
	if err != nil || failed != "" {
		return failure(failed), err
	}
	out = strings.TrimSuffix(out, "\n")
	if !strings.Contains(out, "\n") {
		out += "\nnothing to commit, working tree clean"
	}
	return tool.From("git status", tool.Clip(ctx, out, tool.Head, r.keep)), nil
}

// diffArgs returns the command as it is judged and shown.
func (r *repo) diffArgs(in diffIn) []string {
	args := []string{"diff"}
	if in.Staged {
		args = append(args, "--staged")
	}
	if in.Path != "" {
		name := in.Path
		if place, err := r.roots.Find(name); err == nil {
			name = place.String()
		}
		args = append(args, "--", name)
	}
	return args
}

func (r *repo) diff(ctx context.Context, in diffIn) (tool.Result, error) {
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"}
	if in.Staged {
		args = append(args, "--cached")
	}
	var paths []string
	if in.Path != "" {
		path, failed := r.inRepository(in.Path)
		if failed != "" {
			return tool.Fail(failed), nil
		}
		paths = []string{path}
	}
	paths, hidden, failed, err := r.shown(ctx, args, paths)
	if err != nil || failed != "" {
		return failure(failed), err
	}
	left := ""
	if hidden > 0 {
		left = fmt.Sprintf("\n[Left out because a rule keeps them from being read unasked: %d.]", hidden)
		if len(paths) == 0 {
			return tool.OK("No changes." + left), nil
		}
	}
	if len(paths) > 0 {
		args = append(append(args, "--"), paths...)
	}
	out, failed, err := r.git(ctx, args...)
	if err != nil || failed != "" {
		return failure(failed), err
	}
	if out == "" {
		return tool.OK("No changes."), nil
	}
	return tool.From("git diff", tool.Clip(ctx, strings.TrimSuffix(out, "\n")+left, tool.Head, r.keep)), nil
}

// inRepository returns the path of a file relative to the top of the workspace.
func (r *repo) inRepository(name string) (path, failed string) {
	place, err := r.roots.Find(name)
	if err != nil {
		return "", err.Error()
	}
	if place.Root != files.Workspace {
		return "", place.String() + " is not in the workspace's repository."
	}
	return place.Path, ""
}

// shown narrows a diff to the files that rules let the agent read, if they hide any.
func (r *repo) shown(ctx context.Context, args, paths []string) (shown []string, hidden int, failed string, err error) {
	hides := tool.CallFrom(ctx).Hides
	if hides == nil {
		return paths, 0, "", nil
	}
	out, failed, err := r.git(ctx, slices.Concat(args, []string{"--name-only", "--no-renames", "--relative", "--"}, paths)...)
	if err != nil || failed != "" {
		return nil, 0, failed, err
	}
	for name := range strings.Lines(out) {
		name = strings.TrimSuffix(name, "\n")
		// Git quotes names with characters that no rule was written for.
		if strings.HasPrefix(name, `"`) || hides(files.Place{Root: files.Workspace, Path: path.Join(r.folder, name)}.String()) {
			hidden++
		} else {
			shown = append(shown, name)
		}
	}
	if hidden == 0 {
		return paths, 0, "", nil
	}
	return shown, hidden, "", nil
}

// failure returns an answer about a failure. Git's own message quotes names and settings of the repository.
func failure(text string) tool.Result {
	res := tool.Fail(text)
	if strings.HasPrefix(text, gitSays) {
		res.UntrustedFrom = "git"
	}
	return res
}

const gitSays = "git: "

// git runs one inspecting command and disables everything that would run programs of
// the repository's choice. failed is an answer for the model.
func (r *repo) git(ctx context.Context, args ...string) (out, failed string, err error) {
	options, failed, err := r.withoutFilters(ctx, false)
	if err != nil || failed != "" {
		return "", failed, err
	}
	return r.plain(ctx, append(options, args...)...)
}

// withoutFilters returns the options that disable the filters that the repository itself configures:
// status and diff would run them on changed files. Filters in the user's own configuration stay, because
// large file storage needs them. For commands that write, a file that needs a repository's filter is
// refused, because without the filter something else would be stored.
func (r *repo) withoutFilters(ctx context.Context, writes bool) (options []string, failed string, err error) {
	out, failed, err := r.plain(ctx, "config", "--show-scope", "--name-only", "--get-regexp", `^filter\..*\.(clean|smudge|process|required)$`)
	if err != nil {
		return nil, "", err
	}
	if failed != "" && failed != nothing {
		return nil, failed, nil
	}
	for line := range strings.SplitSeq(out, "\n") {
		scope, name, ok := strings.Cut(line, "\t")
		if !ok || scope != "local" && scope != "worktree" {
			continue
		}
		if strings.HasSuffix(name, ".required") {
			continue
		}
		options = append(options, "-c", name+"=", "-c", fmt.Sprintf("%s.required=%v", name[:strings.LastIndexByte(name, '.')], writes))
	}
	return options, "", nil
}

// nothing is the answer of a command that found nothing and printed nothing.
const nothing = "git ended with exit code 1"

func (r *repo) plain(ctx context.Context, args ...string) (out, failed string, err error) {
	return r.command(ctx, invocation{args: args})
}

// invocation is one git command that needs more than its arguments.
type invocation struct {
	args    []string
	stdin   string
	env     []string
	timeout time.Duration // 0: timeout
}

func (r *repo) command(ctx context.Context, c invocation) (out, failed string, err error) {
	argv := append([]string{
		"git", "--no-pager", "--no-optional-locks", "--literal-pathspecs",
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-c", "diff.external=", "-c", "status.submoduleSummary=false",
	}, c.args...)
	limit := cmp.Or(c.timeout, timeout)
	res, err := r.run.Run(ctx, sandbox.Command{
		Argv: argv, Dir: r.workspace(), Timeout: limit, Call: tool.CallFrom(ctx).Key, Stdin: []byte(c.stdin),
		Env: append([]string{"GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_EXTERNAL_DIFF=", "LC_ALL=C"}, c.env...),
	})
	switch {
	case err != nil:
		return "", "git could not be started: " + err.Error(), nil
	case res.Aborted:
		return "", "", context.Cause(ctx)
	case res.TimedOut:
		return "", "git did not answer within " + limit.String() + ".", nil
	case res.ExitCode == 0, res.ExitCode == 1 && res.Stderr == "" && slices.Contains(c.args, "--no-index"): // the files differ
		return res.Stdout, "", nil
	}
	said := strings.TrimSpace(res.Stderr)
	switch {
	case strings.Contains(strings.ToLower(said), "not a git repository"):
		return "", "The workspace is not a git repository.", nil
	case said == "":
		return "", nothing, nil
	}
	return "", gitSays + tool.Clip(ctx, said, tool.Tail, nil), nil
}
