// Package hubtest replaces, in tests, GitHub's command line gh and the pull requests behind it.
//
// It accepts gh's flags, prints its output and fails like gh does, as observed with gh 2.23.0
// and read in its source (pkg/cmd/pr/create, pkg/cmd/pr/view): `--json` with upper-case states
// and null for missing values, only the address as output of `create`, the message for an
// existing pull request, the code 4 without a login, and the message without a network. A test
// that uses it calls Main first in its TestMain.
package hubtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"chorus/internal/programtest"
)

// variable tells the test's own program that it was started as gh. Its value is the hub's folder.
const variable = "CHORUS_HUBTEST"

// Main acts as gh if this process was started as gh, and returns otherwise.
func Main() {
	if dir := os.Getenv(variable); dir != "" {
		os.Exit(gh(dir, os.Args[1:]))
	}
}

// Pull is a pull request.
type Pull struct {
	Number   int        `json:"number"`
	URL      string     `json:"url"`
	State    string     `json:"state"`
	MergedAt *time.Time `json:"mergedAt"`
	Head     string     `json:"headRefName"`
	HeadOID  string     `json:"headRefOid"`
	Base     string     `json:"baseRefName"`
	Title    string     `json:"title"`
	Body     string     `json:"body"`
}

// Hub is one repository at GitHub.
type Hub struct {
	Program string // the gh to start
	tb      testing.TB
	dir     string
}

// New returns a hub with one repository: owner/name, at github.com.
func New(tb testing.TB, repo string) *Hub {
	tb.Helper()
	dir := tb.TempDir()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	h := &Hub{Program: filepath.Join(dir, "gh"), tb: tb, dir: dir}
	h.write("repo", "github.com/"+repo)
	programtest.Write(tb, h.Program, fmt.Sprintf("#!/bin/sh\n%s='%s' exec '%s' \"$@\"\n", variable, dir, self))
	return h
}

func (h *Hub) write(name, text string) {
	h.tb.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.tb.Fatal(err)
	}
}

// The ways in which gh can fail.
const (
	Works     = ""
	LoggedOut = "logged out"
	Offline   = "offline"
)

// Fail makes all further calls fail in a way, or work again.
func (h *Hub) Fail(how string) { h.tb.Helper(); h.write("mode", how) }

// Calls returns the arguments of all calls so far, one line each.
func (h *Hub) Calls() string {
	data, _ := os.ReadFile(filepath.Join(h.dir, "calls"))
	return string(data)
}

// Pulls returns the pull requests in order of creation.
func (h *Hub) Pulls() []Pull {
	h.tb.Helper()
	all, err := load(h.dir)
	if err != nil {
		h.tb.Fatal(err)
	}
	return all
}

// Merge merges a pull request, as a person does on the page.
func (h *Hub) Merge(number int, at time.Time) {
	h.tb.Helper()
	h.change(number, func(p *Pull) { p.State, p.MergedAt = "MERGED", &at })
}

// Close closes a pull request without merging it.
func (h *Hub) Close(number int) {
	h.tb.Helper()
	h.change(number, func(p *Pull) { p.State = "CLOSED" })
}

func (h *Hub) change(number int, with func(*Pull)) {
	h.tb.Helper()
	all := h.Pulls()
	if number < 1 || number > len(all) {
		h.tb.Fatalf("there is no pull request %d", number)
	}
	with(&all[number-1])
	if err := save(h.dir, all); err != nil {
		h.tb.Fatal(err)
	}
}

func load(dir string) ([]Pull, error) {
	data, err := os.ReadFile(filepath.Join(dir, "pulls"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Pull
	return all, json.Unmarshal(data, &all)
}

func save(dir string, all []Pull) error {
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "pulls"), data, 0o600)
}

// failed is the error of a failed call.
type failed struct {
	code  int
	words string
}

func (f failed) Error() string { return f.words }

func fail(format string, args ...any) error { return failed{1, fmt.Sprintf(format, args...)} }

// gh acts as gh.
func gh(dir string, args []string) int {
	err := answer(dir, args)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	if f, ok := err.(failed); ok {
		return f.code
	}
	return 1
}

func answer(dir string, args []string) error {
	log, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, strings.Join(args, " "))
	if err := log.Close(); err != nil {
		return err
	}
	switch mode, _ := os.ReadFile(filepath.Join(dir, "mode")); string(mode) {
	case LoggedOut:
		return failed{4, "To get started with GitHub CLI, please run:  gh auth login\nAlternatively, populate the GH_TOKEN environment variable with a GitHub API authentication token."}
	case Offline:
		return fail("error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com")
	}
	flags, words := map[string]string{}, []string{}
	for _, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(name, "--") {
			flags[name] = value
		} else {
			words = append(words, arg)
		}
	}
	if repo, err := os.ReadFile(filepath.Join(dir, "repo")); err != nil || flags["--repo"] != string(repo) {
		_, name, _ := strings.Cut(flags["--repo"], "/")
		return fail("GraphQL: Could not resolve to a Repository with the name '%s'. (repository)", name)
	}
	all, err := load(dir)
	if err != nil {
		return err
	}
	switch strings.Join(words[:min(len(words), 2)], " ") {
	case "pr list":
		return list(all, flags)
	case "pr view":
		return view(all, words, flags)
	case "pr create":
		return create(dir, all, flags)
	}
	return fail("unknown command %q for \"gh\"", strings.Join(words, " "))
}

func same(flags map[string]string) func(Pull) bool {
	return func(p Pull) bool { return p.Head == flags["--head"] && p.Base == flags["--base"] && p.State == "OPEN" }
}

func list(all []Pull, flags map[string]string) error {
	out := []map[string]any{}
	for _, p := range slices.Backward(all) { // newest first
		if same(flags)(p) {
			shown, err := fields(p, flags["--json"])
			if err != nil {
				return err
			}
			out = append(out, shown)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func view(all []Pull, words []string, flags map[string]string) error {
	if len(words) < 3 {
		return fail("argument required when using the --repo flag")
	}
	n, err := strconv.Atoi(words[2])
	if err != nil || n < 1 || n > len(all) {
		return fail("GraphQL: Could not resolve to a PullRequest with the number of %s. (repository.pullRequest)", words[2])
	}
	shown, err := fields(all[n-1], flags["--json"])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(shown)
}

// fields returns the fields named by --json.
func fields(p Pull, names string) (map[string]any, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var have map[string]any
	if err := json.Unmarshal(data, &have); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name := range strings.SplitSeq(names, ",") {
		value, ok := have[name]
		if !ok {
			return nil, fail("Unknown JSON field: %q", name)
		}
		out[name] = value
	}
	return out, nil
}

func create(dir string, all []Pull, flags map[string]string) error {
	if at := slices.IndexFunc(all, same(flags)); at >= 0 {
		return fail("a pull request for branch %q into branch %q already exists:\n%s", flags["--head"], flags["--base"], all[at].URL)
	}
	body, err := os.ReadFile("/dev/stdin")
	if flags["--body-file"] != "-" || err != nil {
		return fail("must provide `--title` and `--body` (or `--fill`) when not running interactively")
	}
	repo := strings.TrimPrefix(flags["--repo"], "github.com/")
	p := Pull{Number: len(all) + 1, State: "OPEN", Head: flags["--head"], Base: flags["--base"], Title: flags["--title"], Body: string(body)}
	p.URL = fmt.Sprintf("https://github.com/%s/pull/%d", repo, p.Number)
	if err := save(dir, append(all, p)); err != nil {
		return err
	}
	fmt.Println(p.URL)
	return nil
}
