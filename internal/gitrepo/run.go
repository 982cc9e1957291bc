package gitrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/sandbox/process"
)

// The default deadlines of a command. Local ones only access a disk; the others
// wait for a network and may transfer a whole repository.
const (
	localTimeout   = 2 * time.Minute
	networkTimeout = 15 * time.Minute
)

// maxOutput is the limit for commands whose whole output is needed: file lists of very large repositories.
const maxOutput = 32 << 20

// Options say how to run git. The zero value is usable.
type Options struct {
	Git     string        // the program; "": git in PATH
	Hub     string        // the program for pull requests; "": gh in PATH
	Environ []string      // nil: this process's; only what git needs is passed on
	Local   time.Duration // deadline of a local command; 0: two minutes
	Network time.Duration // deadline of a command that contacts a remote; 0: fifteen minutes
	// LocalURLs allows cloning from paths and file:// urls. These can read whatever this
	// process may read, so only the owner of the machine may use them.
	LocalURLs bool
}

// quiet are the settings for all git commands here: nothing that a repository configures
// starts a program, nothing prompts, and nothing continues in the background. Settings
// on the command line take precedence over all files.
var quiet = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.quotePath=false", "core.alternateRefsCommand=true",
	"diff.external=", "diff.ignoreSubmodules=dirty", "status.submoduleSummary=false", "log.showSignature=false",
	"submodule.recurse=false", "fetch.recurseSubmodules=false", "push.recurseSubmodules=no",
	"commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false", "push.followTags=false",
	"gc.auto=0", "maintenance.auto=false", "rerere.enabled=false", "merge.renormalize=false",
	"advice.detachedHead=false", "advice.addEmbeddedRepo=false",
}

// kept are the variables for credentials and networks, in addition to those that every command gets.
var kept = []string{
	"SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "KRB5CCNAME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	"GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_HOST", "GH_CONFIG_DIR",
}

// protocols are all that git may use, even if a server redirects it or a submodule says otherwise.
const protocols = "https:ssh:git:file"

// runner runs git and gh.
type runner struct {
	opt Options
	env []string
	ssh string // as set in the environment; "": as in the user's settings
}

func newRunner(opt Options) *runner {
	environ := opt.Environ
	if environ == nil {
		environ = os.Environ()
	}
	ssh := ""
	env := process.Environ(environ)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(kept, name) {
			env = append(env, entry)
		}
		if name == "GIT_SSH_COMMAND" && value != "" {
			ssh = value
		}
	}
	env = append(env,
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GCM_INTERACTIVE=never", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true",
		"GIT_ALLOW_PROTOCOL="+protocols, "GIT_MERGE_AUTOEDIT=no",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_LITERAL_PATHSPECS=1",
		"GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "GH_PAGER=cat", "NO_COLOR=1", "CLICOLOR=0",
	)
	return &runner{opt: opt, env: env, ssh: ssh}
}

// sshCommand returns the user's ssh command, changed so that it does not prompt. It is passed as a
// variable, because variables take precedence over the repository's own settings.
func (r *runner) sshCommand(ctx context.Context) string {
	ssh := r.ssh
	for _, scope := range []string{"--global", "--system"} {
		if ssh == "" {
			out, _ := r.git(ctx, command{args: []string{"config", scope, "--includes", "--get", "core.sshCommand"}})
			ssh = strings.TrimSuffix(out, "\n")
		}
	}
	return "GIT_SSH_COMMAND=" + cmp.Or(ssh, "ssh") + " -oBatchMode=yes"
}

// command is one call of a program.
type command struct {
	args    []string
	config  []string // additional settings, name=value; no value contains =
	env     []string
	dir     string
	stdin   string
	network bool
	max     int  // limit of the output; 0: maxOutput
	clip    bool // stop at max and keep the beginning; otherwise more is an error
}

// git runs git. Its failure is an *exitError, which explain translates.
func (r *runner) git(ctx context.Context, c command) (out string, err error) {
	out, _, err = r.clipped(ctx, c)
	return out, err
}

