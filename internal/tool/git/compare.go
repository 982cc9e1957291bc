package git

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"chorus/internal/sandbox"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

// CompareName is the name of the tool that Compare returns.
const CompareName = "git_diff_base"

// Comparison says what the work on a branch is compared with.
type Comparison struct {
	Base   string // a branch, tag or commit; "": main, or the repository's default branch
	Path   string // only this file or folder
	Folder string // the folder of the workspace that contains the repository; "": the workspace
	// Uncommitted adds what is not committed: staged and unstaged
	// changes, and new files that are not ignored.
	Uncommitted bool
}

// words returns the comparison as it is judged and shown.
func (c Comparison) words() string {
	out := "diff " + cmp.Or(c.Base, "main") + "...HEAD"
	if c.Uncommitted {
		out = "diff --merge-base " + cmp.Or(c.Base, "main")
	}
	if c.Path != "" {
		out += " -- " + c.Path
	}
	return out
}

// Compare returns a tool that shows what a branch has changed since it left
// its base. It keeps the promises of the other tools.
func Compare(run sandbox.Executor, roots *files.Roots, keep tool.Keep, c Comparison) tool.Tool {
	r := &repo{run: run, roots: roots, keep: keep}
	return tool.New(tool.Func[struct{}]{Name: CompareName, Description: "Compare with a branch.", ReadOnly: true, Risk: tool.Low,
		Access: func(struct{}) []tool.Access { return []tool.Access{{Tool: "git", Detail: c.words()}} },
		Label:  func(struct{}) string { return "git " + c.words() },
		Run:    func(ctx context.Context, _ struct{}) (tool.Result, error) { return r.compare(ctx, c) }})
}

func (r *repo) compare(ctx context.Context, c Comparison) (tool.Result, error) {
	if failed := r.enter(c.Folder); failed != "" {
		return tool.Fail(failed), nil
	}
	var paths []string
	if c.Path != "" {
		path, failed := r.inRepository(c.Path)
		if failed != "" {
			return tool.Fail(failed), nil
		}
		paths = []string{path}
	}
	since, failed, err := r.since(ctx, c.Base)
	if err != nil || failed != "" {
		return failure(failed), err
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--relative", since}
	if !c.Uncommitted {
		args = append(args, "HEAD")
	}
	shown, hidden, failed, err := r.shown(ctx, args, paths)
	if err != nil || failed != "" {
		return failure(failed), err
	}
	var out string
	if hidden == 0 || len(shown) > 0 {
		if out, failed, err = r.git(ctx, append(append(args, "--"), shown...)...); err != nil || failed != "" {
			return failure(failed), err
		}
	}
	if c.Uncommitted {
		more, kept, failed, err := r.newFiles(ctx, paths)
		if err != nil || failed != "" {
			return failure(failed), err
		}
		out, hidden = out+more, hidden+kept
	}
	if hidden > 0 {
		out += fmt.Sprintf("[Left out because a rule keeps them from being read unasked: %d.]\n", hidden)
	}
	if out == "" {
		return tool.OK(tool.NoOutput), nil
	}
	return tool.From("git diff", tool.Clip(ctx, strings.TrimSuffix(out, "\n"), tool.Head, r.keep)), nil
}

// enter makes git run in a folder of the workspace.
func (r *repo) enter(folder string) (failed string) {
	if folder == "" || folder == "." {
		return ""
	}
	place, err := r.roots.Find(folder)
	if err != nil {
		return err.Error()
	}
	top, err := filepath.EvalSymlinks(r.roots.Dir(files.Workspace))
	if err != nil {
		return err.Error()
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(top, place.Path))
	if err != nil {
		return "There is no folder " + folder + "."
	}
	if place.Root != files.Workspace || dir != top && !strings.HasPrefix(dir, top+string(filepath.Separator)) {
		return folder + " leads out of the workspace."
	}
	r.dir, r.folder = dir, place.Path
	return ""
}

// since returns the commit at which the branch left its base.
func (r *repo) since(ctx context.Context, base string) (commit, failed string, err error) {
	bases := []string{base}
	if base == "" {
		bases = []string{"main", "origin/HEAD", "master"}
	}
	for _, name := range bases {
		// The name follows --end-of-options, so it is never read as an option.
		if _, failed, err = r.plain(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}"); err != nil {
			return "", "", err
		}
		if failed != "" && failed != nothing {
			return "", failed, nil
		}
		if failed == "" {
			commit, failed, err = r.plain(ctx, "merge-base", "--end-of-options", name, "HEAD")
			if failed == nothing {
				failed = fmt.Sprintf("HEAD and %s have no commit in common.", name)
			}
			return strings.TrimSpace(commit), failed, err
		}
	}
	if base == "" {
		return "", "There is no branch main or master, and the remote names no default branch; name one as base_branch.", nil
	}
	return "", fmt.Sprintf("There is no branch %s in this repository; name another one as base_branch.", base), nil
}

// mostNew is how many new files are shown in full; the others are only named.
const mostNew = 50

// newFiles returns the untracked files as a diff. hidden is how many of them rules keep from being read.
func (r *repo) newFiles(ctx context.Context, paths []string) (diff string, hidden int, failed string, err error) {
	list, failed, err := r.plain(ctx, append([]string{"ls-files", "--others", "--exclude-standard", "--"}, paths...)...)
	if err != nil || failed != "" {
		return "", 0, failed, err
	}
	options, failed, err := r.withoutFilters(ctx, false)
	if err != nil || failed != "" {
		return "", 0, failed, err
	}
	hides := tool.CallFrom(ctx).Hides
	var out strings.Builder
	shown, left := 0, 0
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\n"), "\n") {
		switch {
		case name == "" || strings.HasSuffix(name, "/"): // a nested repository is separate
		case strings.HasPrefix(name, `"`): // git quotes names with characters that no rule was written for
			hidden++
		case hides != nil && hides(files.Place{Root: files.Workspace, Path: path.Join(r.folder, name)}.String()):
			hidden++
		case shown == mostNew:
			left++
		default:
			shown++
			text, failed, err := r.plain(ctx, append(append([]string{}, options...), "diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--", "/dev/null", name)...)
			if err != nil {
				return "", 0, "", err
			}
			if failed != "" && failed != nothing {
				text = fmt.Sprintf("[%s is new and cannot be shown: %s]\n", name, strings.TrimPrefix(failed, gitSays))
			}
			out.WriteString(text)
		}
	}
	if left > 0 {
		fmt.Fprintf(&out, "[%d more new files are not shown]\n", left)
	}
	return out.String(), hidden, "", nil
}
