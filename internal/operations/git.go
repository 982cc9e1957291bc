package operations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"chorus/internal/operation"
)

// Git implements operations on the repositories of projects.
type Git interface {
	GitStatus(context.Context, operation.Caller, GitStatusQuery) (GitStatuses, error)
	GitLog(context.Context, operation.Caller, GitLogQuery) (GitLogs, error)
	GitDiff(context.Context, operation.Caller, GitDiffQuery) (GitDiffs, error)
	GitChangedFiles(context.Context, operation.Caller, GitDiffQuery) (GitChanged, error)
	GitCommit(context.Context, operation.Caller, GitMessage) (GitCommitted, error)
	GitPush(context.Context, operation.Caller, GitBranchChoice) (GitBranch, error)
	PushBranch(context.Context, operation.Caller, GitPushed) (GitBranch, error)
	GitCreateBranch(context.Context, operation.Caller, GitBranchName) (GitBranch, error)
	GitCheckout(context.Context, operation.Caller, GitBranchName) (GitBranch, error)
	GitMerge(context.Context, operation.Caller, GitMergeRequest) (GitMerged, error)
	GitCreatePR(context.Context, operation.Caller, NewPullRequest) (PullRequest, error)
}

// GitPlace selects a repository.
type GitPlace struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Repo    string `json:"repoId,omitempty" maxLen:"100" noun:"repo" tool:"repo_id" cli:"repo" slash:"repo" doc:"the repository; left out: the project's first one"`
}

// GitStatusQuery selects repositories.
type GitStatusQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Repo    string `json:"repoId,omitempty" maxLen:"100" noun:"repo" tool:"repo_id" cli:"repo" slash:"repo" doc:"the repository; left out: all of the project"`
	Fetch   bool   `json:"fetch,omitempty" doc:"fetch from the remotes of clones first, for at most 20 seconds"`
}

// GitLogQuery selects commits.
type GitLogQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Repo    string `json:"repoId,omitempty" maxLen:"100" noun:"repo" tool:"repo_id" cli:"repo" slash:"repo" doc:"the repository; left out: all of the project"`
	Branch  string `json:"branch,omitempty" maxLen:"200" doc:"the branch; left out: what is checked out"`
	Count   int    `json:"count,omitempty" min:"1" max:"100" default:"10" cli:"count,n" doc:"maximum number of commits"`
}

// GitDiffQuery says what to compare.
type GitDiffQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Repo    string `json:"repoId,omitempty" maxLen:"100" noun:"repo" tool:"repo_id" cli:"repo" slash:"repo" doc:"the repository"`
	Base    string `json:"baseBranch,omitempty" maxLen:"200" tool:"base_branch" cli:"base" slash:"base" doc:"the branch to compare with"`
}

// GitMessage is the message of a commit.
type GitMessage struct {
	Message string `json:"message" minLen:"1" maxLen:"10000" doc:"the commit's message"`
	GitPlace
}

// GitBranchChoice names an optional branch.
type GitBranchChoice struct {
	Branch string `json:"branch,omitempty" maxLen:"200" doc:"the branch; left out: what is checked out"`
	GitPlace
}

// GitPushed names an optional branch, as in push_branch.
type GitPushed struct {
	Branch string `json:"branchName,omitempty" maxLen:"200" tool:"branch_name" cli:"branch" slash:"branch" doc:"the branch; left out: what is checked out"`
	GitPlace
}

// GitBranchName names a branch.
type GitBranchName struct {
	Branch string `json:"branchName" minLen:"1" maxLen:"200" tool:"branch_name" cli:"branch" slash:"branch" doc:"the branch"`
	GitPlace
}

// GitMergeRequest says what to merge into what.
type GitMergeRequest struct {
	Branch string `json:"branchName" minLen:"1" maxLen:"200" tool:"branch_name" cli:"branch" slash:"branch" doc:"the branch to merge"`
	Into   string `json:"defaultBranch,omitempty" maxLen:"200" tool:"default_branch" cli:"into" slash:"into" doc:"the branch to merge into; left out: the repository's default branch"`
	GitPlace
}

