//go:build linux

package bwrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
)

// attack is one way to make git start a program for whoever uses it outside. PROOF is
// touched by the program; EVIL is a line for a configuration that starts it.
type attack struct {
	setup  string // outside, in an empty folder; the workspace is ws unless dir says otherwise
	inside string // in the sandbox
	dir    string
	used   string // outside again, where somebody uses git; ws unless said
}

const repository = `git init -q ws; cd ws; git config user.email a@example.com; git config user.name a; git commit -q --allow-empty -m first; `

var attacks = map[string]attack{
	"hook":                               {inside: `printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
	"hook moved in":                      {inside: `printf '#!/bin/sh\ntouch PROOF\n' > h; chmod +x h; mv h .git/hooks/pre-commit; ln h .git/hooks/pre-commit`},
	"hooks without a folder":             {setup: `rm -r .git/hooks`, inside: `mkdir -p .git/hooks; printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
	"another hooks folder":               {inside: `cp -r .git/hooks h; printf '#!/bin/sh\ntouch PROOF\n' > h/pre-commit; chmod +x h/pre-commit; mv .git/hooks old; rm -rf .git/hooks; mv h .git/hooks`},
	"setting appended":                   {inside: `EVIL >> .git/config`},
	"setting by git":                     {inside: `git config core.fsmonitor 'touch PROOF; false'`},
	"setting in place":                   {inside: `sed -i "\$a[core]\nfsmonitor = \"touch PROOF; false\"" .git/config`},
	"settings swapped":                   {inside: `cp .git/config c; EVIL >> c; cp c d; mv c .git/config || rm -f .git/config; cp d .git/config`},
	"settings linked":                    {inside: `ln .git/config c && EVIL >> c; chmod 777 .git/config && EVIL >> .git/config; cp .git/config d; EVIL >> d; ln -sf ../d .git/config`},
	"no settings yet":                    {setup: `rm .git/config`, inside: `EVIL >> .git/config`},
	"another .git":                       {inside: `cp -r .git g; EVIL >> g/config; mv .git old; rm -rf .git; mv g .git`},
	"a .git beside":                      {inside: `cp -r .git evil; EVIL >> evil/config; echo ../evil > .git/commondir`},
	"settings of the worktree":           {setup: `git config extensions.worktreeConfig true`, inside: `EVIL >> .git/config.worktree`},
	"hooks of the project":               {setup: `mkdir -p .tools/hooks; git config core.hooksPath .tools/hooks`, inside: `mv .tools old; mkdir -p .tools/hooks; printf '#!/bin/sh\ntouch PROOF\n' > .tools/hooks/pre-commit; chmod +x .tools/hooks/pre-commit`},
	"settings of the project":            {setup: `touch .gitconfig; git config include.path ../.gitconfig`, inside: `EVIL >> .gitconfig; rm -f .gitconfig; EVIL > .gitconfig`},
	"hooks of the project, not there":    {setup: `git config core.hooksPath .tools/hooks`, inside: `mkdir -p .tools/hooks; printf '#!/bin/sh\ntouch PROOF\n' > .tools/hooks/pre-commit; chmod +x .tools/hooks/pre-commit`},
	"hooks of the project, linked":       {setup: `git config core.hooksPath .tools/hooks`, inside: `mkdir -p x/hooks; ln -s x .tools; printf '#!/bin/sh\ntouch PROOF\n' > x/hooks/pre-commit; chmod +x x/hooks/pre-commit`},
	"settings of the project, not there": {setup: `git config include.path ../.gitconfig`, inside: `EVIL > .gitconfig`},
	"hooks of the worktree":              {setup: `mkdir .tools; touch .tools/x; git add .; git commit -q -m x; git config core.hooksPath .tools; git worktree add -q ../tree`, dir: "tree", used: "tree", inside: `printf '#!/bin/sh\ntouch PROOF\n' > .tools/pre-commit; chmod +x .tools/pre-commit`},
	"hooks elsewhere":                    {setup: `mv .git/hooks hooks; ln -s ../hooks .git/hooks`, inside: `for d in hooks .git/hooks; do printf '#!/bin/sh\ntouch PROOF\n' > $d/pre-commit; chmod +x $d/pre-commit; done; rm .git/hooks; mkdir .git/hooks; printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
	".git elsewhere":                     {setup: `mv .git git; ln -s git .git`, inside: `cp -r git evil; EVIL >> evil/config; EVIL >> git/config; ln -sfn evil .git`},
	"separate .git":                      {setup: `cd ..; git init -q --separate-git-dir=ws/git ws`, inside: `EVIL >> git/config; cp -r git evil; EVIL >> evil/config; echo "gitdir: evil" > n; mv n .git; echo "gitdir: evil" > .git`},
	"worktree's main":                    {setup: `git worktree add -q ../tree`, dir: "tree", inside: `EVIL >> ../ws/.git/config; printf '#!/bin/sh\ntouch PROOF\n' > ../ws/.git/hooks/pre-commit; chmod +x ../ws/.git/hooks/pre-commit`},
	"worktree's file":                    {setup: `git worktree add -q ../tree`, dir: "tree", used: "tree", inside: `cp -r ../ws/.git evil; EVIL >> evil/config; echo "gitdir: evil" > n; mv n .git; echo "gitdir: evil" > .git`},
	"worktree's way back":                {setup: `git worktree add -q ../tree`, dir: "tree", used: "tree", inside: `cp -r ../ws/.git evil; EVIL >> evil/config; g=$(git rev-parse --absolute-git-dir); pwd > $g/n; echo $PWD/evil > $g/n; mv $g/n $g/commondir; echo $PWD/evil > $g/commondir`},
	"another worktree":                   {setup: `git worktree add -q ../tree`, used: "tree", inside: `cp -r .git evil; EVIL >> evil/config; mv .git/worktrees w; cp -r w .git/worktrees; echo $PWD/evil > .git/worktrees/tree/commondir`},
	"submodule": {setup: `git -c protocol.file.allow=always submodule --quiet add "$PWD" sub; git commit -q -m sub`, used: "ws/sub",
		inside: `EVIL >> .git/modules/sub/config; mv .git/modules m; cp -r m .git/modules; EVIL >> .git/modules/sub/config`},
	"a worktree's submodule": {setup: `git -c protocol.file.allow=always submodule --quiet add "$PWD" sub; git commit -q -m sub; git worktree add -q ../tree; git -C ../tree -c protocol.file.allow=always submodule --quiet update --init`,
		used: "tree", inside: `EVIL >> .git/worktrees/tree/modules/sub/config`},
	"a new repository":           {setup: `cd ..; rm -rf ws; mkdir ws`, inside: `git init -q .; EVIL >> .git/config`},
	"a new repository's hook":    {setup: `cd ..; rm -rf ws; mkdir ws`, inside: `git init -q .; printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
	"a new repository elsewhere": {setup: `cd ..; rm -rf ws; mkdir ws`, inside: `git init -q sub; EVIL >> sub/.git/config; ln -s sub/.git .git || echo "gitdir: sub/.git" > .git`},
	"a new repository all round": {setup: `cd ..; rm -rf ws; mkdir ws`, inside: `git init -q --bare .; git config core.bare false; git config core.worktree "$PWD"; EVIL >> config`},
	"around a broken .git":       {inside: `rm .git/HEAD; mkdir g; git init -q --bare g; mv g/* .; git config -f config core.bare false; git config -f config core.worktree "$PWD"; EVIL >> config`},
	"around an empty .git":       {setup: `cd ..; rm -rf ws; mkdir ws`, inside: `git init -q --bare .; git config core.bare false; git config core.worktree "$PWD"; EVIL >> config; mkdir .git`},
	"a half repository":          {setup: `cd ..; rm -rf ws; mkdir -p ws/.git`, inside: `git init -q .; cp -r .git evil; EVIL >> evil/config; echo ../evil > .git/commondir`},
	"a folder of the repository": {setup: `mkdir part`, dir: "ws/part", inside: `EVIL >> ../.git/config; printf '#!/bin/sh\ntouch PROOF\n' > ../.git/hooks/pre-commit; chmod +x ../.git/hooks/pre-commit`},
	"a repository below, added":  {inside: `git init -q sub; cd sub; git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x; cd ..; git add sub; EVIL >> sub/.git/config`},
	"a repository below":         {used: "ws/a/b", inside: `mkdir -p a/b; git init -q a/b; EVIL >> a/b/.git/config`},
	"a hook below":               {used: "ws/sub", inside: `git init -q sub; printf '#!/bin/sh\ntouch PROOF\n' > sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit`},
	"known below":                {setup: `git init -q sub`, used: "ws/sub", inside: `EVIL >> sub/.git/config`},
	"known below, of a person":   {setup: `git init -q sub; git -C sub config alias.st status`, used: "ws/sub", inside: `EVIL >> sub/.git/config; mv sub/.git/hooks x; cp -r sub/.git evil; EVIL >> evil/config; mv sub/.git old; mv evil sub/.git`},
	"replaced below":             {setup: `git init -q sub`, used: "ws/sub", inside: `git init -q x; EVIL >> x/.git/config; rm -rf sub/.git; mv x/.git sub/.git`},
	"below, prepared":            {setup: `git init -q x; rm x/.git/HEAD; EVIL >> x/.git/config; mv x/.git y`, used: "ws/sub", inside: `mkdir sub; mv y sub/.git; echo ref: refs/heads/main > sub/.git/HEAD`},
	"below, elsewhere":           {used: "ws/sub", inside: `git init -q --bare evil; EVIL >> evil/config; git config -f evil/config core.bare false; mkdir sub; echo "gitdir: ../evil" > sub/.git`},
	"below, elsewhere in halves": {used: "ws/sub", inside: `git init -q --bare evil; git config -f evil/config core.bare false; EVIL >> evil/config; mkdir -p sub/.git; mv evil/HEAD sub/.git/; echo ../../evil > sub/.git/commondir`},
	"below, linked":              {used: "ws/sub", inside: `git init -q x; EVIL >> x/.git/config; mv x/.git x/g; mkdir sub; ln -s ../x/g sub/.git`},
	"below, in the modules":      {used: "ws/sub", inside: `git init -q --bare .git/modules/sub; git config -f .git/modules/sub/config core.bare false; EVIL >> .git/modules/sub/config; mkdir sub; echo "gitdir: ../.git/modules/sub" > sub/.git`},
	"below, as worktree":         {used: "ws/tree", inside: `git worktree add -q tree; cp -r .git evil; EVIL >> evil/config; rm evil/HEAD; echo $PWD/evil > .git/worktrees/tree/commondir`},
	"below, closed":              {used: "ws/sub", inside: `git init -q sub; EVIL >> sub/.git/config; chmod 0 sub`},
	"bare below":                 {used: "ws/bare", inside: `git init -q --bare bare; printf '[alias]\n\tst = "!touch PROOF"\n' >> bare/config`},
	"bare below, in halves":      {used: "ws/x", inside: `git init -q --bare y; printf '[alias]\n\tst = "!touch PROOF"\n' >> y/config; mkdir x; mv y/HEAD x/; echo ../y > x/commondir`},
	"a bare repository":          {setup: `cd ..; git clone -q --bare ws bare`, dir: "bare", used: "bare", inside: `printf '[alias]\n\tst = "!touch PROOF"\n' >> config`},
}

// prepare makes the attack's repository and gives its folder; text is filled with its names.
func (p attack) prepare(t *testing.T) (base string, fill func(string) string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("EVIL", `printf '[core]\n\tfsmonitor = "touch PROOF; false"\n'`)
	proof := strings.NewReplacer("PROOF", filepath.Join(base, "proof"))
	fill = func(text string) string { return proof.Replace(replace.Replace(text)) }
	outsideGit(t, base, repository+fill(p.setup))
	return base, fill
}

// command is how the attack is made: a workspace inside of a repository is given the
// repository's .git, as people's are.
func (p attack) command(base string, fill func(string) string) sandbox.Command {
	c := sandbox.Command{Shell: fill(p.inside) + "\necho tried", Dir: filepath.Join(base, "ws"), Merge: true}
	if p.dir != "" {
		c.Dir = filepath.Join(base, p.dir)
	}
	c.Roots = []sandbox.Root{{Path: c.Dir, Writable: true}}
	if p.dir == "ws/part" {
		c.Roots = append(c.Roots, sandbox.Root{Path: filepath.Join(base, "ws")}, sandbox.Root{Path: filepath.Join(base, "ws/.git"), Writable: true})
	}
	return c
}

// use is somebody who uses git outside, and says whether that started the program.
func (p attack) use(t *testing.T, base string) bool {
	t.Helper()
	dir := filepath.Join(base, "ws")
	if p.used != "" {
		dir = filepath.Join(base, p.used)
	}
	for _, args := range [][]string{{"status"}, {"commit", "--allow-empty", "-m", "x"}, {"st"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		_, _ = cmd.CombinedOutput() // some attacks break the repository on the way
	}
	_, err := os.Stat(filepath.Join(base, "proof"))
	return err == nil
}

func outsideGit(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", "set -e; "+script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// TestPlants: nothing that a command leaves in a repository is started by git outside.
func TestPlants(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	for name, p := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, fill := p.prepare(t)
			res := run(t, ex, p.command(base, fill))
			if !strings.Contains(res.Output, "tried") {
				t.Errorf("the attempt itself is broken: %+v", res)
			}
			if p.use(t, base) {
				t.Errorf("git outside started it; inside:\n%s%q", res.Output, res.Notes)
			}
		})
	}
}

// TestTheAttacksThemselves: each gets through where there is no sandbox, and where
// somebody opened these, or they would show nothing.
func TestTheAttacksThemselves(t *testing.T) {
	t.Parallel()
	sandboxed := with(t, options(t))
	for name, p := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			executors := []sandbox.Executor{host.New(os.Environ())}
			if name == "hook" || name == "setting by git" {
				executors = append(executors, sandboxed)
			}
			for _, ex := range executors {
				base, fill := p.prepare(t)
				command := p.command(base, fill)
				command.OpenGit = true
				if res := run(t, ex, command); !p.use(t, base) {
					t.Errorf("%s: it fails without a guard too: %s", ex.Name(), res.Output)
				}
			}
		})
	}
}

