package operations_test

import (
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// In a chat the answers of git stand in blocks of code, one repository after the other.
func TestGitIsShownAsCode(t *testing.T) {
	t.Parallel()
	for want, out := range map[string]any{
		"**site** on `main`, 2 ahead and 0 behind\n```\n M a.txt\n```\nlast commits:\n```\nabc one\ndef two\n```\n**shop**\nit is gone": operations.GitStatuses{Repos: []operations.GitStatus{
			{Repo: "site", Branch: "main", Ahead: 2, Status: " M a.txt", Recent: []string{"abc one", "def two"}}, {Repo: "shop", Error: "it is gone"}}},
		"**site** `main`\n```\nabc one\n```":                        operations.GitLogs{Repos: []operations.GitLog{{Repo: "site", Branch: "main", Log: "abc one"}}},
		"**site** against `(working tree)`\n```diff\n-a\n+'''\n```": operations.GitDiffs{Repos: []operations.GitDiff{{Repo: "site", Base: "(working tree)", Diff: "-a\n+```\n"}}},
	} {
		if got := operation.Render("{repos:each}", nil, out); got != want {
			t.Errorf("%q\nexpected\n%q", got, want)
		}
	}
}