// NewPullRequest describes a new pull request.
type NewPullRequest struct {
	Title  string `json:"title" minLen:"1" maxLen:"200" doc:"its title"`
	Body   string `json:"body,omitempty" maxLen:"50000" doc:"its description, as Markdown"`
	Branch string `json:"branch,omitempty" maxLen:"200" doc:"the branch to merge; left out: what is checked out"`
	Base   string `json:"base,omitempty" maxLen:"200" doc:"the branch to merge into; left out: the repository's default branch"`
	GitPlace
	Key string `json:"-" key:"true"`
}

// GitStatuses are the states of a project's repositories.
type GitStatuses struct {
	Project string      `json:"projectId"`
	Name    string      `json:"projectName"`
	Repos   []GitStatus `json:"repos"`
}

// GitStatus is the state of a repository.
type GitStatus struct {
	Repo   string   `json:"repoId"`
	Path   string   `json:"path,omitempty"`
	Branch string   `json:"branch,omitempty"` // "": none is checked out
	Ahead  int      `json:"ahead,omitempty"`  // commits that the remote lacks, as far as is known here
	Behind int      `json:"behind,omitempty"`
	Status string   `json:"status,omitempty"` // one line per changed file, or (clean)
	Recent []string `json:"recentCommits,omitempty"`
	Error  string   `json:"error,omitempty"` // why the state is unknown
	Note   string   `json:"note,omitempty"`  // if fetching was requested: that it worked, or why not; the rest is then as of the last fetch
}

// GitLogs are the last commits of repositories.
type GitLogs struct {
	Project string   `json:"projectId"`
	Repos   []GitLog `json:"repos"`
}

// GitLog is the last commits of a repository.
type GitLog struct {
	Repo    string      `json:"repoId"`
	Branch  string      `json:"branch,omitempty"`
	Log     string      `json:"log,omitempty"` // one line per commit, or (no commits)
	Commits []GitCommit `json:"commits"`
	Error   string      `json:"error,omitempty"`
}

// GitCommit is a commit in a list.
type GitCommit struct {
	Commit  string    `json:"commit"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
	Subject string    `json:"subject"`
}

// GitDiffs are the changes in repositories.
type GitDiffs struct {
	Project string    `json:"projectId"`
	Repos   []GitDiff `json:"repos"`
}

// GitDiff is the changes in a repository.
type GitDiff struct {
	Repo      string   `json:"repoId"`
	Base      string   `json:"baseBranch"` // or (working tree)
	Files     []string `json:"filesChanged"`
	Diff      string   `json:"diff"` // or (no changes)
	Truncated bool     `json:"truncated,omitempty"`
	Error     string   `json:"error,omitempty"`
}

// GitChanged are the files that differ from a branch.
type GitChanged struct {
	Project string   `json:"projectId"`
	Repo    string   `json:"repoId"`
	Base    string   `json:"baseBranch"`
	Files   []string `json:"files"`
	Count   int      `json:"count"` // the total, even if not all are listed
}

// GitCommitted is the result of a commit.
type GitCommitted struct {
	Project   string   `json:"projectId"`
	Repo      string   `json:"repoId"`
	Branch    string   `json:"branch"`
	Committed bool     `json:"committed"`
	Status    string   `json:"status"` // committed or nothing_to_commit
	Commit    string   `json:"commit,omitempty"`
	Text      string   `json:"commitMessage,omitempty"`
	Files     int      `json:"files,omitempty"`
	Skipped   []string `json:"skipped,omitempty"` // nested repositories, which were left out
	Message   string   `json:"message,omitempty"`
	Warning   string   `json:"warning,omitempty"`
}

// GitBranch is the result of an operation on a branch.
type GitBranch struct {
	Project string `json:"projectId"`
	Repo    string `json:"repoId"`
	Branch  string `json:"branch"`
	Before  string `json:"previousBranch,omitempty"`
	Status  string `json:"status"` // created, checked_out or pushed
	Warning string `json:"warning,omitempty"`
}

// GitMerged is the result of a merge.
type GitMerged struct {
	Project   string   `json:"projectId"`
	Repo      string   `json:"repoId"`
	Branch    string   `json:"branch"`
	Target    string   `json:"target"`
	Merged    bool     `json:"merged"`
	Status    string   `json:"status"` // merged, nothing_to_merge or conflict
	Commit    string   `json:"commit,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	Message   string   `json:"message,omitempty"`
	Warning   string   `json:"warning,omitempty"`
}