// TestEverydayGit: work on a repository goes on as if there were no guard, in its own
// folder and in a worktree.
func TestEverydayGit(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, _ := attack{setup: `echo one > f; git add .; git commit -q -m second; git branch -q other; git worktree add -q ../tree; git update-ref refs/remotes/origin/main HEAD`}.prepare(t)
	work := `set -e; b=$(basename "$PWD")
		echo two > f; git add f; git commit -q -m change; git commit -q --amend -m changed
		git checkout -q -b $b-topic; echo x > g; git add g; git -c user.name=b commit -q -m topic
		git switch -q -; echo y > h; git add h; git commit -q -m beside; git merge -q --no-edit $b-topic
		git switch -q -c $b-more HEAD~1; echo z > i; git add i; git commit -q -m more; git rebase -q $b-topic
		echo w > i; git stash -q; git stash pop -q; git restore i; git tag $b-tag; git tag -a -m t $b-note
		git cherry-pick -n HEAD; git reset -q --hard; git revert --no-edit HEAD > /dev/null; git mv f k; git rm -q -f k; git reset -q --hard
		git checkout -q -b $b-from origin/main; git branch -q -D $b-topic; git gc -q; git fsck --no-progress --no-dangling; git reflog expire --expire=now HEAD
		git worktree add -q $b-tree; git -C $b-tree commit -q --allow-empty -m there; git worktree remove $b-tree; git worktree prune
		git init -q new; git -C new config user.name own; git clone -q . copy; git -C copy config user.name own; rm -rf new copy
		git config --global core.abbrev 12; git bisect start > /dev/null; git bisect reset; git status --short; git log -1 --format=%s; git config --get user.name`
	for _, dir := range []string{"ws", "tree"} {
		res := run(t, ex, sandbox.Command{Shell: work, Dir: filepath.Join(base, dir)})
		if res.ExitCode != 0 || res.Stdout != "second\na\n" {
			t.Errorf("%s: %+v", dir, res)
		}
	}
	if out := outsideGit(t, base, "git -C tree status --short; git -C tree log -1 --format=%s; git -C ws fsck --no-progress --no-dangling; git -C ws status --short; git -C ws worktree list | wc -l; ls ws/.git | grep -e lock -e sandbox || true"); out != "second\n2\n" {
		t.Errorf("outside: %s", out)
	}
	// A worktree that one command made, the next one can remove.
	run(t, ex, sandbox.Command{Shell: "git worktree add -q part", Dir: filepath.Join(base, "ws")})
	if res := run(t, ex, sandbox.Command{Shell: "git worktree remove part", Dir: filepath.Join(base, "ws")}); res.ExitCode != 0 {
		t.Errorf("remove a worktree: %+v", res)
	}
}

