//go:build unix

// Package effects has ways around the rules for shell commands, and a project
// in which tests really run them to see what they do.
package effects

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Rules are the rules of a profile.
type Rules struct{ Allow, Deny, Ask []string }

// RuleSets returns the rule sets that the cases name. Other names are presets.
func RuleSets() map[string]Rules {
	return map[string]Rules{
		"N": {
			Allow: []string{`tool:bash:(ls|cat|echo|grep|head|wc|sort|find|test|true|git status|git log|git diff|npm test|go test)( .*)?`},
			Deny:  []string{`tool:bash:(.*/)?(rm|curl|wget|ssh|git push)( .*)?`},
			Ask:   []string{`tool:bash:.*`},
		},
		"NW": {
			Allow: []string{`tool:bash:(ls|cat|echo|cd|test|true)( .*)?`, `tool:write:[^/.@].*`},
			Deny:  []string{`tool:bash:(.*/)?(rm|curl|wget|ssh|git push)( .*)?`},
			Ask:   []string{`tool:bash:.*`},
		},
		"S": {
			Allow: []string{
				`tool:bash:(ls|cat|echo|sed|awk|tar|rsync|wget|split|timeout|nice|env|man|zip)( .*)?`, `tool:bash:python3 tools/.*`, `tool:bash:ssh host .*`,
				`tool:bash:git (status|log|diff|fetch|clone|rebase)( .*)?`,
			},
			Deny: []string{`tool:bash:(.*/)?rm( .*)?`},
			Ask:  []string{`tool:bash:.*`},
		},
		"M": {
			Allow: []string{
				`tool:bash:(ls|cat|echo|cp|patch|gcc|gcc-12|make|curl|openssl|vim|vim.basic|diff3|sdiff|prove|ar|objcopy|pip|sqlite3|rg)( .*)?`,
				`tool:bash:python3 -m (json.tool|tarfile|zipfile)( .*)?`,
				`tool:bash:git (archive|bugreport|bundle|checkout-index|commit|config|fast-export|format-patch|grep|init|ls-remote|pull|worktree)( .*)?`,
			},
			Deny: []string{`tool:bash:(.*/)?rm( .*)?`},
			Ask:  []string{`tool:bash:.*`},
		},
		"T": {
			Allow: []string{
				`tool:bash:(ls|cat|echo|uniq|shuf|iconv|xxd|csplit|ptx|xz|gzip|zstd|openssl|less|jq|unzip|touch|mkdir|mktemp|ln|date|ctags|strings|tee|install|mv|dd|truncate)( .*)?`,
				`tool:bash:(ssh-keygen|psql|node|gcov|logger|envsubst|xargs|python3 -m json.tool|cargo|rsync|docker ps)( .*)?`,
				`tool:bash:git (add|am|apply|blame|branch|cat-file|checkout|cherry-pick|clean|diff-tree|fast-import|hook|maintenance|merge|merge-file|merge-index|mv|notes|pack-objects)( .*)?`,
				`tool:bash:git (range-diff|remote|reset|restore|rev-list|rev-parse|revert|rm|shortlog|show|stash|submodule|switch|tag|update-index|upload-pack|var|whatchanged)( .*)?`,
			},
			Deny: []string{`tool:bash:(.*/)?(rm|git push)( .*)?`},
			Ask:  []string{`tool:bash:.*`},
		},
	}
}

// Case is a line of effects.txt: a command, the rules that forbid what it does, and its effect.
type Case struct{ Rules, Effect, Command string }

//go:embed effects.txt
var lines string

//go:embed more.txt
var moreLines string

// Cases returns the cases that every test tries.
func Cases() []Case { return read(lines) }

// More returns further cases, for tests that only judge most of them: there are too many to run each.
func More() []Case { return read(moreLines) }

func read(lines string) (out []Case) {
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
	for line := range strings.Lines(lines) {
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3); len(f) == 3 {
			out = append(out, Case{f[0], f[1], unescape.Replace(f[2])})
		}
	}
	return out
}

// Project is a folder with a repository, its remote, and other files.
// Commands that were allowed really run there.
type Project struct {
	template string
	Dir      string // the copy in which commands run
}