// PullRequest is an existing pull request.
type PullRequest struct {
	Project string `json:"projectId"`
	Repo    string `json:"repoId"`
	URL     string `json:"prUrl"`
	Number  int    `json:"number"`
	Branch  string `json:"branch"`
	Base    string `json:"base"`
}

// gitErrors are the errors of commands on a repository: it is missing, its state does not allow it, or the caller may not change it.
func gitErrors() []operation.Kind {
	return []operation.Kind{operation.NotFound, operation.Conflict, operation.Forbidden}
}

// inCheckout says where commands on repositories work.
const inCheckout = "A linked repository is used in place. For a clone or a new repository, the project has its own checkout, whose branch workspace follows the default branch."

// Shown formats the state of a repository as git prints it.
func (s GitStatus) Shown() string {
	head := "**" + s.Repo + "**"
	if s.Branch != "" {
		head += " on `" + s.Branch + "`"
	}
	if s.Ahead+s.Behind > 0 {
		head += fmt.Sprintf(", %d ahead and %d behind", s.Ahead, s.Behind)
	}
	return head + operation.Render("\n{error}\n{note}\n{status:block}", nil, s) + lastCommits(s.Recent)
}

func lastCommits(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "\nlast commits:\n" + operation.Render("{text:block}", nil, struct {
		Text string `json:"text"`
	}{strings.Join(list, "\n")})
}

// Shown formats the log of a repository as git prints it.
func (l GitLog) Shown() string {
	return operation.Render("**{repoId}** `{branch}`\n{error}\n{log:block}", nil, l)
}

// Shown formats the difference as git prints it.
func (d GitDiff) Shown() string {
	return operation.Render("**{repoId}** against `{baseBranch}`\n{error}\n{diff:diff}", nil, d)
}

