package gitrepo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/pattern"
)

// PullRequest is a pull request.
type PullRequest struct {
	Number   int       `json:"number"`
	URL      string    `json:"url"`
	State    PullState `json:"state"`
	MergedAt time.Time `json:"mergedAt,omitzero"`
	Head     string    `json:"headRefName"`
	HeadOID  string    `json:"headRefOid"`
	Base     string    `json:"baseRefName"`
}

// PullState is the state of a pull request.
type PullState string

// The states of a pull request.
const (
	PullOpen   PullState = "open"
	PullMerged PullState = "merged"
	PullClosed PullState = "closed" // closed without being merged
)

// UnmarshalJSON reads gh's upper-case states.
func (s *PullState) UnmarshalJSON(data []byte) error {
	var word string
	if err := json.Unmarshal(data, &word); err != nil {
		return err
	}
	*s = PullState(strings.ToLower(word))
	switch *s {
	case PullOpen, PullMerged, PullClosed:
		return nil
	}
	return fmt.Errorf("gh gave a pull request the state %q", word)
}

// pullFields are the fields requested from gh, which has supported all of them since 2.0.
const pullFields = "number,url,state,mergedAt,headRefName,headRefOid,baseRefName"

// NewPull is a pull request to be created.
type NewPull struct {
	Head  string // the branch, which the remote must have
	Base  string
	Title string
	Body  string
}

var pullURL = pattern.Lazy(`https://[^\s]+/pull/([0-9]+)`)

// CreatePR creates a pull request, or returns the open one for the same branches,
// so that a repetition after a kill creates no second one. A branch whose pull
// request was merged or closed gets a new one.
func (r *Repo) CreatePR(ctx context.Context, n NewPull) (PullRequest, error) {
	for _, branch := range []string{n.Head, n.Base} {
		if err := CheckBranch(branch); err != nil {
			return PullRequest{}, err
		}
	}
	title := oneLine(n.Title)
	if title == "" {
		return PullRequest{}, fail(ErrBadName, "a pull request needs a title")
	}
	repo, err := r.hubRepo(ctx)
	if err != nil {
		return PullRequest{}, err
	}
	if pr, ok, err := r.findPR(ctx, repo, n); err != nil || ok {
		return pr, err
	}
	out, err := r.hub(ctx, "pr create", n.Body, "pr", "create", "--repo="+repo, "--head="+n.Head, "--base="+n.Base, "--title="+title, "--body-file=-")
	r.step("pull request made")
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		return PullRequest{}, hubError(err)
	}
	// Somebody else may have created it meanwhile. Also, gh prints only the address.
	pr, ok, findErr := r.findPR(ctx, repo, n)
	if findErr == nil && ok {
		return pr, nil
	}
	if m := pullURL().FindStringSubmatch(out); err == nil && m != nil { // GitHub's list may be out of date
		pr := PullRequest{URL: m[0], State: PullOpen, Head: n.Head, Base: n.Base}
		_, _ = fmt.Sscan(m[1], &pr.Number)
		return pr, nil
	}
	return PullRequest{}, hubError(cmp.Or(err, findErr, fmt.Errorf("gh made a pull request for %s but does not list it", n.Head)))
}

// findPR finds the open pull request for a pair of branches.
func (r *Repo) findPR(ctx context.Context, repo string, n NewPull) (PullRequest, bool, error) {
	out, err := r.hub(ctx, "pr list", "", "pr", "list", "--repo="+repo, "--head="+n.Head, "--base="+n.Base, "--state=open", "--limit=10", "--json="+pullFields)
	if err != nil {
		return PullRequest{}, false, hubError(err)
	}
	var list []PullRequest
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return PullRequest{}, false, fmt.Errorf("read what gh pr list gave: %w", err)
	}
	for _, pr := range list {
		if pr.Head == n.Head && pr.Base == n.Base {
			return pr, true, nil
		}
	}
	return PullRequest{}, false, nil
}

// PRState returns the current state of a pull request.
func (r *Repo) PRState(ctx context.Context, number int) (PullRequest, error) {
	if number <= 0 {
		return PullRequest{}, fail(ErrBadName, "%d is not the number of a pull request", number)
	}
	repo, err := r.hubRepo(ctx)
	if err != nil {
		return PullRequest{}, err
	}
	out, err := r.hub(ctx, "pr view", "", "pr", "view", fmt.Sprint(number), "--repo="+repo, "--json="+pullFields)
	if err != nil {
		return PullRequest{}, hubError(err)
	}
	var pr PullRequest
	if err := json.Unmarshal([]byte(out), &pr); err != nil {
		return PullRequest{}, fmt.Errorf("read what gh pr view gave: %w", err)
	}
	return pr, nil
}

// hubRepo returns the remote in the form that gh expects: host/owner/name.
// So gh does not read the repository's own settings.
func (r *Repo) hubRepo(ctx context.Context) (string, error) {
	if r.kind == KindLink {
		return "", fail(ErrNeverPushed, "%s is a linked checkout, which Chorus never pushes, so it gets no pull requests: approve the task to merge it there", r.dir)
	}
	url, err := r.RemoteURL(ctx)
	if err != nil {
		return "", err
	}
	at, err := parseURL(url, true)
	if err != nil || at.host == "" || strings.Count(at.path, "/") != 1 {
		return "", fail(ErrNoRemote, "pull requests need a remote at GitHub, and this repository has %s: merge without one, or add the repository again with its GitHub url", cmp.Or(redacted(url), "none"))
	}
	host, _, _ := strings.Cut(at.host, ":")
	return host + "/" + at.path, nil
}

// hub runs gh.
func (r *Repo) hub(ctx context.Context, verb, stdin string, args ...string) (string, error) {
	c := command{args: args, dir: r.dir, stdin: stdin, network: true, env: []string{"GIT_DIR=" + r.gitDir}}
	out, _, err := r.runner.run(ctx, cmp.Or(r.opt.Hub, "gh"), verb, c)
	return out, err
}

// hubError explains why gh failed. Exit code 4 means that nobody is logged in.
func hubError(err error) error {
	var e *exitError
	if !errors.As(err, &e) {
		return err
	}
	said := strings.ToLower(e.said)
	switch {
	case e.code == 4 || strings.Contains(said, "gh auth login") || strings.Contains(said, "bad credentials"):
		return fail(ErrDenied, "GitHub's command line is not logged in: type `gh auth login` as the user that runs Chorus, or set GH_TOKEN (%s)", e.Error())
	case strings.Contains(said, "error connecting to"):
		return fail(ErrUnreachable, "GitHub cannot be reached: check the network (%s)", e.Error())
	case strings.Contains(said, "could not resolve to a pullrequest"):
		return fail(ErrNoSuchBranch, "GitHub has no such pull request (%s)", e.Error())
	case strings.Contains(said, "could not resolve to a repository"):
		return fail(ErrUnreachable, "GitHub has no such repository, or this account may not see it: check the url and `gh auth status` (%s)", e.Error())
	case strings.Contains(said, "no commits between"):
		return fail(ErrExists, "there is nothing to make a pull request of: the branch has no commits of its own (%s)", e.Error())
	}
	return err
}