// New creates a project, or skips the test if bash or git is missing.
func New(t testing.TB) *Project {
	t.Helper()
	for _, name := range []string{"bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no " + name)
		}
	}
	root := t.TempDir()
	p := &Project{template: filepath.Join(root, "template"), Dir: filepath.Join(root, "run")}
	for name, text := range map[string]string{
		"ws/f": "one\ntwo\n", "ws/canary": "", "ws/list": "origin\n", "ws/big": strings.Repeat("a line of some length to sort\n", 20_000), "ws/sub/g": "", "outside/precious": "safe\n",
		"ws/evil/ls": "#!/bin/sh\n: > PWNED\n", "ws/x.sh": "#!/bin/sh\ntouch PWNED\nexit 1\n", "ws/x.js": "require('fs').writeFileSync('PWNED', '')\n", "ws/push.sh": "#!/bin/sh\ngit push origin main\n",
		"ws/e.awk": "BEGIN { system(\"touch PWNED\") }\n", "ws/e.sed": "1e touch PWNED\n", "ws/evil.mk": "a:\n\tgit push origin main\n", "ws/Makefile": "a:\n\techo made\n", "ws/tools/ok.py": "", "ws/tools/a/b": "", "ws/sub:/x": "", "ws/tools/x.pl": "1;\n",
		"ws/evil.py": "import os\nos.system('git push origin main')\n", "ws/cfg": "Host *\n  ProxyCommand git push origin main\n", "evil.py": "open('PWNED', 'w')\n", "ws/package.json": `{"scripts":{"test":"true"}}`,
		"ws/v.c": "int x;\n", "ws/opts": "-wrapper ./x.sh\n", "ws/opts.curl": "output = ../outside/new\n", "ws/x.patch": "--- precious\n+++ precious\n@@ -1 +1 @@\n-safe\n+evil\n",
		"ws/pylib/sitecustomize.py": "open('PWNED', 'w')\n", "ws/push.sql": ".shell git push origin main\n", "ws/f.patch": "--- f\n+++ f\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n", "ws/man.cfg": "DEFINE pager ./x.sh\n", "ws/tar.list": "--checkpoint=1\n--checkpoint-action=exec=./x.sh\nbig\n", "ws/0": "touch PWNED\n",
		"ws/x2.patch": "--- a/precious\n+++ b/precious\n@@ -1 +1 @@\n-safe\n+evil\n", "ws/evil.vim": "!git push origin main\n", "ws/evil.test.js": "require('child_process').execSync('git push origin main')\n",
		"ws/evil/pre-commit": "#!/bin/sh\ntouch PWNED\ngit push origin main\n",
		"ws/go.mod":          "module x\n", "ws/x_test.go": "package x\n\nimport \"testing\"\n\nfunc Test(t *testing.T) {}\n",
	} {
		path := filepath.Join(p.template, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	// Programs that would talk to other machines only write a line to a log.
	for _, name := range []string{"gh", "kubectl", "aws", "helm", "terraform", "gcloud", "uv", "nc", "sudo", "hg", "svn"} {
		path := filepath.Join(p.template, "bin", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho \"$0 $*\" >> \"$ROOT/log\"\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	p.must(t, p.template, `git init -q --bare remote.git && cd ws && tar cf a.tar f && git init -q -b main . && git add -A && git commit -q -m one && echo three >> f && git commit -qam two &&
		echo four >> f && git commit -qam three && git remote add origin "$ROOT/remote.git" && git submodule -q add ./ 2> /dev/null; rm -f .git/hooks/*`)
	// The copy of the repository must push to the copy of its remote.
	config := filepath.Join(p.template, "ws", ".git", "config")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), p.template, p.Dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Project) must(t testing.TB, dir, script string) {
	t.Helper()
	cmd := p.Command(t.Context(), dir, script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Command returns a script in one of the project's folders, ready to run without a sandbox.
func (p *Project) Command(ctx context.Context, dir, script string) *exec.Cmd {
	root := dir
	if filepath.Base(dir) == "ws" {
		root = filepath.Dir(dir)
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = Environ(root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 300 * time.Millisecond
	return cmd
}

// Environ returns the environment for commands of a project in root.
func Environ(root string) []string {
	return []string{"ROOT=" + root, "HOME=" + root, "PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GOFLAGS=-mod=mod", "GOCACHE=" + os.Getenv("GOCACHE"),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "TERM=dumb", "GIT_SEQUENCE_EDITOR=true", "GIT_EDITOR=true", "LC_ALL=C.UTF-8"}
}

// Reset restores a fresh copy of the project.
func (p *Project) Reset(t testing.TB) {
	t.Helper()
	if err := restore(p.Dir, p.template); err != nil {
		t.Fatal(err)
	}
}

// Does runs a command in a fresh copy and reports whether it has the effect.
func (p *Project) Does(t testing.TB, command, effect string) bool {
	t.Helper()
	return p.DoesBy(t, effect, func(ctx context.Context, dir string) {
		_ = p.Command(ctx, dir, command).Run() // the exit status does not matter
	})
}

// DoesBy is like Does, with another way to run the command in the folder.
func (p *Project) DoesBy(t testing.TB, effect string, run func(ctx context.Context, dir string)) bool {
	t.Helper()
	p.Reset(t)
	before, _ := p.read(effect)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	run(ctx, filepath.Join(p.Dir, "ws"))
	after, err := p.read(effect)
	switch effect[0] {
	case '+':
		return err == nil
	case '-':
		return errors.Is(err, fs.ErrNotExist)
	default:
		return before != after
	}
}

// read returns the file that an effect is about.
func (p *Project) read(effect string) (string, error) {
	name := effect[1:]
	if effect == "+pushed" {
		name = "remote.git/refs/heads/main"
	}
	data, err := os.ReadFile(filepath.Join(p.Dir, name))
	return string(data), err
}