// The operations on the repositories of projects. Four of them exist twice, under another tool name that people may know instead.
var (
	GetGitStatus = operation.New(operation.Info{Name: "git.status", Help: "Show branch, changes and last commits of a project's repositories", Scope: operation.Read,
		Errors: gitErrors(), Judged: "project_git_status",
		HTTP:  []operation.HTTP{{Route: "GET /api/git/status", ID: "getGitStatus", Tag: "git"}},
		CLI:   []operation.CLI{{Words: "git status"}},
		Slash: []operation.Slash{{Words: "git status", Show: "{repos:each}"}},
		Tool:  "get_git_status"}, Git.GitStatus)

	GetGitLog = operation.New(operation.Info{Name: "git.log", Help: "Show the last commits of a project's repositories", Scope: operation.Read,
		Errors: gitErrors(), Judged: "project_git_log",
		HTTP:  []operation.HTTP{{Route: "GET /api/git/log", ID: "gitLog", Tag: "git"}},
		CLI:   []operation.CLI{{Words: "git log"}},
		Slash: []operation.Slash{{Words: "git log", Show: "{repos:each}"}},
		Tool:  "git_log"}, Git.GitLog)

	GetGitDiff = operation.New(operation.Info{Name: "git.diff", Help: "Show what changed in a project's repositories: since the last commit, or since a branch", Scope: operation.Read,
		Errors: gitErrors(), Judged: "project_git_diff",
		HTTP:  []operation.HTTP{{Route: "GET /api/git/diff", ID: "gitDiff", Tag: "git"}},
		CLI:   []operation.CLI{{Words: "git diff"}},
		Slash: []operation.Slash{{Words: "git diff", Show: "{repos:each}"}},
		Tool:  "git_diff"}, Git.GitDiff)

	GetGitChangedFiles = operation.New(operation.Info{Name: "git.files", Help: "List the files that differ from a branch, including new ones", Scope: operation.Read,
		Errors: gitErrors(), Judged: "project_git_changed_files",
		HTTP:  []operation.HTTP{{Route: "GET /api/git/changed-files", ID: "gitChangedFiles", Tag: "git"}},
		CLI:   []operation.CLI{{Words: "git files"}},
		Slash: []operation.Slash{{Words: "git files"}},
		Tool:  "git_changed_files"}, Git.GitChangedFiles)

	GitCommitAll = operation.New(operation.Info{Name: "git.commit", Help: "Commit all changes of a repository", Scope: operation.Chat, Effect: operation.Changes,
		Doc: inCheckout, Errors: gitErrors(), Judged: "project_git_commit",
		HTTP:  []operation.HTTP{{Route: "POST /api/git/commit", ID: "gitCommit", Tag: "git", Body: "GitMessage"}},
		CLI:   []operation.CLI{{Words: "git commit", Args: "MESSAGE", Example: "  chorus git commit 'Fix the settings page' -p my-web-app"}},
		Slash: []operation.Slash{{Words: "git commit"}},
		Tool:  "git_commit"}, Git.GitCommit)

	GitPush = operation.New(operation.Info{Name: "git.push", Help: "Push a branch to the remote; linked repositories are never pushed", Scope: operation.Chat, Effect: operation.Changes,
		Errors: gitErrors(), Judged: "project_git_push",
		HTTP:  []operation.HTTP{{Route: "POST /api/git/push", ID: "gitPush", Tag: "git", Body: "GitBranchChoice"}},
		CLI:   []operation.CLI{{Words: "git push", Args: "[BRANCH]"}},
		Slash: []operation.Slash{{Words: "git push"}},
		Tool:  "git_push", Done: "{branch} of {repoId} is pushed"}, Git.GitPush)

	GitCreateBranch = operation.New(operation.Info{Name: "git.branch", Help: "Create a branch if it is missing, and switch to it", Scope: operation.Chat, Effect: operation.Changes,
		Doc: inCheckout, Errors: gitErrors(), Judged: "project_git_branch",
		HTTP:  []operation.HTTP{{Route: "POST /api/git/branches", ID: "gitCreateBranch", Tag: "git", Body: "GitBranchName", Status: 200}},
		CLI:   []operation.CLI{{Words: "git branch", Args: "BRANCH"}},
		Slash: []operation.Slash{{Words: "git branch"}},
		Tool:  "git_create_branch"}, Git.GitCreateBranch)

	CheckoutBranch = operation.New(operation.Info{Name: "git.checkout", Help: "Switch to an existing branch", Scope: operation.Chat, Effect: operation.Changes,
		Doc: inCheckout, Errors: gitErrors(), Judged: "project_git_checkout",
		HTTP:  []operation.HTTP{{Route: "POST /api/git/checkout", ID: "checkoutBranch", Tag: "git", Body: "GitBranchName"}},
		CLI:   []operation.CLI{{Words: "git checkout", Args: "BRANCH"}},
		Slash: []operation.Slash{{Words: "git checkout"}},
		Tool:  "checkout_branch"}, Git.GitCheckout)

	GitMerge = operation.New(operation.Info{Name: "git.merge", Help: "Merge a branch into the default branch; conflicts change nothing", Scope: operation.Chat, Effect: operation.Changes,
		Doc: "In a clone, the merge is pushed to the remote, like merges of tasks.", Errors: gitErrors(), Judged: "project_git_merge",
		HTTP:  []operation.HTTP{{Route: "POST /api/git/merge", ID: "gitMerge", Tag: "git", Body: "GitMergeRequest"}},
		CLI:   []operation.CLI{{Words: "git merge", Args: "BRANCH"}},
		Slash: []operation.Slash{{Words: "git merge"}},
		Tool:  "git_merge"}, Git.GitMerge)

	GitCreatePR = operation.New(operation.Info{Name: "git.pr", Help: "Push a branch and open a pull request with the gh program", Scope: operation.Chat, Effect: operation.Creates,
		Errors: gitErrors(), Judged: "project_git_create_pr",
		HTTP:  []operation.HTTP{{Route: "POST /api/git/pull-requests", ID: "gitCreatePR", Tag: "git", Body: "NewPullRequest", Status: 201}},
		CLI:   []operation.CLI{{Words: "git pr", Args: "TITLE", Example: "  chorus git pr 'Fix the settings page' --branch fix-settings -p my-web-app"}},
		Slash: []operation.Slash{{Words: "git pr"}},
		Tool:  "git_create_pr", Done: "{prUrl}"}, Git.GitCreatePR)

	CommitChanges = operation.New(operation.Info{Name: "project.commit", Help: "Commit all changes of a project's first repository, or of a named one", Scope: operation.Chat, Effect: operation.Changes,
		Doc: inCheckout, Errors: gitErrors(), Judged: "project_git_commit",
		HTTP:  []operation.HTTP{{Route: "POST /api/projects/{projectId}/commit", ID: "commitChanges", Body: "ProjectGitMessage"}},
		CLI:   []operation.CLI{{Words: "project commit", Args: "MESSAGE"}},
		Slash: []operation.Slash{{Words: "project commit"}},
		Tool:  "commit_changes"}, Git.GitCommit)

	PushBranch = operation.New(operation.Info{Name: "project.push", Help: "Push a branch of a project's first repository, or of a named one", Scope: operation.Chat, Effect: operation.Changes,
		Errors: gitErrors(), Judged: "project_git_push",
		HTTP:  []operation.HTTP{{Route: "POST /api/projects/{projectId}/push", ID: "pushBranch", Body: "ProjectGitPush"}},
		CLI:   []operation.CLI{{Words: "project push", Args: "[BRANCH]"}},
		Slash: []operation.Slash{{Words: "project push"}},
		Tool:  "push_branch", Done: "{branch} of {repoId} is pushed"}, Git.PushBranch)

	CreateBranch = operation.New(operation.Info{Name: "project.branch", Help: "Make a branch in a project's first repository, or in the one that is named, and switch to it", Scope: operation.Chat, Effect: operation.Changes,
		Doc: inCheckout, Errors: gitErrors(), Judged: "project_git_branch",
		HTTP:  []operation.HTTP{{Route: "POST /api/projects/{projectId}/branches", ID: "createBranch", Body: "ProjectGitBranch", Status: 200}},
		CLI:   []operation.CLI{{Words: "project branch", Args: "BRANCH"}},
		Slash: []operation.Slash{{Words: "project branch"}},
		Tool:  "create_branch"}, Git.GitCreateBranch)

	MergeBranch = operation.New(operation.Info{Name: "project.merge", Help: "Merge a branch into the default branch of a project's first repository, or of the one that is named", Scope: operation.Chat, Effect: operation.Changes,
		Doc: "With conflicts nothing is touched. In a clone, the merge is pushed to the remote, like merges of tasks.", Errors: gitErrors(), Judged: "project_git_merge",
		HTTP:  []operation.HTTP{{Route: "POST /api/projects/{projectId}/merge", ID: "mergeBranch", Body: "ProjectGitMerge"}},
		CLI:   []operation.CLI{{Words: "project merge", Args: "BRANCH"}},
		Slash: []operation.Slash{{Words: "project merge"}},
		Tool:  "merge_branch"}, Git.GitMerge)
)

func gitCommands() []operation.Any {
	return []operation.Any{GetGitStatus, GetGitLog, GetGitDiff, GetGitChangedFiles, GitCommitAll, GitPush, GitCreateBranch, CheckoutBranch, GitMerge, GitCreatePR, CommitChanges, PushBranch, CreateBranch, MergeBranch}
}
