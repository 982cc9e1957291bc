package gitrepo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/programtest"
)

// gh stands in for GitHub's command line. What it knows was seen with gh 2.23.0: the flags, `--json` with its capital states and
// null, the address alone on the output of `create`, the words for a pull request that exists ("a pull request for branch … already
// exists", pkg/cmd/pr/create), the code 4 without a login, and the words without a network.
func gh(dir string, args []string) int {
	say := func(code int, format string, words ...any) int {
		fmt.Fprintf(os.Stderr, format+"\n", words...)
		return code
	}
	log, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return say(1, "%v", err)
	}
	fmt.Fprintln(log, strings.Join(args, " "))
	_ = log.Close()
	switch mode, _ := os.ReadFile(filepath.Join(dir, "mode")); string(mode) {
	case "logged out":
		return say(4, "To get started with GitHub CLI, please run:  gh auth login\nAlternatively, populate the GH_TOKEN environment variable with a GitHub API authentication token.")
	case "offline":
		return say(1, "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com")
	}
	flags, words := map[string]string{}, []string{}
	for _, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(name, "--") {
			flags[name] = value
		} else {
			words = append(words, arg)
		}
	}
	var all []map[string]any
	data, _ := os.ReadFile(filepath.Join(dir, "pulls"))
	_ = json.Unmarshal(data, &all)
	only := func(pr map[string]any) map[string]any {
		out := map[string]any{}
		for field := range strings.SplitSeq(flags["--json"], ",") {
			out[field] = pr[field]
		}
		return out
	}
	if flags["--repo"] != "github.com/o/r" {
		return say(1, "GraphQL: Could not resolve to a Repository with the name '%s'. (repository)", flags["--repo"])
	}
	same := func(pr map[string]any) bool {
		return pr["headRefName"] == flags["--head"] && pr["baseRefName"] == flags["--base"] && pr["state"] == "OPEN"
	}
	switch strings.Join(words[:2], " ") {
	case "pr list":
		list := []map[string]any{}
		for _, pr := range all {
			if same(pr) {
				list = append(list, only(pr))
			}
		}
		_ = json.NewEncoder(os.Stdout).Encode(list)
	case "pr view":
		at := slices.IndexFunc(all, func(pr map[string]any) bool { return fmt.Sprint(pr["number"]) == words[2] })
		if at < 0 {
			return say(1, "GraphQL: Could not resolve to a PullRequest with the number of %s. (repository.pullRequest)", words[2])
		}
		_ = json.NewEncoder(os.Stdout).Encode(only(all[at]))
	case "pr create":
		if at := slices.IndexFunc(all, same); at >= 0 {
			return say(1, "a pull request for branch %q into branch %q already exists:\n%s", flags["--head"], flags["--base"], all[at]["url"])
		}
		n := len(all) + 1
		url := fmt.Sprintf("https://github.com/o/r/pull/%d", n)
		all = append(all, map[string]any{"number": n, "url": url, "state": "OPEN", "mergedAt": nil, "headRefName": flags["--head"], "baseRefName": flags["--base"], "headRefOid": "abc", "title": flags["--title"]})
		data, _ := json.Marshal(all)
		if err := os.WriteFile(filepath.Join(dir, "pulls"), data, 0o600); err != nil {
			return say(1, "%v", err)
		}
		fmt.Println(url)
	default:
		return say(1, "unknown command %q for \"gh\"", words)
	}
	return 0
}

// hubbed is a clone whose remote says that it is at GitHub, with a stand-in for gh.
func (f *fixture) hubbed() *Repo {
	f.Helper()
	f.remote()
	r := f.clone()
	f.git(r.Dir(), "config", "remote.origin.url", "git@github.com:o/r.git")
	program, err := os.Executable()
	f.must(err)
	f.must(os.Mkdir(f.path("hub"), 0o700))
	programtest.Write(f, f.path("gh"), fmt.Sprintf("#!/bin/sh\nGITREPO_GH='%s' exec '%s' \"$@\"\n", f.path("hub"), program))
	r.opt.Hub = f.path("gh")
	return r
}

// A pull request is made once, however often it is asked for, and followed until it is merged.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r := f.hubbed()
	pull := NewPull{Head: "t1/work", Base: "main", Title: "--web\nAdd x", Body: "What it does.\n"}
	pr, err := r.CreatePR(ctx, pull)
	f.must(err)
	if pr.Number != 1 || pr.URL != "https://github.com/o/r/pull/1" || pr.State != PullOpen || !pr.MergedAt.IsZero() {
		t.Errorf("%+v", pr)
	}
	if again, err := r.CreatePR(ctx, pull); err != nil || again != pr {
		t.Errorf("%+v, %v", again, err)
	}
	calls := f.read(f.path("hub/calls"))
	if strings.Count(calls, "pr create") != 1 || !strings.Contains(calls, "--head=t1/work --base=main --title=--web Add x --body-file=-") {
		t.Error(calls)
	}
	f.write(f.path("hub/pulls"), strings.Replace(strings.Replace(f.read(f.path("hub/pulls")), "OPEN", "MERGED", 1), `"mergedAt":null`, `"mergedAt":"2026-03-01T12:00:00Z"`, 1))
	if pr, err = r.PRState(ctx, 1); err != nil || pr.State != PullMerged || !pr.MergedAt.Equal(noon) {
		t.Errorf("%+v, %v", pr, err)
	}
	// The task is taken up again: its next pull request is another one.
	if pr, err = r.CreatePR(ctx, pull); err != nil || pr.Number != 2 {
		t.Errorf("%+v, %v", pr, err)
	}
	f.write(f.path("hub/pulls"), strings.Replace(f.read(f.path("hub/pulls")), "OPEN", "CLOSED", 1))
	if pr, err = r.PRState(ctx, 2); err != nil || pr.State != PullClosed {
		t.Errorf("%+v, %v", pr, err)
	}
	_, err = r.PRState(ctx, 99)
	f.wants(err, ErrNoSuchBranch, "no such pull request")
}

// What stands in the way of a pull request is said with what to do about it.
func TestPullRequestFails(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r := f.hubbed()
	pull := NewPull{Head: "t1/work", Base: "main", Title: "Add x"}
	f.write(f.path("hub/mode"), "logged out")
	_, err := r.CreatePR(ctx, pull)
	f.wants(err, ErrDenied, "gh auth login", "GH_TOKEN")
	f.write(f.path("hub/mode"), "offline")
	_, err = r.PRState(ctx, 1)
	f.wants(err, ErrUnreachable, "check the network")
	f.write(f.path("hub/mode"), "")
	r.opt.Hub = f.path("missing/gh")
	_, err = r.CreatePR(ctx, pull)
	f.wants(err, ErrNoProgram, "install it", "cli.github.com")
	r.opt.Hub = f.path("gh")
	for _, head := range []string{"--web", "", "a b"} {
		_, err = r.CreatePR(ctx, NewPull{Head: head, Base: "main", Title: "x"})
		f.wants(err, ErrBadName)
	}
	_, err = r.CreatePR(ctx, NewPull{Head: "x", Base: "main", Title: " \n"})
	f.wants(err, ErrBadName, "title")
	f.git(r.Dir(), "config", "remote.origin.url", "https://github.com/o/other")
	_, err = r.CreatePR(ctx, pull)
	f.wants(err, ErrUnreachable, "no such repository")
	f.git(r.Dir(), "config", "remote.origin.url", f.path("remote.git"))
	_, err = r.CreatePR(ctx, pull)
	f.wants(err, ErrNoRemote, "GitHub")
}