// TestGuardIsExplained: git only says that a file is busy; the result says why, what to
// do, and only then.
func TestGuardIsExplained(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, _ := attack{}.prepare(t)
	for shell, want := range map[string]bool{
		"git config user.name b": true, "git remote add up x": true, "touch .git/hooks/x": true, "mkdir hooks; git status": false, "git commit -q --allow-empty -m x": false,
	} {
		res := run(t, ex, sandbox.Command{Shell: shell, Dir: filepath.Join(base, "ws")})
		if got := strings.Contains(strings.Join(res.Notes, "\n"), "sandboxGit: open"); got != want {
			t.Errorf("%s: %+v", shell, res)
		}
	}
}

// TestGuardWithoutLitter: a folder that is only there to be guarded is shared by the
// commands that run at once, and gone after the last; one that a killed server left
// goes with the next.
func TestGuardWithoutLitter(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, fill := attacks["hooks without a folder"].prepare(t)
	p := attacks["hooks without a folder"]
	hooks := filepath.Join(base, "ws", ".git", "hooks")
	if err := os.Mkdir(hooks, 0o555); err != nil {
		t.Fatal(err)
	}
	// The first runs until the second has ended.
	started, end, done := make(chan struct{}), filepath.Join(base, "ws", "end"), make(chan sandbox.Result, 1)
	if err := syscall.Mkfifo(end, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		command := p.command(base, fill)
		command.Shell = "echo up; read nothing < end; " + command.Shell
		up := sync.OnceFunc(func() { close(started) })
		command.OnOutput = func(string) { up() }
		res, _ := ex.Run(t.Context(), command)
		done <- res
	}()
	<-started
	run(t, ex, p.command(base, fill))
	if err := os.WriteFile(end, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if res := <-done; !strings.Contains(res.Output, "tried") || p.use(t, base) {
		t.Errorf("the end of one command opened the other's guard: %+v", res)
	}
	if _, err := os.Lstat(hooks); err == nil {
		t.Error("the folder is still there")
	}
}

// TestNewRepository: a command may make a repository. What starts nothing stays as it
// was written, the rest is set aside and told.
func TestNewRepository(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	const made = `git init -q . && git config user.name 'a "b" \ c' && git config user.email a@example.com && git remote add origin https://example.com/x.git &&
		git commit -q --allow-empty -m first && git config branch.x.remote origin && cp .git/config before`
	dir := t.TempDir()
	res := run(t, ex, sandbox.Command{Shell: made, Dir: dir})
	if res.ExitCode != 0 || len(res.Notes) != 0 || outsideGit(t, dir, "cmp before .git/config; ls .git | grep sandbox || true") != "" {
		t.Errorf("nothing to object to: %+v", res)
	}
	dir = t.TempDir()
	res = run(t, ex, sandbox.Command{Shell: made + ` && git config alias.x '!touch y' && echo x > .git/hooks/post-commit`, Dir: dir})
	if len(res.Notes) != 1 || !strings.Contains(res.Notes[0], ".git/config.from-sandbox-1") || !strings.Contains(res.Notes[0], ".git/hooks.from-sandbox-1") {
		t.Errorf("it is not told: %+v", res)
	}
	if out := outsideGit(t, dir, "git config -f before --list > b; git config -f .git/config --list > c; cmp b c; git log --format=%s"); out != "first\n" {
		t.Errorf("what was harmless is gone: %s", out)
	}
	// It is a repository like any other from now on.
	if res := run(t, ex, sandbox.Command{Shell: "git config alias.x y; git commit -q --allow-empty -m second && git log --format=%s", Dir: dir}); res.Stdout != "second\nfirst\n" || len(res.Notes) != 1 {
		t.Errorf("got %+v", res)
	}
}
