package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/text"
)

// The kinds of errors, for errors.Is. The text of an error is a sentence for people that says what to do.
var (
	ErrNotARepository = errors.New("not a git repository")
	ErrNoSuchBranch   = errors.New("no such branch")
	ErrConflict       = errors.New("merge conflict")
	ErrDirty          = errors.New("uncommitted changes")
	ErrMoved          = errors.New("target has moved")
	ErrRejected       = errors.New("push rejected")
	ErrRemoteMismatch = errors.New("another remote")
	ErrNeverPushed    = errors.New("linked repositories are never pushed")
	ErrNoRemote       = errors.New("no remote")
	ErrUnreachable    = errors.New("remote not reachable")
	ErrDenied         = errors.New("remote denies access")
	ErrInUse          = errors.New("in use")
	ErrExists         = errors.New("exists already")
	ErrWrongBranch    = errors.New("another branch is checked out")
	ErrTampered       = errors.New("worktree cannot be trusted")
	ErrNoCheckout     = errors.New("no checkout")
	ErrBadName        = errors.New("bad name")
	ErrBadURL         = errors.New("bad url")
	ErrTimeout        = errors.New("timed out")
	ErrTooMuch        = errors.New("too much output")
	ErrNoProgram      = errors.New("program not found")
	ErrTooOld         = errors.New("git is too old")
	ErrFilter         = errors.New("filter of the repository")
)

// Error is the error of a call: one of the kinds above, with a sentence.
type Error struct {
	Kind    error
	Text    string
	Files   []string // the files it is about: conflicting or uncommitted ones
	Command string   // what a person can type to continue, if anything
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

func fail(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// names lists files in a sentence: the first few, and how many more there are.
func names(files []string) string {
	const most = 5
	list := make([]string, 0, most)
	for _, f := range files[:min(len(files), most)] {
		list = append(list, text.OneLine(f))
	}
	out := strings.Join(list, ", ")
	if more := len(files) - most; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// exitError is a program's exit with a code other than 0.
type exitError struct {
	program string
	verb    string
	code    int
	out     string
	said    string
}

func (e *exitError) Error() string {
	said := cmp.Or(text.OneLine(text.Clip(e.said, 2000)), fmt.Sprintf("it ended with the code %d", e.code))
	return fmt.Sprintf("%s %s failed: %s", e.program, e.verb, said)
}

// exited reports whether err is a program's exit with this code.
func exited(err error, code int) bool {
	var e *exitError
	return errors.As(err, &e) && e.code == code
}

// phrase is a message of git in the language C, and its meaning.
type phrase struct {
	said string
	kind error
	text string // the sentence; %s is git's message
}

// phrases are tried in order. They are git's messages in 2.38 and earlier. For all others, git's text is kept.
var phrases = []phrase{
	{"dubious ownership", ErrNotARepository, "git does not trust this repository because it belongs to somebody else; if that is right, type `git config --global --add safe.directory <its path>` as the user that runs Chorus (%s)"},
	{"not a git repository", ErrNotARepository, "there is no git repository (%s); clone one, or type `git init`"},
	{"terminal prompts disabled", ErrDenied, "the remote asks for a user name or password and nobody can be asked: set up a credential helper (for GitHub `gh auth setup-git`) or use an ssh url (%s)"},
	{"authentication failed", ErrDenied, "the remote did not accept the credentials: renew them (for GitHub `gh auth login`) (%s)"},
	{"permission denied (", ErrDenied, "the remote did not accept the ssh key: load one with `ssh-add` or add it to the account (%s)"},
	{"host key verification failed", ErrDenied, "the remote's ssh key is not known: connect once by hand with `ssh` and check it (%s)"},
	{"could not resolve host", ErrUnreachable, "the remote cannot be reached: check the network and the url (%s)"},
	{"could not connect", ErrUnreachable, "the remote cannot be reached: check the network and the url (%s)"},
	{"connection refused", ErrUnreachable, "the remote cannot be reached: check the network and the url (%s)"},
	{"connection timed out", ErrUnreachable, "the remote cannot be reached: check the network and the url (%s)"},
	{"does not appear to be a git repository", ErrUnreachable, "the remote is not a git repository: check the url (%s)"},
	{"repository not found", ErrUnreachable, "the remote has no such repository, or this machine may not see it: check the url and the credentials (%s)"},
	{"could not read from remote repository", ErrUnreachable, "the remote cannot be read: check that the url is right and that this machine may read it (%s)"},
	{"transport '", ErrBadURL, "this kind of url is not allowed: use https, ssh, git or a local path (%s)"},
	{"write-tree' is not a git command", ErrTooOld, "merging needs git 2.38 or newer (%s)"},
	{"unrelated histories", ErrConflict, "the branches have no common commit, so they cannot be merged (%s)"},
	{"would be overwritten", ErrDirty, "uncommitted changes are in the way: commit or stash them first (%s)"},
	{"filter '", ErrFilter, "this repository's own configuration names a filter program, which Chorus does not run: put it into the configuration of the user, as `git lfs install` does (%s)"},
	{"index.lock': file exists", ErrInUse, "another git command is working in this checkout; if there is none, remove the named file (%s)"},
}

// explain turns a failure of git into one of our errors if it is known.
func explain(err error) error {
	var e *exitError
	if !errors.As(err, &e) {
		return err
	}
	said := strings.ToLower(e.said)
	for _, p := range phrases {
		if strings.Contains(said, p.said) {
			return fail(p.kind, p.text, e.Error())
		}
	}
	return err
}

// timedOut returns the error for a call that took too long, unless the caller itself gave up.
func timedOut(ctx context.Context, program, verb, limit string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fail(ErrTimeout, "%s %s did not end within %s and was stopped: check the network and the disk, then try again", program, verb, limit)
}