// clipped runs git and reports whether its output was cut.
func (r *runner) clipped(ctx context.Context, c command) (out string, cut bool, err error) {
	args := make([]string, 0, 2*len(quiet)+len(c.args)+1)
	args = append(args, "--no-pager")
	for _, set := range quiet {
		args = append(args, "-c", set)
	}
	// A name may contain =, so these are not passed as arguments.
	for i, set := range c.config {
		end := strings.LastIndexByte(set, '=')
		c.env = append(c.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, set[:end]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, set[end+1:]))
	}
	if len(c.config) > 0 {
		c.env = append(c.env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(c.config)))
	}
	if c.network {
		c.env = append(c.env, r.sshCommand(ctx))
	}
	verb := c.args[0]
	c.args = append(args, c.args...)
	return r.run(ctx, cmp.Or(r.opt.Git, "git"), verb, c)
}

func (r *runner) run(ctx context.Context, program, verb string, c command) (string, bool, error) {
	if ctx.Err() != nil {
		return "", false, context.Cause(ctx)
	}
	limit := cmp.Or(r.opt.Local, localTimeout)
	if c.network {
		limit = cmp.Or(r.opt.Network, networkTimeout)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, program, c.args...)
	process.LeadTidy(cmd) // a killed git would leave its lock files and block the ref for everybody
	cmd.Dir, cmd.Env = c.dir, slices.Concat(r.env, c.env)
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	out := &bounded{max: cmp.Or(c.max, maxOutput), full: cancel}
	said := &lines{}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.Cancel = func() error { process.TerminateGroup(cmd); return nil }
	cmd.WaitDelay = 2 * time.Second // for tidying up, and for a pipe that somebody keeps open
	err := cmd.Run()
	if limited.Err() != nil {
		process.KillGroup(cmd)
	}
	said.flush()
	var ended *exec.ExitError
	switch {
	case out.cut && c.clip:
		return string(out.data), true, nil
	case out.cut:
		return "", false, fail(ErrTooMuch, "%s %s wrote more than %d MB, which is more than Chorus reads", program, verb, out.max>>20)
	case limited.Err() != nil:
		return "", false, timedOut(ctx, program, verb, limit.String())
	case errors.As(err, &ended):
		return string(out.data), false, &exitError{program: filepath.Base(program), verb: verb, code: process.ExitCode(cmd), out: string(out.data), said: said.tail()}
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) && c.dir != "" && isDir(c.dir):
		return "", false, missing(program)
	case err != nil:
		return "", false, err
	}
	return string(out.data), false, nil
}

// missing returns the error for a program that is not installed.
func missing(program string) error {
	if program == "gh" || strings.HasSuffix(program, "/gh") {
		return fail(ErrNoProgram, "pull requests need GitHub's command line, and %s was not found: install it (https://cli.github.com, or `apt install gh`, `brew install gh`) and type `gh auth login`", program)
	}
	return fail(ErrNoProgram, "%s was not found: install git 2.38 or newer and see that it is in the PATH of Chorus", program)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// bounded keeps the first bytes of what is written, and stops the writer when there are more.
type bounded struct {
	data []byte
	max  int
	cut  bool
	full func()
}

func (b *bounded) Write(p []byte) (int, error) {
	take := min(len(p), b.max-len(b.data))
	b.data = append(b.data, p[:take]...)
	if take < len(p) && !b.cut {
		b.cut = true
		b.full()
	}
	return len(p), nil
}

// lines keeps the end of what is written.
type lines struct {
	kept []byte
	line []byte
}

// maxSaid is how much error output is kept: git's last lines say what is wrong.
const maxSaid = 16 << 10

func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			l.line = append(l.line, rest...)
			if len(l.line) > maxSaid {
				l.line = l.line[len(l.line)-maxSaid:]
			}
			break
		}
		l.line = append(l.line, rest[:end]...)
		l.end(rest[end] == '\n')
		rest = rest[end+1:]
	}
	return len(p), nil
}

// end completes a line. A line that only moved the cursor back is progress and is not kept.
func (l *lines) end(keep bool) {
	if keep {
		l.kept = append(append(l.kept, l.line...), '\n')
		if over := len(l.kept) - maxSaid; over > 0 {
			l.kept = l.kept[over:]
		}
	}
	l.line = l.line[:0]
}

func (l *lines) flush() {
	if len(l.line) > 0 {
		l.end(true)
	}
}

func (l *lines) tail() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(l.kept), "\uFFFD"))
}
